/** The days that a statement covers, by the dates of its balances: also of a statement without an entry. */

export interface Days {
  readonly from: string;
  readonly to: string;
}

const DAY_MS = 24 * 3_600_000;
/** If the balances are further apart, only the day of the closing balance and the days of the entries count. */
const LONGEST_MS = 366 * DAY_MS;

/**
 * The days after the opening balance up to the closing balance, and the days of the entries. The opening balance is the
 * closing balance of the previous statement.
 */
export function daysOfBalances(opening: string | undefined, closing: string, entries: Days | undefined): Days {
  const afterMs = opening === undefined ? Number.NaN : Date.parse(opening) + DAY_MS;
  const lengthMs = Date.parse(closing) - afterMs;
  const isKnown = lengthMs >= 0 && lengthMs < LONGEST_MS;
  return withDay(withDay(entries, closing), isKnown ? new Date(afterMs).toISOString().slice(0, 10) : closing);
}

export const withDay = (days: Days | undefined, day: string): Days => joined(days, { from: day, to: day });

/** The days from the first to the last one of both. */
export function joined(known: Days | undefined, { from, to }: Days): Days {
  if (known === undefined) return { from, to };
  return { from: from < known.from ? from : known.from, to: to > known.to ? to : known.to };
}
