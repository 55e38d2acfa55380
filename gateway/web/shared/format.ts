/** Money, moments and durations in the person's language. Amounts are decimal strings and never become numbers. */
import { priceDigits } from "./amounts.ts";
import { locale } from "./language.ts";
import { moneyIn, typedIn } from "./money.ts";

/** `12.50`, `EUR` as `€12.50` or `12,50 €`. */
export const money = (amount: string, currency: string): string => moneyIn(locale(), amount, currency);

/** The amount of the API as a person types it: `9.80` or `9,80`. */
export const typedAmount = (amount: string): string => typedIn(locale(), amount);

export function number(value: number): string {
  return new Intl.NumberFormat(locale()).format(value);
}

/** What a person may type as a price: `4.50`, `4,50`, or `4` where the currency has no decimals. */
export function samplePrice(currency: string): string {
  const digits = priceDigits(currency);
  const format = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return new Intl.NumberFormat(locale(), format).format(digits === 0 ? 4 : 4.5);
}

const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;

export function clockTime(at: string | number): string {
  return new Intl.DateTimeFormat(locale(), { ...CLOCK, second: "2-digit" }).format(new Date(at));
}

const DAY = { day: "2-digit", month: "short", year: "numeric" } as const;

/** In the browser's time zone, unless the caller names another one. */
export function dateAndTime(at: string | number, timeZone?: string): string {
  return new Intl.DateTimeFormat(locale(), { ...DAY, ...CLOCK, timeZone }).format(new Date(at));
}

/** The day of a moment, such as `2026-11-26`. In the browser's time zone, unless the caller names another one. */
export function localDay(atMs: number, timeZone?: string): string {
  const form = { year: "numeric", month: "2-digit", day: "2-digit", timeZone } as const;
  // Sweden writes days as the API does.
  return new Intl.DateTimeFormat("sv-SE", form).format(new Date(atMs));
}

/** With seconds, for lists in which several entries fall into one minute. */
export function dateAndClockTime(at: string | number): string {
  return new Intl.DateTimeFormat(locale(), { ...DAY, ...CLOCK, second: "2-digit" }).format(new Date(at));
}

/** Formats a day without a time, such as `2026-11-26`: the same day in every time zone. */
export function calendarDay(day: string): string {
  return new Intl.DateTimeFormat(locale(), { ...DAY, timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));
}

export function calendarMonth(day: string): string {
  const month = { month: "long", year: "numeric", timeZone: "UTC" } as const;
  return new Intl.DateTimeFormat(locale(), month).format(new Date(`${day}T00:00:00Z`));
}

/** The rest of a wait, such as `2:05`. */
export function minutesAndSeconds(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
