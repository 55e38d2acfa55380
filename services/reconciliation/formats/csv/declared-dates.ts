/**
 * Dates of CSV files by a declared format, such as `DD.MM.YYYY HH:mm`. The format decides what each number means, so
 * the values of a file never decide between `DD/MM/YYYY` and `MM/DD/YYYY`.
 */
import { calendarDate, OFFSET } from "../dates.ts";
import { ZONE_OFFSETS } from "../dictionaries/zone-offsets.ts";
import { instantOf, isTimeZone } from "../local-time.ts";

export interface ReadDate {
  /** `YYYY-MM-DD`, as it is written. */
  readonly date: string;
  /** `HH:mm:ss`; undefined where only a date is written. */
  readonly time: string | undefined;
  /** `Z`, or `+hh:mm`; undefined for a local time. */
  readonly offset: string | undefined;
}

export interface DateFormat {
  readonly format: string;
  readonly pattern: RegExp;
}

/** The names of the months in the languages of the dictionaries: German, French, Italian, English. */
const MONTH_NAMES = [
  "januar februar märz april mai juni juli august september oktober november dezember".split(" "),
  "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(" "),
  "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre".split(" "),
  "january february march april may june july august september october november december".split(" "),
] as const satisfies readonly (readonly string[])[];

/** Longer tokens first. `MMM` is the name of a month, whole or shortened, in one of the languages of the dictionaries. */
const TOKENS: readonly (readonly [token: string, pattern: string])[] = [
  ["YYYY", "(?<year>\\d{4})"],
  ["YY", "(?<shortYear>\\d{2})"],
  ["MMM", "(?<monthName>\\p{L}{3,12}\\.?)"],
  ["MM", "(?<month>\\d{2})"],
  ["DD", "(?<day>\\d{2})"],
  ["HH", "(?<hour>\\d{2})"],
  ["mm", "(?<minute>\\d{2})"],
  ["ss", "(?<second>\\d{2}(?:\\.\\d{1,9})?)"],
  ["M", "(?<month>\\d{1,2})"],
  ["D", "(?<day>\\d{1,2})"],
  ["H", "(?<hour>\\d{1,2})"],
  ["hh", "(?<hour12>\\d{2})"],
  ["h", "(?<hour12>\\d{1,2})"],
  ["A", "(?<half>AM|PM|am|pm)"],
  ["Z", `(?<offset>Z|${OFFSET})`],
];
/** Numbers of one or two digits: without a separator between two of them, "1112026" can be a day in November or in January. */
const VARYING = new Set(["M", "D", "H", "h"]);
/** Any other token or a separator divides the digits beside it. */
const DIGITS = new Set(["YYYY", "YY", "MM", "DD", "HH", "mm", "ss", "hh", ...VARYING]);
/** What may be between two tokens. */
const LITERALS = new Set(" .,/-:T");

/**
 * Undefined when the format does not have year, month and day once each, has something other than tokens and separators, or has
 * digits that can be divided in two ways.
 */
export function dateFormat(format: string): DateFormat | undefined {
  let pattern = "";
  let rest = format;
  let varying = 0;
  const groups = new Set<string>();
  while (rest !== "") {
    const [token, part] = TOKENS.find(([candidate]) => rest.startsWith(candidate)) ?? [];
    const literal = rest.charAt(0);
    if (token === undefined && !LITERALS.has(literal)) return undefined;
    if (token === undefined || !DIGITS.has(token)) varying = 0;
    else if (VARYING.has(token)) varying += 1;
    if (varying > 1) return undefined;
    const group = /<(\w+)>/.exec(part ?? "")?.[1];
    if (group !== undefined && groups.has(group)) return undefined;
    if (group !== undefined) groups.add(group);
    pattern += part ?? (literal === "." ? "\\." : literal);
    rest = rest.slice(token?.length ?? 1);
  }
  const count = (...names: readonly string[]): number => names.filter((name) => groups.has(name)).length;
  const hasDate = count("year", "shortYear") === 1 && count("month", "monthName") === 1 && groups.has("day");
  const hours = count("hour", "hour12");
  const hasTime = hours === count("minute") && count("hour12") === count("half");
  const isWhole = hours === 1 || count("second", "offset", "half") === 0;
  return hasDate && hasTime && isWhole ? { format, pattern: new RegExp(`^${pattern}$`, "u") } : undefined;
}

