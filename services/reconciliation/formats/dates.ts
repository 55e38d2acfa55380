/** Dates and instants of statements as text. A date that the calendar does not have is no date: 30 February never becomes March. */

/** `YYYY-MM-DD` of a year, a month and a day that the calendar has. */
export function calendarDate(year: number, month: number, day: number): string | undefined {
  const date = new Date(Date.UTC(year, month - 1, day));
  if (year < 1900 || year > 2199) return undefined;
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  return date.toISOString().slice(0, 10);
}

/** The date of an ISO 8601 date or date and time, as it is written there; a time zone after it changes nothing. */
export function isoDate(text: string): string | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)(?:T[0-9:.,]+)?(?:Z|[+-]\d\d:?\d\d)?$/.exec(text.trim());
  if (match === null) return undefined;
  return calendarDate(Number(match[1]), Number(match[2]), Number(match[3]));
}

/** An ISO 8601 date and time with an offset or Z, verbatim; undefined for a local time. */
export function isoInstant(text: string): string | undefined {
  const trimmed = text.trim();
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/.test(trimmed)) return undefined;
  return isoDate(trimmed) === undefined || Number.isNaN(Date.parse(trimmed)) ? undefined : trimmed;
}
