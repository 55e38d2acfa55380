/** CSV files by a stored mapping. The mapping declares everything; a row that does not fit it is malformed, never guessed. */
import { currencyCode, type DecimalNotation, readDecimal, readMinorUnits } from "../amounts.ts";
import {
  type LineKind,
  NOT_MONEY_REASON,
  type ParseOptions,
  type StatementFormat,
  type StatementRecord,
  StatementRefusedError,
} from "../format.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { lineRecord, moved, NEXT_FILE } from "../records.ts";
import { type DateFormat, dateFormat, instantOfDate, type ReadDate, readDate } from "./declared-dates.ts";
import { type ExtractPattern, extractPattern } from "./extract-pattern.ts";
import { FieldProblem, minorOf, quoted, recordOfRow } from "./field-problem.ts";
import { type CsvMapping, columnsOf, csvMappingSchema, REFERENCE_FIELDS } from "./mapping.ts";
import { type CsvHeader, type CsvRecord, type CsvRow, type HeaderRule, readCsv } from "./read-csv.ts";

export const mappedCsv: StatementFormat = {
  name: "csv",
  version: 1,
  title: "CSV with a stored mapping",
  // A person chooses the mapping; the head of a file does not show which one.
  detect: () => false,
  parse: parseMapped,
};

async function* parseMapped(text: AsyncIterable<string>, options: ParseOptions): AsyncIterable<StatementRecord> {
  const { mapping } = options;
  if (mapping === undefined)
    throw refused("A CSV file of this kind needs a mapping; store one and import the file with it.");
  for await (const { record } of mappedRows(text, mapping, options.timeZone)) if (record !== undefined) yield record;
}

/** What a mapping makes of one row of the file. */
export interface MappedRow {
  readonly position: number;
  readonly raw: string;
  /** As in the file, in the order of the header; empty for a row that could not be divided. */
  readonly fields: readonly string[];
  /** Undefined for a row that the mapping skips; `next_file` for one that repeats the header. */
  readonly record: StatementRecord | undefined;
}

/** A row with the header of its file. */
export type HeadedRow = MappedRow & { readonly header: CsvHeader };

export async function* mappedRows(
  text: AsyncIterable<string>,
  stored: CsvMapping,
  timeZone: string | undefined,
): AsyncIterable<HeadedRow> {
  const mapping = checkedMapping(stored);
  const csv = readCsv(text, { delimiter: mapping.delimiter, header: headerRule(mapping) });
  let header: CsvHeader | undefined;
  let rows: MappedRows | undefined;
  for await (const record of csv) {
    if (record.type === "header") {
      header = record.header;
      rows = new MappedRows(header, mapping, timeZone);
    } else if (header !== undefined && rows !== undefined) yield { header, ...rows.of(record) };
  }
}

/** The row with its position moved by `by`, for a file within an archive. */
export function movedRow(headed: HeadedRow, by: number): { readonly row: HeadedRow; readonly position: number } {
  const position = headed.position + by;
  const record = headed.record === undefined ? undefined : moved(headed.record, by).row;
  return { row: { ...headed, position, record }, position };
}

/** A mapping is stored as JSON, perhaps by an older version with other rules. */
function checkedMapping(stored: CsvMapping): CsvMapping {
  const read = csvMappingSchema.safeParse(stored);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const place = issue === undefined || issue.path.length === 0 ? "the whole" : issue.path.join(".");
  throw refused(
    `The stored mapping is no longer valid (${place}: ${issue?.message.replace(/\.$/, "")}); correct it and import the file again.`,
  );
}

function headerRule({ headerRow }: CsvMapping): HeaderRule {
  return {
    accepts: (_columns, position) => position === headerRow,
    refusal: () => refused(`The file has no line ${headerRow}, where the mapping has the header.`),
  };
}

class MappedRows {
  readonly #mapping: CsvMapping;
  readonly #timeZone: string | undefined;
  readonly #indexes: ReadonlyMap<string, number>;
  readonly #others: readonly (readonly [name: string, index: number])[];
  readonly #dates: readonly DateFormat[];
  readonly #patterns: ReadonlyMap<string, ExtractPattern>;
  readonly #notation: DecimalNotation;

