/** The days that a statement covers, by the dates of its balances: also of a statement without an entry. */

export interface Days {
  readonly from: string;
  readonly to: string;
}

const DAY_MS = 24 * 3_600_000;
/** A statement with an older opening balance says nothing about the days since then. */
const LONGEST_MS = 366 * DAY_MS;

/**
 * The days after the opening balance, which is the closing balance of the statement before it, up to the closing balance; and
 * those of the entries.
 */
export function daysOfBalances(opening: string | undefined, closing: string, entries: Days | undefined): Days {
  const lengthMs = opening === undefined ? 0 : Date.parse(closing) - Date.parse(opening);
  const isLonger = lengthMs > DAY_MS && lengthMs <= LONGEST_MS;
  const first = isLonger ? new Date(Date.parse(closing) - lengthMs + DAY_MS).toISOString().slice(0, 10) : closing;
  return withDay(withDay(entries, first), closing);
}

export function withDay(days: Days | undefined, day: string): Days {
  const { from, to } = days ?? { from: day, to: day };
  return { from: day < from ? day : from, to: day > to ? day : to };
}
