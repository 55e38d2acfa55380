/** Reconciliation runs give amounts in minor units. This file formats them with their decimals. */
import { decimalOfMinor } from "../../shared/amounts.ts";
import { calendarDay, dateAndTime, money } from "../../shared/format.ts";

/** `1250`, `EUR` as `€12.50`. A text that is no whole number stays as it is. */
export function moneyOfMinor(minor: string, currency: string): string {
  const decimal = decimalOfMinor(minor, currency);
  return decimal === undefined ? minor : money(decimal, currency);
}

/** Formats a fact or a field of a difference for people. A date that is not in the calendar stays as it is. */
export function factText(name: string, value: string, currency: string | null): string {
  if (name.endsWith("Minor") && currency !== null) return moneyOfMinor(value, currency);
  if (Number.isNaN(Date.parse(value))) return value;
  if (/^\d{4}-\d\d-\d\d$/.test(value)) return calendarDay(value);
  return /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? dateAndTime(value) : value;
}
