/** Local times of statements as instants, where the operator has declared the time zone. */

const FORMATTERS = new Map<string, Intl.DateTimeFormat>();
const DAY_MS = 24 * 3_600_000;
/** Clocks change at a quarter of an hour in UTC. Offsets are cached, because they are slow to find and a file has few hours. */
const QUARTER_MS = 900_000;
const OFFSETS = new Map<string, number>();
const MOST_OFFSETS = 10_000;

/** Whether the runtime knows this time zone. Where PostgreSQL computes too, `canonicalTimeZone` decides. */
export function isTimeZone(timeZone: string): boolean {
  try {
    formatterOf(timeZone);
    return true;
  } catch {
    return false;
  }
}

/**
 * The instant of a local date (`YYYY-MM-DD`) and time (`HH:mm:ss`) in a time zone, with Z. Undefined for an hour that the
 * clock skips or repeats: which instant it was is not known, and is not guessed.
 */
export function instantOf(date: string, time: string, timeZone: string): string | undefined {
  const localMs = Date.parse(`${date}T${time}Z`);
  if (Number.isNaN(localMs)) return undefined;
  const offsets = new Set([offsetMs(localMs - DAY_MS, timeZone), offsetMs(localMs + DAY_MS, timeZone)]);
  const instants = [...offsets]
    .map((offset) => localMs - offset)
    .filter((ms) => ms + offsetMs(ms, timeZone) === localMs);
  const [instant, ...others] = instants;
  return instant === undefined || others.length > 0 ? undefined : new Date(instant).toISOString();
}

/** How far the zone's clock is ahead of UTC at an instant. */
function offsetMs(atMs: number, timeZone: string): number {
  const quarter = Math.floor(atMs / QUARTER_MS);
  const key = `${timeZone} ${quarter}`;
  const known = OFFSETS.get(key);
  if (known !== undefined) return known;
  if (OFFSETS.size >= MOST_OFFSETS) OFFSETS.clear();
  const offset = computedOffsetMs(quarter * QUARTER_MS, timeZone);
  OFFSETS.set(key, offset);
  return offset;
}

function computedOffsetMs(atMs: number, timeZone: string): number {
  const parts = formatterOf(timeZone).formatToParts(atMs);
  const part = (type: string): number => Number(parts.find((found) => found.type === type)?.value);
  const localMs = Date.UTC(part("year"), part("month") - 1, part("day"), part("hour"), part("minute"), part("second"));
  return localMs - atMs;
}

function formatterOf(timeZone: string): Intl.DateTimeFormat {
  const known = FORMATTERS.get(timeZone);
  if (known !== undefined) return known;
  const formatter = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  FORMATTERS.set(timeZone, formatter);
  return formatter;
}
