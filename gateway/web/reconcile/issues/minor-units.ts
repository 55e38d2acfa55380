/** Runs name amounts in minor units; people read them with their decimals. */
import { decimalOfMinor } from "../../shared/amounts.ts";
import { money } from "../../shared/format.ts";

/** `1250`, `EUR` as `€12.50`. What is no whole number stays as it is. */
export function moneyOfMinor(minor: string, currency: string): string {
  const decimal = decimalOfMinor(minor, currency);
  return decimal === undefined ? minor : money(decimal, currency);
}

/** A fact or a field of a difference, as a person reads it. */
export function factText(name: string, value: string, currency: string | null): string {
  return name.endsWith("Minor") && currency !== null ? moneyOfMinor(value, currency) : value;
}
