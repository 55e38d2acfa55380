/**
 * CSV by header, streaming. A row is malformed when its quotes or its count of fields are wrong, and the next row is read.
 * Fields stay verbatim: text that a spreadsheet would run as a formula is text here. A row without any text is a blank line,
 * and a row that repeats the header begins another file that was appended to the first.
 */

import { DELIMITERS } from "../../../bus/messages/statement-formats.ts";
import { type MalformedLine, StatementRefusedError } from "../format.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { cutTo } from "../records.ts";
import { LineSplitter, type PhysicalLine } from "./physical-lines.ts";
import { divideRow, type FramedRow, RecordFramer } from "./record-framer.ts";
import { RowWidth } from "./row-width.ts";

export interface CsvHeader {
  /** The physical line, from 1. */
  readonly position: number;
  /** As in the file; names may be empty and may repeat. */
  readonly columns: readonly string[];
  readonly delimiter: string;
}

export interface CsvRow {
  /** The physical line of its first character, from 1. */
  readonly position: number;
  /** One for each column of the header, or any count where there is no header; a delimiter at a row's end may add an empty one. */
  readonly fields: readonly string[];
  readonly raw: string;
}

export type CsvRecord =
  | { readonly type: "header"; readonly header: CsvHeader }
  | { readonly type: "row"; readonly row: CsvRow }
  | { readonly type: "repeated_header"; readonly position: number }
  | { readonly type: "malformed"; readonly malformed: MalformedLine };

export interface HeaderRule {
  /** Whether this line is the header; called once for each delimiter. */
  accepts(columns: readonly string[], position: number): boolean;
  /** The refusal of a file without a header. The lines are the first ones, each with the delimiter that divides it most. */
  refusal(lines: readonly (readonly string[])[]): StatementRefusedError;
}

export interface CsvOptions {
  /** Undefined: the one of `DELIMITERS` with which the header row is the header. Rows below it do not count. */
  readonly delimiter: string | undefined;
  /** "none": each line is a row, and rows may have different counts of fields. It needs a delimiter. */
  readonly header: HeaderRule | "none";
}

/** Throws `StatementRefusedError`. */
export async function* readCsv(text: AsyncIterable<string>, options: CsvOptions): AsyncIterable<CsvRecord> {
  const reader = new CsvReader(options);
  for await (const chunk of text) {
    for (let from = 0; from < chunk.length; from += FORMAT_LIMITS.chunkCharacters) {
      yield* reader.push(chunk.slice(from, from + FORMAT_LIMITS.chunkCharacters));
    }
  }
  yield* reader.end();
}

/** The header in the first characters of a file; undefined when they have none. For a format's `detect`. */
export function findHeader(head: string, options: CsvOptions): CsvHeader | undefined {
  const reader = new CsvReader(options);
  try {
    for (const record of reader.push(`${head}\n`)) if (record.type === "header") return record.header;
  } catch (error) {
    if (!(error instanceof StatementRefusedError)) throw error;
  }
  return undefined;
}

class CsvReader {
  readonly #options: CsvOptions;
  readonly #splitter = new LineSplitter();
  /** The lines before the header, divided, for the sentence of a refusal. */
  readonly #preamble: (readonly string[])[] = [];
  #columns: readonly string[] | undefined;
  #width: RowWidth | undefined;
  #framer: RecordFramer | undefined;

  constructor(options: CsvOptions) {
    this.#options = options;
    if (options.header !== "none") return;
    if (options.delimiter === undefined) throw new Error("CSV without a header needs a delimiter.");
    this.#framer = new RecordFramer(options.delimiter, undefined);
  }

  *push(chunk: string): Generator<CsvRecord> {
    yield* this.#read(this.#splitter.push(chunk));
  }

