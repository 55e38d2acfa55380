/** Money, moments and durations in the person's language. Amounts are decimal strings and never become numbers. */
import { locale } from "./language.ts";
import { moneyIn } from "./money.ts";

/** `12.50`, `EUR` as `€12.50` or `12,50 €`. */
export const money = (amount: string, currency: string): string => moneyIn(locale(), amount, currency);

export function number(value: number): string {
  return new Intl.NumberFormat(locale()).format(value);
}

const CLOCK = { hour: "2-digit", minute: "2-digit" } as const;

export function clockTime(at: string | number): string {
  return new Intl.DateTimeFormat(locale(), { ...CLOCK, second: "2-digit" }).format(new Date(at));
}

export function dateAndTime(at: string | number): string {
  const day = { day: "2-digit", month: "short", year: "numeric" } as const;
  return new Intl.DateTimeFormat(locale(), { ...day, ...CLOCK }).format(new Date(at));
}

/** `2:05`: what is left of a wait. */
export function minutesAndSeconds(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
