/** Field :61:, one entry: value date, entry date, mark, funds code, amount, type and references in one string. */
import { type AmountReading, readDecimal } from "../amounts.ts";
import { calendarDate } from "../dates.ts";

export interface EntryLine {
  readonly valueOn: string;
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
 * Some banks write blanks for a missing entry date or before the type, no comma in a whole amount, no zero before the comma, a
 * type with blanks, or no type before the references.
 */
const PATTERN =
  /^(?<value>\d{6})(?<entry>\d{4}| {4})?(?<mark>RC|RD|C|D)(?<funds>[A-Z])?(?<amount>\d+(?:,\d*)?|,\d+) *(?:(?!NONREF)(?<type>[A-Z][A-Z0-9 ]{3})|(?=\/\/|NONREF))(?<references>.*)$/s;
/** No reference, or the name of the sub-field of :86: that has it. */
const NO_REFERENCE = new Set("NONREF|NOREF|NOTPROVIDED|EREF|EREF+|KREF|KREF+|MREF|MREF+|MARF|PREF|CREF".split("|"));

export function readEntryLine(lines: readonly string[], currency: string): EntryLine | { readonly reason: string } {
  const { fields, supplement } = match(lines);
  if (fields === undefined)
    return { reason: "The field is not of the form date, mark (C, D, RC or RD), amount, type and references." };
  const { value = "", entry = "", mark = "", funds = "", amount = "", type = "", references = "" } = fields;
  const valueOn = shortDate(value);
  if (valueOn === undefined) return { reason: `The value date ${value} is not in the calendar.` };
  const bookedOn = entry.trim() === "" ? valueOn : entryDate(entry, valueOn);
  if (bookedOn === undefined) return { reason: `The entry date ${entry} is not in the calendar.` };
  const reading = readAmount(amount, currency);
  if ("reason" in reading) return reading;
  const amountMinor = mark === "C" || mark === "RD" ? reading.minor : -reading.minor;
  const { ownerReference, bankReference } = split(references);
  return {
    valueOn,
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

/** SWIFT writes a comma in each amount; ",50" lacks its zero. */
export function readAmount(text: string, currency: string): AmountReading {
  return readDecimal(text.startsWith(",") ? `0${text}` : text, currency, { decimalSeparator: ",", grouped: false });
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

/** MMDD has no year: the year that puts the entry date nearest to the value date counts. */
function entryDate(text: string, valueOn: string): string | undefined {
  const year = Number(valueOn.slice(0, 4));
  const [month, day] = [Number(text.slice(0, 2)), Number(text.slice(2, 4))];
  const distance = (date: string): number => Math.abs(Date.parse(date) - Date.parse(valueOn));
  return [year, year - 1, year + 1]
    .flatMap((candidate) => calendarDate(candidate, month, day) ?? [])
    .toSorted((a, b) => distance(a) - distance(b))[0];
}
