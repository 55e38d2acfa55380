/** Field :61:, one entry: value date, entry date, mark, funds code, amount, type and references in one string. */
import { type AmountReading, readDecimal } from "../amounts.ts";
import { calendarDate } from "../dates.ts";

export interface EntryLine {
  /** Undefined where the calendar does not have the value date. */
  readonly valueOn: string | undefined;
  /** The value date as in the file, where the calendar does not have it; else "". */
  readonly wrongValueDate: string;
  readonly bookedOn: string;
  /** Signed: a reversed credit (RC) takes money out, a reversed debit (RD) brings it back. */
  readonly amountMinor: bigint;
  /** C, D, RC or RD. */
  readonly mark: string;
  readonly fundsCode: string;
  /** "NTRF"; "" where there is none. */
  readonly type: string;
  /** The account owner's reference; "" for NONREF. */
  readonly ownerReference: string;
  /** The bank's reference; "" for NONREF. */
  readonly bankReference: string;
  readonly supplement: string;
}

/**
 * Some banks write blanks for a missing entry date or before the type, no comma or a point in an amount, no zero before the
 * comma, a type with blanks, or no type before the references.
 */
const PATTERN =
  /^(?<value>\d{6})(?<entry>\d{4}| {4})?(?<mark>RC|RD|C|D)(?<funds>[A-Z])?(?<amount>\d+(?:,\d*|\.\d{0,2})?|,\d+) *(?:(?!NONREF)(?<type>[A-Z][A-Z0-9 ]{3})|(?=\/\/|NONREF))(?<references>.*)$/s;
/** No reference, or the name of the sub-field of :86: that has it. */
const NO_REFERENCE = new Set("NONREF|NOREF|NOTPROVIDED|EREF|EREF+|KREF|KREF+|MREF|MREF+|MARF|PREF|CREF".split("|"));

export function readEntryLine(lines: readonly string[], currency: string): EntryLine | { readonly reason: string } {
  const { fields, supplement } = match(lines);
  if (fields === undefined)
    return { reason: "The field is not of the form date, mark (C, D, RC or RD), amount, type and references." };
  const { value = "", entry = "", mark = "", funds = "", amount = "", type = "", references = "" } = fields;
  const valueOn = shortDate(value);
  const hasEntryDate = entry.trim() !== "";
  const nearValue = valueOn ?? (hasEntryDate ? endOfFebruary(value) : undefined);
  if (nearValue === undefined) return { reason: `The value date ${value} is not in the calendar.` };
  const bookedOn = hasEntryDate ? entryDate(entry, nearValue) : nearValue;
  if (bookedOn === undefined) return { reason: `The entry date ${entry} is not in the calendar.` };
  const reading = readAmount(amount, currency);
  if ("reason" in reading) return reading;
  const amountMinor = mark === "C" || mark === "RD" ? reading.minor : -reading.minor;
  const { ownerReference, bankReference } = split(references);
  return {
    valueOn,
    wrongValueDate: valueOn === undefined ? value : "",
    bookedOn,
    amountMinor,
    mark,
    fundsCode: funds,
    type: type.trim(),
    ownerReference,
    bankReference,
    supplement,
  };
}

/**
 * SWIFT writes a comma in each amount, and does not group thousands; ",50" lacks its zero. Some banks write a point. With two
 * digits or fewer after it, it cannot group thousands.
 */
export function readAmount(text: string, currency: string): AmountReading {
  const decimalSeparator = /^\d+\.\d{0,2}$/.test(text) ? "." : ",";
  return readDecimal(text.startsWith(",") ? `0${text}` : text, currency, { decimalSeparator, grouped: false });
}

/** The first line is the entry and the rest its supplement, unless a bank has wrapped the entry itself. */
function match(lines: readonly string[]) {
  const [first = "", ...rest] = lines;
  const fields = PATTERN.exec(first.trimEnd())?.groups;
  if (fields !== undefined || rest.length === 0) return { fields, supplement: rest.join("\n").trim() };
  const [second = "", ...others] = rest;
  return { fields: PATTERN.exec(first.trimEnd() + second.trimEnd())?.groups, supplement: others.join("\n").trim() };
}

function split(references: string) {
  const at = references.indexOf("//");
  const [owner, bank] = at < 0 ? [references, ""] : [references.slice(0, at), references.slice(at + 2)];
  return { ownerReference: reference(owner), bankReference: reference(bank) };
}

function reference(text: string): string {
  const trimmed = text.trim();
  return NO_REFERENCE.has(trimmed) ? "" : trimmed;
}

/** YYMMDD; SWIFT reads 80 to 99 as the last century. */
export function shortDate(text: string): string | undefined {
  if (!/^\d{6}$/.test(text)) return undefined;
  const [year = 0, month = 0, day = 0] = [text.slice(0, 2), text.slice(2, 4), text.slice(4, 6)].map(Number);
  return calendarDate(year < 80 ? 2000 + year : 1900 + year, month, day);
}

/**
 * German banks that count 30 days in each month for interest write value dates on 29 and 30 February, which the calendar does
 * not have. Such an entry is booked all the same; the last day that each February has shows its year.
 */
function endOfFebruary(text: string): string | undefined {
  return /^\d\d02(?:29|30)$/.test(text) ? shortDate(`${text.slice(0, 4)}28`) : undefined;
}

/** MMDD has no year: the year that puts the entry date nearest to the value date counts. */
function entryDate(text: string, valueOn: string): string | undefined {
  const year = Number(valueOn.slice(0, 4));
  const [month, day] = [Number(text.slice(0, 2)), Number(text.slice(2, 4))];
  const distance = (date: string): number => Math.abs(Date.parse(date) - Date.parse(valueOn));
  return [year, year - 1, year + 1]
    .flatMap((candidate) => calendarDate(candidate, month, day) ?? [])
    .toSorted((a, b) => distance(a) - distance(b))[0];
}
