/**
 * An amount is an integer count of minor units. A commit has it as a string of digits, because JSON numbers are doubles.
 * Arithmetic uses `bigint`. The wire has a decimal string (contract, "Assignment").
 */
import { currencyExponent } from "./currencies.ts";

/** An amount in minor units as a string of digits, for example "1250" for EUR 12.50. */
export type AmountMinor = string;

/** The contract's pattern for an amount: at most ten integer digits and two fraction digits ("Limits" 3). */
export const AMOUNT_PATTERN = /^-?\d{0,10}(?:\.\d{0,2})?$/;

/**
 * Minor units as the decimal string of the wire, for example ("1250", "EUR") → "12.50".
 * A currency with three decimals gets two. This loses nothing, because `amountFitsWire` refuses amounts that need a third.
 */
export function formatAmount(amountMinor: AmountMinor | bigint, currency: string): string {
  const exponent = currencyExponent(currency) ?? 2;
  const text = amountMinor.toString();
  if (exponent === 0) return text;
  const sign = text.startsWith("-") ? "-" : "";
  const digits = text.slice(sign.length).padStart(exponent + 1, "0");
  const cut = digits.length - exponent;
  return `${sign}${digits.slice(0, cut)}.${digits.slice(cut, cut + 2)}`;
}

/** Like `formatAmount`, with all decimals: for lines of statements, which `amountFitsWire` does not check. */
export function formatExactAmount(amountMinor: bigint, currency: string): string {
  const exponent = currencyExponent(currency) ?? 2;
  if (exponent === 0) return amountMinor.toString();
  const digits = (amountMinor < 0n ? -amountMinor : amountMinor).toString().padStart(exponent + 1, "0");
  const cut = digits.length - exponent;
  return `${amountMinor < 0n ? "-" : ""}${digits.slice(0, cut)}.${digits.slice(cut)}`;
}

/** Whether the contract's pattern can represent this amount exactly. */
export function amountFitsWire(amountMinor: bigint, currency: string): boolean {
  const exponent = currencyExponent(currency);
  if (exponent === undefined || amountMinor < 0n) return false;
  if (exponent === 3 && amountMinor % 10n !== 0n) return false;
  return amountMinor / 10n ** BigInt(exponent) <= 9_999_999_999n;
}

/** A decimal string as minor units; undefined when it is not a number or has too many decimals for the currency. */
export function parseAmount(text: string, currency: string): bigint | undefined {
  const exponent = currencyExponent(currency);
  const match = /^(\d{1,10})(?:\.(\d{1,3}))?$/.exec(text);
  if (exponent === undefined || match === null) return undefined;
  const fraction = match[2] ?? "";
  if (fraction.length > exponent) return undefined;
  return BigInt(`${match[1]}${fraction.padEnd(exponent, "0")}`);
}

/** Like `parseAmount`, for lines of statements: an amount may be negative and have 14 integer digits. */
export function parseSignedAmount(text: string, currency: string): bigint | undefined {
  const exponent = currencyExponent(currency);
  const match = /^(-?)(\d{1,14})(?:\.(\d{1,4}))?$/.exec(text);
  if (exponent === undefined || match === null) return undefined;
  const [, sign = "", whole = "", fraction = ""] = match;
  if (fraction.length > exponent) return undefined;
  return BigInt(`${sign}${whole}${fraction.padEnd(exponent, "0")}`);
}
