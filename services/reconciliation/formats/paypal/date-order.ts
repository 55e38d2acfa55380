/**
 * Whether the day or the month is first in dates with slashes. It depends on the region, which the file does not name.
 * So the first date that can be read in only one way decides: "13/5/2026" can, "4/9/2026" cannot.
 */
import { type DateFormat, dateFormat, type ReadDate, readDate } from "../csv/declared-dates.ts";

const UNAMBIGUOUS = withTimes(["DD.MM.YYYY", "D.M.YYYY", "YYYY-MM-DD"]);
const ORDERS = {
  day: [...withTimes(["D/M/YYYY"]), ...UNAMBIGUOUS],
  month: [...withTimes(["M/D/YYYY"]), ...UNAMBIGUOUS],
} as const;
const SLASHES = /^(\d{1,2})\/(\d{1,2})\/\d{4}$/;

export class DateOrder {
  #first: keyof typeof ORDERS | undefined;
  #hasSlashes = false;
  #isOrderSignificant = false;

  note(date: string): void {
    const [, one, two] = SLASHES.exec(date) ?? [];
    if (one === undefined || two === undefined) return;
    this.#hasSlashes = true;
    if (one !== two) this.#isOrderSignificant = true;
    if (Number(one) > 12) this.#first ??= "day";
    else if (Number(two) > 12) this.#first ??= "month";
  }

  /** Whether a date with slashes was read, but none that decides. */
  get isUndecided(): boolean {
    return this.#hasSlashes && this.#first === undefined;
  }

  /** Whether a date has two different first parts, so that their order matters: 5 May is the same day in both orders. */
  get isOrderSignificant(): boolean {
    return this.#isOrderSignificant;
  }

  read(text: string): ReadDate | undefined {
    return readDate(text, ORDERS[this.#first ?? "day"]);
  }
}

function withTimes(dates: readonly string[]): readonly DateFormat[] {
  return dates.flatMap((date) =>
    ["", " HH:mm:ss", " HH:mm", " H:mm:ss"].flatMap((time) => dateFormat(date + time) ?? []),
  );
}
