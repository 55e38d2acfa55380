/** The time zones of requests. Node and PostgreSQL both compute with them, so a name must mean the same to both. */

const KNOWN: ReadonlySet<string> = new Set([
  "UTC",
  ...Intl.supportedValuesOf("timeZone").filter((name) => name.includes("/")),
]);
/** Zones of a fixed offset, which the runtime does not list. */
const FIXED = /^Etc\/GMT[+-]\d{1,2}$/;

/**
 * The canonical name of an IANA time zone; undefined for any other text, offsets such as `+02:00` included. PostgreSQL reads the
 * sign of an offset the other way round, and `CET` as a fixed offset: its canonical name, `Europe/Brussels`, has summer time.
 */
export function canonicalTimeZone(name: string): string | undefined {
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions();
    return KNOWN.has(timeZone) || FIXED.test(timeZone) ? timeZone : undefined;
  } catch {
    return undefined;
  }
}
