/** The time zones of requests. Node and PostgreSQL both compute with them, so a name must mean the same to both. */

const KNOWN: ReadonlySet<string> = new Set([
  "UTC",
  ...Intl.supportedValuesOf("timeZone").filter((name) => name.includes("/")),
]);
/** Zones of a fixed offset, which the runtime does not list. */
const FIXED = /^Etc\/GMT[+-]\d{1,2}$/;

/** Names that the runtime still takes for canonical, and that IANA has replaced: an installation of PostgreSQL may lack them. */
const REPLACED: ReadonlyMap<string, string> = new Map([
  ["Africa/Asmera", "Africa/Asmara"],
  ["America/Buenos_Aires", "America/Argentina/Buenos_Aires"],
  ["America/Catamarca", "America/Argentina/Catamarca"],
  ["America/Coral_Harbour", "America/Atikokan"],
  ["America/Cordoba", "America/Argentina/Cordoba"],
  ["America/Godthab", "America/Nuuk"],
  ["America/Indianapolis", "America/Indiana/Indianapolis"],
  ["America/Jujuy", "America/Argentina/Jujuy"],
  ["America/Louisville", "America/Kentucky/Louisville"],
  ["America/Mendoza", "America/Argentina/Mendoza"],
  ["Asia/Calcutta", "Asia/Kolkata"],
  ["Asia/Katmandu", "Asia/Kathmandu"],
  ["Asia/Rangoon", "Asia/Yangon"],
  ["Asia/Saigon", "Asia/Ho_Chi_Minh"],
  ["Atlantic/Faeroe", "Atlantic/Faroe"],
  ["Europe/Kiev", "Europe/Kyiv"],
  ["Pacific/Enderbury", "Pacific/Kanton"],
  ["Pacific/Ponape", "Pacific/Pohnpei"],
  ["Pacific/Truk", "Pacific/Chuuk"],
]);

/**
 * The canonical name of an IANA time zone; undefined for any other text, offsets such as `+02:00` included. PostgreSQL reads the
 * sign of an offset the other way round, and `CET` as a fixed offset: its canonical name, `Europe/Brussels`, has summer time.
 */
export function canonicalTimeZone(name: string): string | undefined {
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions();
    if (!KNOWN.has(timeZone) && !FIXED.test(timeZone)) return undefined;
    return REPLACED.get(timeZone) ?? timeZone;
  } catch {
    return undefined;
  }
}
