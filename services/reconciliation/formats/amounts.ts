/** Amounts of statements as minor units. An amount is text, then digits, then a bigint: no float on the way. */
import { currencyExponent } from "../../../machines/currencies.ts";
import { FORMAT_LIMITS } from "./limits.ts";

/** The amount, or one sentence with the reason why the text is not an amount. */
export type AmountReading = { readonly minor: bigint } | { readonly reason: string };

export interface DecimalNotation {
  readonly decimalSeparator: "." | ",";
  /** Whether thousands may be separated: by the other of point and comma, an apostrophe or a space, in groups of three. */
  readonly grouped: boolean;
}

/** The notation of XML Schema's decimal, of JSON and of most providers. */
const PLAIN_DECIMAL: DecimalNotation = { decimalSeparator: ".", grouped: false };

const PATTERNS = {
  ".": { plain: plainPattern("\\."), grouped: groupedPattern("\\.", ",") },
  ",": { plain: plainPattern(","), grouped: groupedPattern(",", "\\.") },
} as const;
const MINUS = new Set(["-", "−"]);

/** The ISO 4217 code in capital letters, also of "usd"; undefined when it is no currency. */
export function currencyCode(text: string): string | undefined {
  const code = text.trim().toUpperCase();
  return currencyExponent(code) === undefined ? undefined : code;
}

/**
 * A decimal text as minor units of a currency: ("12.50", "EUR") gives 1250. Zeros after the currency's decimals are fine;
 * other digits there are refused, because rounding would invent an amount.
 */
export function readDecimal(text: string, currency: string, notation: DecimalNotation = PLAIN_DECIMAL): AmountReading {
  const exponent = currencyExponent(currency);
  if (exponent === undefined) return { reason: `${JSON.stringify(short(currency))} is no ISO 4217 currency.` };
  const { sign, whole, fraction } = partsOf(text.trim(), notation);
  if (whole === undefined || fraction === undefined)
    return { reason: `${JSON.stringify(short(text))} is not a decimal number.` };
  if (/[^0]/.test(fraction.slice(exponent)))
    return { reason: `${short(text)} has more decimals than ${currency} has (${exponent}).` };
  return signed(sign, `${whole}${fraction.slice(0, exponent).padEnd(exponent, "0")}`);
}

/** An integer that counts minor units already: "1250" gives 1250, for whichever currency. */
export function readMinorUnits(text: string): AmountReading {
  const match = /^([-+−]?)(\d+)$/.exec(text.trim());
  if (match === null) return { reason: `${JSON.stringify(short(text))} is not a whole number of minor units.` };
  return signed(match[1] ?? "", match[2] ?? "");
}

function partsOf(text: string, { decimalSeparator, grouped }: DecimalNotation) {
  const patterns = PATTERNS[decimalSeparator];
  const match = patterns.plain.exec(text) ?? (grouped ? patterns.grouped.exec(text) : null);
  const { sign = "", whole, fraction } = match?.groups ?? {};
  if (whole === undefined || `${whole}${fraction ?? ""}` === "") return { sign, whole: undefined, fraction: undefined };
  return { sign, whole: whole.replaceAll(/\D/g, ""), fraction: fraction ?? "" };
}

function signed(sign: string, digits: string): AmountReading {
  const significant = digits.replace(/^0+(?=\d)/, "");
  if (significant.length > FORMAT_LIMITS.amountDigits)
    return { reason: `The amount has more than ${FORMAT_LIMITS.amountDigits} digits.` };
  const minor = BigInt(significant);
  return { minor: MINUS.has(sign) ? -minor : minor };
}

function plainPattern(separator: string): RegExp {
  return new RegExp(`^(?<sign>[-+−]?)(?<whole>\\d*)(?:${separator}(?<fraction>\\d*))?$`);
}

/** The back reference requires the same separator everywhere; it may be a non-breaking space. */
function groupedPattern(separator: string, other: string): RegExp {
  const group = `(?<group>[${other}'’ \\u00a0\\u202f])`;
  return new RegExp(
    `^(?<sign>[-+−]?)(?<whole>\\d{1,3}${group}\\d{3}(?:\\k<group>\\d{3})*)(?:${separator}(?<fraction>\\d*))?$`,
  );
}

function short(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
