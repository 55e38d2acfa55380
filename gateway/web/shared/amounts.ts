/**
 * Amounts as the API has them, before a language writes them. Their decimals are those of the service: `Intl` gives other ones
 * for some currencies, for example none for HUF.
 */
import { currencyExponent } from "../../../machines/currencies.ts";

/** How many decimals amounts of a currency have; two where the service does not know it, as the service writes them. */
export const currencyDigits = (currency: string): number => currencyExponent(currency) ?? 2;

/** `1250`, `EUR` as `12.50`; undefined when it is no whole number of minor units. */
export function decimalOfMinor(minor: string, currency: string): string | undefined {
  const match = /^(-?)(\d+)$/.exec(minor);
  if (match === null) return undefined;
  const [, sign = "", digits = ""] = match;
  const decimals = currencyDigits(currency);
  if (decimals === 0) return minor;
  const padded = digits.padStart(decimals + 1, "0");
  return `${sign}${padded.slice(0, -decimals)}.${padded.slice(-decimals)}`;
}

/** What a person types as an amount, with a comma or a point, as the decimal string of the API; undefined when it is none. */
export function amountOf(typed: string, digits: number): string | undefined {
  const match = /^(\d{1,9})(?:[.,](\d*))?$/.exec(typed.trim());
  if (match === null) return undefined;
  const [, whole = "0", fraction = ""] = match;
  if (fraction.length > digits) return undefined;
  const plain = whole.replace(/^0+(?=\d)/, "");
  return digits === 0 ? plain : `${plain}.${fraction.padEnd(digits, "0")}`;
}
