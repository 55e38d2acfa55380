/**
 * Amounts in the form of the API, before formatting. The number of decimals is that of the service: `Intl` has another number
 * for some currencies, for example none for HUF.
 */
import { currencyExponent } from "../../../machines/currencies.ts";

/** How many decimals a currency has; two for a currency that the table does not have, as in the service. */
export const currencyDigits = (currency: string): number => currencyExponent(currency) ?? 2;

/** `1250`, `EUR` as `12.50`; undefined when it is not a whole number of minor units. */
export function decimalOfMinor(minor: string, currency: string): string | undefined {
  const match = /^(-?)(\d+)$/.exec(minor);
  if (match === null) return undefined;
  const [, sign = "", digits = ""] = match;
  const decimals = currencyDigits(currency);
  if (decimals === 0) return minor;
  const padded = digits.padStart(decimals + 1, "0");
  return `${sign}${padded.slice(0, -decimals)}.${padded.slice(-decimals)}`;
}

/** How many decimals a price has in the API: two where the currency has three, because the third one is always zero. */
export const priceDigits = (currency: string): number => Math.min(currencyDigits(currency), 2);

/** Converts a typed price, with a comma or a point, to the decimal string of the API; undefined for other text. */
export function priceOf(typed: string, currency: string): string | undefined {
  const match = /^(\d{1,9})(?:[.,](\d*))?$/.exec(typed.trim());
  if (match === null) return undefined;
  const [, whole = "0", fraction = ""] = match;
  const digits = priceDigits(currency);
  const rest = fraction.slice(digits);
  if (fraction.length > currencyDigits(currency) || /[^0]/.test(rest)) return undefined;
  const plain = whole.replace(/^0+(?=\d)/, "");
  return digits === 0 ? plain : `${plain}.${fraction.slice(0, digits).padEnd(digits, "0")}`;
}
