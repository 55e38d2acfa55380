/** Money, moments and durations in the person's language. Amounts are decimal strings and never become numbers. */
import { locale } from "./language.ts";

const AMOUNT = /^(-?)(\d+)(?:\.(\d+))?$/;

/**
 * `12.50`, `EUR` as `€12.50` or `12,50 €`. `Intl` gives the pattern from a number with as many digits; the digits are the
 * string's own, so an amount beyond what a number holds is right too.
 */
export function money(amount: string, currency: string): string {
  const match = AMOUNT.exec(amount);
  if (match === null) return `${amount} ${currency}`;
  const [, sign = "", whole = "0", fraction = ""] = match;
  const format = currencyFormat(currency, fraction.length);
  // Safari 12 has no parts.
  if (!("formatToParts" in format)) return `${amount} ${currency}`;
  const grouped = new Intl.NumberFormat(locale(), { maximumFractionDigits: 0 });
  const parts = format.formatToParts(sign === "" ? 1 : -1);
  let isWritten = false;
  const written = parts.map(({ type, value }) => {
    if (type === "fraction") return fraction;
    if (type === "group") return "";
    if (type !== "integer") return value;
    if (isWritten) return "";
    isWritten = true;
    return groupDigits(whole.replace(/^0+(?=\d)/, ""), grouped);
  });
  return written.join("");
}

function currencyFormat(currency: string, digits: number): Intl.NumberFormat {
  const options = { style: "currency", minimumFractionDigits: digits, maximumFractionDigits: digits } as const;
  return new Intl.NumberFormat(locale(), { ...options, currency });
}

/** Digits in the language's groups, three by three from the right. */
function groupDigits(digits: string, format: Intl.NumberFormat): string {
  const separator = format.formatToParts(1_000_000).find(({ type }) => type === "group")?.value ?? "";
  return digits.replace(/\B(?=(\d{3})+$)/g, separator);
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

/** How many decimals amounts of a currency have. */
export function currencyDigits(currency: string): number {
  const format = new Intl.NumberFormat("en", { style: "currency", currency });
  return format.resolvedOptions().maximumFractionDigits ?? 2;
}

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
