/** Runs name amounts in minor units; people read them with their decimals. */
import { currencyDigits, money } from "../../shared/format.ts";

const WHOLE = /^(-?)(\d+)$/;

/** `1250`, `EUR` as `€12.50`. What is no whole number stays as it is. */
export function moneyOfMinor(minor: string, currency: string): string {
  const match = WHOLE.exec(minor);
  if (match === null) return minor;
  const [, sign = "", digits = ""] = match;
  const decimals = currencyDigits(currency);
  if (decimals === 0) return money(minor, currency);
  const padded = digits.padStart(decimals + 1, "0");
  return money(`${sign}${padded.slice(0, -decimals)}.${padded.slice(-decimals)}`, currency);
}

/** A fact or a field of a difference, as a person reads it. */
export function factText(name: string, value: string, currency: string | null): string {
  return name.endsWith("Minor") && currency !== null ? moneyOfMinor(value, currency) : value;
}