  *end(): Generator<CsvRecord> {
    yield* this.#read(this.#splitter.end());
    if (this.#framer === undefined) throw this.#noHeader();
    for (const row of this.#framer.end()) yield* this.#recordsOf(row);
  }

  *#read(lines: readonly PhysicalLine[]): Generator<CsvRecord> {
    let rest = lines;
    if (this.#framer === undefined) {
      const found = this.#findHeader(lines);
      if (found === undefined) return;
      const { header, below } = found;
      this.#columns = header.columns;
      this.#width = new RowWidth(header.columns, header.delimiter);
      this.#framer = new RecordFramer(header.delimiter, this.#width);
      yield { type: "header", header };
      rest = below;
    }
    for (const row of this.#framer.push(rest)) yield* this.#recordsOf(row);
  }

  #findHeader(lines: readonly PhysicalLine[]) {
    for (const [index, line] of lines.entries()) {
      const header = this.#headerIn(line);
      if (header !== undefined) return { header, below: lines.slice(index + 1) };
      if (this.#preamble.length >= FORMAT_LIMITS.preambleLines) throw this.#noHeader();
    }
    return undefined;
  }

  #headerIn({ text, number }: PhysicalLine): CsvHeader | undefined {
    const { delimiter, header } = this.#options;
    if (header === "none") return undefined;
    if (text.length > FORMAT_LIMITS.headCharacters) {
      this.#preamble.push([]);
      return undefined;
    }
    const delimiters = delimiter === undefined ? DELIMITERS : [delimiter];
    const divided = delimiters
      .map((candidate) => ({ delimiter: candidate, columns: divideRow(text, candidate) ?? [] }))
      .toSorted((first, second) => second.columns.length - first.columns.length);
    const most = divided[0]?.columns.length ?? 0;
    if (most > FORMAT_LIMITS.columns) throw tooManyColumns(number, most);
    const accepted = divided.filter(({ columns }) => columns.length > 0 && header.accepts(columns, number));
    const [best, second] = accepted;
    this.#preamble.push(divided[0]?.columns ?? []);
    if (best === undefined) return undefined;
    if (second !== undefined && second.columns.length === best.columns.length) throw undecided(number);
    return { position: number, ...best };
  }

  #noHeader(): StatementRefusedError {
    const { header } = this.#options;
    if (header === "none") throw new Error("A file without a header has no missing header.");
    return header.refusal(this.#preamble);
  }

  *#recordsOf({ position, raw, fields }: FramedRow): Generator<CsvRecord> {
    if (fields === undefined) {
      yield malformed({ position, column: "", reason: "A quote is in the wrong place or is never closed.", raw });
    } else if (fields.every(isBlank)) return;
    else if (this.#isHeader(fields)) yield { type: "repeated_header", position };
    else if (this.#width?.fits(fields) ?? true) yield { type: "row", row: { position, fields, raw } };
    else {
      const reason = `The row has ${fields.length} fields, and the header has ${this.#columns?.length} columns.`;
      yield malformed({ position, column: this.#columns?.[fields.length] ?? "", reason, raw });
    }
  }

  #isHeader(fields: readonly string[]): boolean {
    const columns = this.#columns;
    if (columns === undefined) return false;
    const count = Math.max(columns.length, fields.length);
    // One of them may end with a delimiter.
    return Array.from({ length: count }).every((_, index) => (fields[index] ?? "") === (columns[index] ?? ""));
  }
}

const isBlank = (field: string): boolean => field.trim() === "";

function malformed(line: MalformedLine): CsvRecord {
  return { type: "malformed", malformed: { ...line, raw: cutTo(FORMAT_LIMITS.rawCharacters, line.raw) } };
}

function tooManyColumns(position: number, columns: number): StatementRefusedError {
  const sentence = `Line ${position} has ${columns} columns, and the header of a statement has ${FORMAT_LIMITS.columns} at most; upload the file as the provider made it.`;
  return new StatementRefusedError("too_large", sentence);
}

function undecided(position: number): StatementRefusedError {
  const sentence = `Line ${position} can be divided by several delimiters; declare the delimiter.`;
  return new StatementRefusedError("mapping_refused", sentence);
}
