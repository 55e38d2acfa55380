/**
 * Finds where CSV records begin and end. A record is one physical line, or more where a quoted field holds line breaks. csv-parse
 * divides a record into fields; it does not find the records: with it, one quote that is never closed would take the rest of
 * the file into one record, and its line numbers count a `\r\n` in a field twice. Here a broken row costs only one physical line.
 *
 *   line with an even count of quotes ──────────────► record
 *   line with an odd count ──► open ──┬─ even again ► record, when csv-parse accepts it
 *                                     └─ else, at the limits or at the end: the first line is malformed,
 *                                        and the next lines are framed again
 */
import { parse } from "csv-parse/sync";
import { FORMAT_LIMITS } from "../limits.ts";
import type { PhysicalLine } from "./physical-lines.ts";
import type { RowWidth } from "./row-width.ts";

export interface FramedRow {
  /** The physical line of its first character. */
  readonly position: number;
  /** As in the file, without the line's end. */
  readonly raw: string;
  /** Undefined when it cannot be divided. */
  readonly fields: readonly string[] | undefined;
}

const QUOTE = '"';
/** An open record is closed by the line that passes the limit, at the latest; csv-parse counts bytes of UTF-8. */
const RECORD_BYTES = 2 * 3 * FORMAT_LIMITS.lineCharacters;

export class RecordFramer {
  readonly #delimiter: string;
  /** A record of several lines with another count of fields is really two broken rows and the lines between them. */
  readonly #width: RowWidth | undefined;
  #rows: FramedRow[] = [];
  /** Indexes of the rows that have quotes, which csv-parse divides together. */
  #quoted: number[] = [];
  #open: PhysicalLine[] = [];
  #openCharacters = 0;

  constructor(delimiter: string, width: RowWidth | undefined) {
    this.#delimiter = delimiter;
    this.#width = width;
  }

  /** The rows that these lines complete. */
  push(lines: readonly PhysicalLine[]): readonly FramedRow[] {
    for (const line of lines) this.#add(line);
    return this.#takeRows();
  }

  end(): readonly FramedRow[] {
    while (this.#open.length > 0) this.#abandonOpen();
    return this.#takeRows();
  }

  #add(line: PhysicalLine): void {
    const quotes = line.text.includes(QUOTE) ? countQuotes(line.text) : 0;
    if (this.#open.length > 0) this.#addToOpen(line, quotes);
    else if (quotes % 2 === 1) this.#begin(line);
    else if (line.text.trim() !== "") this.#addRow(line, quotes > 0);
  }

  #addRow({ number, text }: PhysicalLine, isQuoted: boolean): void {
    if (isQuoted) this.#quoted.push(this.#rows.length);
    // Without a quote, each delimiter divides.
    const fields = isQuoted ? undefined : text.split(this.#delimiter);
    this.#rows.push({ position: number, raw: text, fields });
  }

  #begin(line: PhysicalLine): void {
    this.#open = [line];
    this.#openCharacters = line.text.length;
  }

  #addToOpen(line: PhysicalLine, quotes: number): void {
    this.#open.push(line);
    this.#openCharacters += line.text.length;
    if (quotes % 2 === 1) this.#close();
    else if (this.#openCharacters > FORMAT_LIMITS.lineCharacters || this.#open.length >= FORMAT_LIMITS.recordLines) {
      this.#abandonOpen();
    }
  }

  #close(): void {
    const lines = this.#open;
    const raw = lines.map(({ text, ending }, index) => (index + 1 < lines.length ? text + ending : text)).join("");
    const fields = divide([raw], this.#delimiter)?.[0];
    if (fields === undefined || this.#width?.fits(fields) === false) return this.#abandonOpen();
    this.#open = [];
    this.#rows.push({ position: lines[0]?.number ?? 0, raw, fields });
  }

  /** The open lines are not a record: the first line is malformed, and the others are framed again. */
  #abandonOpen(): void {
    const [first, ...others] = this.#open;
    this.#open = [];
    if (first !== undefined) this.#rows.push({ position: first.number, raw: first.text, fields: undefined });
    // Of the others only the last can have an odd count of quotes, so each line is framed again once at most.
    for (const line of others) this.#add(line);
  }

  #takeRows(): readonly FramedRow[] {
    const rows = this.#rows;
    const quoted = this.#quoted;
    this.#rows = [];
    this.#quoted = [];
    const raws = quoted.map((index) => rows[index]?.raw ?? "");
    const divided = divide(raws, this.#delimiter) ?? raws.map((raw) => divide([raw], this.#delimiter)?.[0]);
    quoted.forEach((index, order) => {
      const row = rows[index];
      if (row !== undefined) rows[index] = { ...row, fields: divided[order] };
    });
    return rows;
  }
}

/** The fields of each record; undefined when csv-parse refuses one of them. */
function divide(records: readonly string[], delimiter: string): readonly (readonly string[])[] | undefined {
  if (records.length === 0) return [];
  try {
    const rows = parse(records.join("\n"), {
      delimiter,
      record_delimiter: "\n",
      columns: false,
      cast: false,
      max_record_size: RECORD_BYTES,
      // Counted by `readCsv`, whose sentence names both counts.
      relax_column_count: true,
    });
    return rows.length === records.length ? rows : undefined;
  } catch {
    return undefined;
  }
}

/** One row without its context, as in a search for the header: undefined when it cannot be divided. */
export function divideRow(text: string, delimiter: string): readonly string[] | undefined {
  return text.includes(QUOTE) ? divide([text], delimiter)?.[0] : text.split(delimiter);
}

function countQuotes(text: string): number {
  let count = 0;
  for (let index = text.indexOf(QUOTE); index >= 0; index = text.indexOf(QUOTE, index + 1)) count += 1;
  return count;
}