  constructor(header: CsvHeader, mapping: CsvMapping, timeZone: string | undefined) {
    this.#mapping = mapping;
    this.#timeZone = timeZone;
    this.#indexes = boundColumns(header, mapping);
    const bound = new Set(this.#indexes.values());
    this.#others = header.columns.flatMap((name, index) =>
      bound.has(index) ? [] : [[name.trim() || `column ${index + 1}`, index] as const],
    );
    this.#dates = mapping.dateFormats.flatMap((format) => dateFormat(format) ?? []);
    this.#patterns = patternsOf(mapping);
    this.#notation = { decimalSeparator: mapping.decimalSeparator, grouped: mapping.thousandsSeparator !== "none" };
  }

  of(record: Exclude<CsvRecord, { readonly type: "header" }>): MappedRow {
    if (record.type === "repeated_header") return { position: record.position, raw: "", fields: [], record: NEXT_FILE };
    if (record.type === "malformed") {
      const { position, raw } = record.malformed;
      return { position, raw, fields: [], record: this.#skipsRaw(raw) ? undefined : record };
    }
    const { row } = record;
    const { position, raw, fields } = row;
    const isSkipped = this.#skipsRaw(raw) || this.#skips(row);
    return { position, raw, fields, record: isSkipped ? undefined : recordOfRow(row, () => this.#line(row)) };
  }

  #skipsRaw(raw: string): boolean {
    return this.#mapping.skip.some((rule) => "rowBeginsWith" in rule && raw.startsWith(rule.rowBeginsWith));
  }

  #skips(row: CsvRow): boolean {
    return this.#mapping.skip.some((rule) => "column" in rule && rule.is.includes(this.#value(row, rule.column)));
  }

  #line(row: CsvRow): StatementRecord {
    const mapping = this.#mapping;
    const { kind, providerType } = this.#kindOf(row);
    const currency = this.#currencyOf(row);
    const amountMinor = this.#amountOf(row, currency);
    const booked = this.#dateOf(row, mapping.bookedOn.column);
    const references = REFERENCE_FIELDS.map((field) => [field, this.#referenceOf(row, field)] as const);
    return lineRecord({
      position: row.position,
      kind,
      providerType,
      amountMinor,
      currency,
      feeMinor: this.#feeOf(row, currency),
      netMinor: this.#netOf(row, { currency, amountMinor }),
      tipMinor: this.#tipOf(row, { currency, amountMinor }),
      bookedOn: booked.date,
      valueOn: this.#valueOn(row),
      occurredAt: instantOfDate(this.#withTime(row, booked), this.#timeZone),
      ...Object.fromEntries(references),
      text: mapping.text?.columns
        .map((column) => this.#value(row, column))
        .filter(Boolean)
        .join(" "),
      details: [
        ...this.#others.map(([name, index]) => [name, row.fields[index]] as const),
        ...(kind === "not_money" ? [[NOT_MONEY_REASON, providerType] as const] : []),
      ],
    });
  }

  #value(row: CsvRow, column: string): string {
    const value = row.fields[this.#indexes.get(column) ?? -1] ?? "";
    return this.#mapping.trim ? value.trim() : value;
  }

  #kindOf(row: CsvRow): { readonly kind: LineKind; readonly providerType: string } {
    const { kind } = this.#mapping;
    if ("fixed" in kind) return { kind: kind.fixed, providerType: kind.fixed };
    const providerType = this.#value(row, kind.column);
    const found = (Object.hasOwn(kind.words, providerType) ? kind.words[providerType] : undefined) ?? kind.default;
    if (found === undefined)
      throw new FieldProblem(kind.column, `The mapping has no kind for ${quoted(providerType)}.`);
    return { kind: found, providerType: providerType === "" ? found : providerType };
  }

  #currencyOf(row: CsvRow): string {
    const { currency } = this.#mapping;
    if ("fixed" in currency) return currency.fixed;
    const text = this.#value(row, currency.column);
    const code = currencyCode(text);
    if (code === undefined) throw new FieldProblem(currency.column, `${quoted(text)} is no ISO 4217 currency.`);
    return code;
  }

  #amountOf(row: CsvRow, currency: string): bigint {
    const { amount } = this.#mapping;
    if (amount.rule === "signed") {
      const minor = this.#minor(row, amount.column, currency);
      return amount.moneyIn === "positive" ? minor : -minor;
    }
    if (amount.rule === "debit_credit") return this.#debitOrCredit(row, amount, currency);
    if (amount.rule === "direction") {
      const text = this.#value(row, amount.directionColumn);
      const unsigned = this.#unsigned(amount.column, this.#value(row, amount.column), currency);
      if (amount.moneyIn.includes(text)) return unsigned;
      if (amount.moneyOut.includes(text)) return -unsigned;
      throw new FieldProblem(amount.directionColumn, `The mapping has no direction for ${quoted(text)}.`);
    }
    const text = this.#value(row, amount.column).trim();
    const moneyIn = withoutAffix(text, amount.moneyIn);
    const moneyOut = withoutAffix(text, amount.moneyOut);
    const rest = moneyIn ?? moneyOut;
    // One word may be the end of another: when both fit, none is chosen.
    if (rest === undefined || (moneyIn !== undefined && moneyOut !== undefined))
      throw new FieldProblem(amount.column, `${quoted(text)} has no direction that the mapping knows.`);
    const unsigned = this.#unsigned(amount.column, rest, currency);
    return moneyIn === undefined ? -unsigned : unsigned;
  }

  #debitOrCredit(
    row: CsvRow,
    columns: { readonly debitColumn: string; readonly creditColumn: string },
    currency: string,
  ) {
    const [debit, credit] = [columns.debitColumn, columns.creditColumn].map((column) => {
      const text = this.#value(row, column);
      return text.trim() === "" ? undefined : this.#unsigned(column, text, currency);
    });
    // Some files write a zero where others leave the column empty.
    const isDebit = debit !== undefined && (credit === undefined || credit === 0n);
    const isCredit = credit !== undefined && (debit === undefined || debit === 0n);
    if (!isDebit && !isCredit)
      throw new FieldProblem(columns.creditColumn, "The row has an amount in both columns or in none of them.");
    return isCredit ? (credit ?? 0n) : -(debit ?? 0n);
  }

