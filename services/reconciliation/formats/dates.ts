/** Dates and instants of statements as text. A date that the calendar does not have is no date: 30 February never becomes March. */

const DAYS_OF_MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const FEBRUARY = 2;

/** The pattern of an offset from UTC: no clock has a larger offset, and PostgreSQL does not store one. */
export const OFFSET = "[+-](?:0\\d|1[0-4]):[0-5]\\d";
const INSTANT = new RegExp(`^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,9})?(?:Z|${OFFSET})$`);

/** `YYYY-MM-DD` of a year, a month and a day that the calendar has. Without a `Date`: it is called for each row. */
export function calendarDate(year: number, month: number, day: number): string | undefined {
  if (!(year >= 1900 && year <= 2199)) return undefined;
  const days = (DAYS_OF_MONTHS[month - 1] ?? 0) + (month === FEBRUARY && isLeapYear(year) ? 1 : 0);
  if (!(day >= 1 && day <= days)) return undefined;
  return `${year}-${month < 10 ? "0" : ""}${month}-${day < 10 ? "0" : ""}${day}`;
}

function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/** The date of an ISO 8601 date or date and time, as it is written there; a time zone after it changes nothing. */
export function isoDate(text: string): string | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)(?:T[0-9:.,]+)?(?:Z|[+-]\d\d:?\d\d)?$/.exec(text.trim());
  if (match === null) return undefined;
  return calendarDate(Number(match[1]), Number(match[2]), Number(match[3]));
}

/** An ISO 8601 date and time with an offset or Z, verbatim; undefined for a local time, and for an offset that no clock has. */
export function isoInstant(text: string): string | undefined {
  const trimmed = text.trim();
  if (!INSTANT.test(trimmed)) return undefined;
  return isoDate(trimmed) === undefined || Number.isNaN(Date.parse(trimmed)) ? undefined : trimmed;
}