/** Whether one text can have two meanings: one format has the day where another has the month or a short year. */
export function areAmbiguous(formats: readonly string[]): boolean {
  const ordered = formats.map((format) => format.replaceAll(/DD?/g, "D").replaceAll(/(?<!M)MM?(?!M)/g, "M"));
  const shapes = ordered.map((format) => format.replaceAll(/D|(?<!M)M(?!M)|(?<!Y)YY(?!Y)/g, "#"));
  return ordered.some((format, index) =>
    shapes.some((shape, other) => shape === shapes[index] && ordered[other] !== format),
  );
}

/** Reads the date by the first format that fits and gives a date and time that exist; undefined when none does. */
export function readDate(text: string, formats: readonly DateFormat[]): ReadDate | undefined {
  for (const { pattern } of formats) {
    const groups = pattern.exec(text)?.groups;
    if (groups === undefined) continue;
    const year = Number(groups["year"] ?? `20${groups["shortYear"]}`);
    const month = groups["monthName"] === undefined ? Number(groups["month"]) : monthOf(groups["monthName"]);
    const date = month === undefined ? undefined : calendarDate(year, month, Number(groups["day"]));
    const written = writtenTime(groups);
    if (date !== undefined && written !== undefined) return { date, time: written.time, offset: groups["offset"] };
  }
  return undefined;
}

/** The instant of a date that was read, by its offset or by the declared time zone; undefined without either. */
export function instantOfDate({ date, time, offset }: ReadDate, timeZone: string | undefined): string | undefined {
  if (time === undefined) return undefined;
  if (offset !== undefined) return `${date}T${time}${offset}`;
  return timeZone === undefined ? undefined : instantOf(date, time, timeZone);
}

/** Undefined when the clock has no such time. */
function writtenTime(groups: Readonly<Record<string, string | undefined>>): Pick<ReadDate, "time"> | undefined {
  const { minute, second = "00" } = groups;
  const hour = groups["hour"] ?? hourOfHalf(groups["hour12"], groups["half"]);
  if (hour === undefined || minute === undefined) return { time: undefined };
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) >= 60) return undefined;
  return { time: `${hour.padStart(2, "0")}:${minute}:${second}` };
}

/** 12 AM is midnight; undefined without a half, and "99" for an hour that a half does not have. */
function hourOfHalf(hour: string | undefined, half: string | undefined): string | undefined {
  if (hour === undefined || half === undefined) return undefined;
  const number = Number(hour);
  if (number < 1 || number > 12) return "99";
  return String((number % 12) + (half.toUpperCase() === "PM" ? 12 : 0));
}

/** The month whose name begins with this text in some language; undefined when two months match. */
function monthOf(name: string): number | undefined {
  const beginning = name.replace(/\.$/, "").toLowerCase();
  const found = new Set(
    MONTH_NAMES.flatMap((names) => names.flatMap((month, index) => (month.startsWith(beginning) ? [index + 1] : []))),
  );
  const [only, ...others] = found;
  return others.length === 0 ? only : undefined;
}

const NAMED_OFFSET = new RegExp(`^(?:GMT|UTC)(?<offset>${OFFSET})$`, "i");

/**
 * The instant of a local time whose time zone is in a column beside it: by the offset in the text, else by the zone of the row,
 * else by the declared zone. Undefined when the zone of the row is not known, because the declared zone may be another one.
 */
export function zonedInstant(read: ReadDate, zone: string, declared: string | undefined): string | undefined {
  if (read.time === undefined || read.offset !== undefined || zone === "") return instantOfDate(read, declared);
  const offset = ZONE_OFFSETS[zone.toUpperCase()] ?? NAMED_OFFSET.exec(zone)?.groups?.["offset"];
  if (offset !== undefined) return `${read.date}T${read.time}${offset}`;
  return zone.includes("/") && isTimeZone(zone) ? instantOf(read.date, read.time, zone) : undefined;
}