  #minor(row: CsvRow, column: string, currency: string): bigint {
    return this.#minorOfText(column, this.#value(row, column), currency);
  }

  #unsigned(column: string, text: string, currency: string): bigint {
    const minor = this.#minorOfText(column, text, currency);
    if (minor < 0n) throw new FieldProblem(column, `${quoted(text)} has a sign beside the direction.`);
    return minor;
  }

  #minorOfText(column: string, text: string, currency: string): bigint {
    const { thousandsSeparator, units } = this.#mapping;
    if (units === "minor") return minorOf(column, readMinorUnits(text));
    const separators = (text.match(/[^\d+−-]/gu) ?? []).filter(
      (separator) => separator !== this.#notation.decimalSeparator,
    );
    const isDeclared = (separator: string): boolean => likeAscii(separator) === thousandsSeparator;
    if (this.#notation.grouped && !separators.every(isDeclared))
      throw new FieldProblem(column, `${quoted(text)} has another separator than the mapping declares.`);
    return minorOf(column, readDecimal(text, currency, this.#notation));
  }

  #feeOf(row: CsvRow, currency: string): bigint | undefined {
    const { fee } = this.#mapping;
    if (fee === undefined || this.#value(row, fee.column).trim() === "") return undefined;
    const minor = this.#minor(row, fee.column, currency);
    return fee.sign === "cost_is_positive" ? -minor : minor;
  }

  /** Signed by the rule of the amount. Where amounts have no sign, the net of outgoing money is always negative. */
  #netOf(row: CsvRow, { currency, amountMinor }: RowAmount): bigint | undefined {
    const { net, amount } = this.#mapping;
    if (net === undefined || this.#value(row, net.column).trim() === "") return undefined;
    const minor = this.#minor(row, net.column, currency);
    if (amount.rule === "signed") return amount.moneyIn === "positive" ? minor : -minor;
    return amountMinor < 0n && minor > 0n ? -minor : minor;
  }

  /** A part of the amount: it has the direction of the amount, and the file may write it with or without a sign. */
  #tipOf(row: CsvRow, { currency, amountMinor }: RowAmount): bigint | undefined {
    const { tip } = this.#mapping;
    if (tip === undefined || this.#value(row, tip.column).trim() === "") return undefined;
    const minor = this.#minor(row, tip.column, currency);
    return minor < 0n === amountMinor < 0n ? minor : -minor;
  }

  #dateOf(row: CsvRow, column: string): ReadDate {
    const text = this.#value(row, column).trim();
    const read = readDate(text, this.#dates);
    if (read === undefined)
      throw new FieldProblem(column, `${quoted(text)} is no date in ${this.#mapping.dateFormats.join(" or ")}.`);
    return read;
  }

  #valueOn(row: CsvRow): string | undefined {
    const column = this.#mapping.valueOn?.column;
    return column === undefined || this.#value(row, column).trim() === "" ? undefined : this.#dateOf(row, column).date;
  }

  #withTime(row: CsvRow, booked: ReadDate): ReadDate {
    const column = this.#mapping.bookedOn.timeColumn;
    const text = column === undefined ? "" : this.#value(row, column).trim();
    if (column === undefined || text === "") return booked;
    const match = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/.exec(text);
    if (match === null) throw new FieldProblem(column, `${quoted(text)} is no time of day.`);
    const [, hour = "", minute = "", second = "00"] = match;
    return { ...booked, time: `${hour.padStart(2, "0")}:${minute}:${second}` };
  }

  #referenceOf(row: CsvRow, field: (typeof REFERENCE_FIELDS)[number]): string {
    const reference = this.#mapping[field];
    if (reference === undefined) return "";
    const value = this.#value(row, reference.column);
    return this.#patterns.get(field)?.extract(value) ?? value;
  }
}

interface RowAmount {
  readonly currency: string;
  readonly amountMinor: bigint;
}

function patternsOf(mapping: CsvMapping): ReadonlyMap<string, ExtractPattern> {
  const patterns = new Map<string, ExtractPattern>();
  for (const field of REFERENCE_FIELDS) {
    const extract = mapping[field]?.extract;
    if (extract === undefined) continue;
    const read = extractPattern(extract.pattern, extract.ignoreCase);
    if ("reason" in read) throw refused(`The mapping's pattern for ${field} is refused: ${read.reason}`);
    patterns.set(field, read);
  }
  return patterns;
}

/** Where the mapping's columns are. Throws `StatementRefusedError` when one is missing or is there twice. */
function boundColumns({ columns, position }: CsvHeader, mapping: CsvMapping): ReadonlyMap<string, number> {
  const names = columns.map((name) => name.normalize("NFC").trim());
  const wanted = columnsOf(mapping);
  const places = wanted.map((name) =>
    names.flatMap((found, index) => (found === name.normalize("NFC") ? [index] : [])),
  );
  const missing = wanted.filter((_name, index) => places[index]?.length === 0);
  const twice = wanted.filter((_name, index) => (places[index]?.length ?? 0) > 1);
  if (missing.length > 0)
    throw refused(
      `The header in line ${position} has no column ${listed(missing)}; choose the mapping of this file or correct it.`,
    );
  if (twice.length > 0)
    throw refused(
      `The header in line ${position} has ${listed(twice)} more than once, so it is unclear which column counts.`,
    );
  return new Map(wanted.map((name, index) => [name, places[index]?.[0] ?? -1]));
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, FORMAT_LIMITS.namedColumns).map((name) => quoted(name));
  return shown.length < names.length ? `${shown.join(", ")} and ${names.length - shown.length} more` : shown.join(", ");
}

/** The text without the longest of the words that it begins or ends with: "CR" is not "C" and an "R" before the amount. */
function withoutAffix(text: string, words: readonly string[]): string | undefined {
  for (const word of words.toSorted((first, second) => second.length - first.length)) {
    if (text.startsWith(word)) return text.slice(word.length).trim();
    if (text.endsWith(word)) return text.slice(0, text.length - word.length).trim();
  }
  return undefined;
}

function likeAscii(separator: string): string {
  return separator === "’" ? "'" : /\s/u.test(separator) ? " " : separator;
}

function refused(sentence: string): StatementRefusedError {
  return new StatementRefusedError("mapping_refused", sentence);
}
