/**
 * PayPal's settlement report (STL) and transaction detail report (TRR). The first field of each row is its type:
 *
 *   RH report header · FH file header ─┬─ SH section header · CH column header · SB body rows
 *                                      │  SF section totals, one for each currency · SC count
 *                                      └─ …
 *   RF report totals, one for each currency · RC count · FF file footer
 *
 * Amounts are whole numbers of hundredths without a sign; CR or DR beside each gives its direction. Totals may be missing.
 */
import { type BoundHeader, bindHeader } from "../csv/dictionary.ts";
import { FieldProblem, minorOf, quoted, recordOfRow } from "../csv/field-problem.ts";
import { type CsvRow, readCsv } from "../csv/read-csv.ts";
import { PAYPAL_COLUMNS, type PaypalField } from "../dictionaries/paypal-columns.ts";
import { type StatementFormat, type StatementRecord, StatementRefusedError } from "../format.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { headerRecord, malformedRecord, NEXT_FILE } from "../records.ts";
import { BodyRows, paypalDate, readHundredths } from "./body-rows.ts";
import { ReportTotals } from "./report-totals.ts";

export const paypalStl: StatementFormat = {
  name: "paypal_stl",
  version: PAYPAL_COLUMNS.version,
  title: "PayPal settlement report (STL)",
  referenceScope: "ever",
  detect: (head) => columnsIn(head)?.has("status") === false,
  parse: (text) => parseTyped(text, { needsStatus: false }),
};

export const paypalTrr: StatementFormat = {
  name: "paypal_trr",
  version: PAYPAL_COLUMNS.version,
  title: "PayPal transaction detail report (TRR)",
  referenceScope: "ever",
  detect: (head) => columnsIn(head)?.has("status") === true,
  parse: (text) => parseTyped(text, { needsStatus: true }),
};

interface TypedOptions {
  /** A file without the column of the status is no transaction detail report. */
  readonly needsStatus: boolean;
}

/** A file may begin with any header row: people pass on parts of a report without the rows before. */
const FIRST_ROW = /^\ufeff?\s*"?(?:RH|FH|SH|CH)"?([,\t;|])/;

async function* parseTyped(text: AsyncIterable<string>, options: TypedOptions): AsyncGenerator<StatementRecord> {
  const { delimiter, whole } = await delimiterOf(text);
  const report = new TypedReport(options);
  for await (const record of readCsv(whole, { delimiter, header: "none" })) {
    if (record.type === "malformed") yield record;
    else if (record.type === "row") yield* report.row(record.row);
  }
  yield* report.end();
}

/** The delimiter of the first row, and the whole text, its beginning included. */
async function delimiterOf(text: AsyncIterable<string>) {
  const rest = text[Symbol.asyncIterator]();
  let head = "";
  while (head.length < FORMAT_LIMITS.firstCharacters) {
    const { done, value } = await rest.next();
    if (done === true) break;
    head += value;
  }
  const [, delimiter] = FIRST_ROW.exec(head) ?? [];
  if (delimiter === undefined) {
    await rest.return?.();
    const sentence = "The file does not begin with a row of the type RH, FH, SH or CH; declare the format that it has.";
    throw new StatementRefusedError("not_this_format", sentence);
  }
  async function* whole(): AsyncGenerator<string> {
    try {
      yield head;
      for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
    } finally {
      await rest.return?.();
    }
  }
  return { delimiter, whole: whole() };
}

/** The columns of the first CH row of a file that begins like such a report. */
function columnsIn(head: string): BoundHeader<PaypalField> | undefined {
  const [, delimiter] = FIRST_ROW.exec(head) ?? [];
  if (delimiter === undefined) return undefined;
  for (const line of head.split(/\r\n|\n|\r/)) {
    // Header rows have no delimiters and no quotes inside their fields.
    const [type, ...columns] = line.split(delimiter).map((name) => name.replace(/^\ufeff?\s*"|"\s*$/g, ""));
    if (type?.trim() === "CH") return bindHeader(columns, PAYPAL_COLUMNS);
  }
  return undefined;
}

class TypedReport {
  readonly #options: TypedOptions;
  #totals = new ReportTotals();
  /** The number of the current file; 0 before the first. */
  #fileNumber = 0;
  #account = "";
  #body: BodyRows | undefined;
  /** Rows of the section, also malformed ones, for its count. */
  #sectionRows = 0;
  /** Of a file whose footer has not come. */
  #fileHeader: CsvRow | undefined;
  #hasFooter = false;

  constructor(options: TypedOptions) {
    this.#options = options;
  }

  *row(row: CsvRow): Generator<StatementRecord> {
    const type = field(row, 0).toUpperCase();
    if (type === "SB") {
      this.#sectionRows += 1;
      yield recordOfRow(row, () => this.#bodyRow(row));
    } else if (type === "RH") this.#account = field(row, 3);
    else if (type === "FH") yield* this.#beginFile(row);
    else if (type === "FF") {
      this.#fileHeader = undefined;
      this.#hasFooter = true;
    } else if (type === "SC") yield* this.#sectionCount(row);
    else if (type === "SH") yield this.#sectionHeader(row);
    else if (type === "CH") this.#columnHeader(row);
    else if (type === "SF" || type === "RF") yield* this.#footer(row, type);
    else if (type !== "RC") yield unknownType(row, type);
  }

  /** A file that does not continue the previous one is of another report, or is repeated. */
  *#beginFile(row: CsvRow): Generator<StatementRecord> {
    yield* this.#endFile();
    const number = Number(field(row, 1));
    const isNext = this.#fileNumber > 0 && number === this.#fileNumber + 1;
    if (this.#fileNumber > 0 && !isNext) {
      yield* this.#totals.end();
      yield NEXT_FILE;
      this.#totals = new ReportTotals();
      this.#body = undefined;
    }
    if (!isNext) this.#totals.startAtFile(number);
    this.#fileNumber = number;
    this.#fileHeader = row;
  }

  *end(): Generator<StatementRecord> {
    yield* this.#totals.end();
    // A report without transactions may have no column headers, and is complete even so.
    if (this.#body === undefined && !this.#hasFooter) {
      const sentence =
        "The file has no row with column headers (CH), so a part of it is missing; upload the whole file.";
      throw new StatementRefusedError("truncated", sentence);
    }
    yield* this.#endFile();
  }

  *#endFile(): Generator<StatementRecord> {
    if (this.#fileHeader === undefined) return;
    const { position, raw } = this.#fileHeader;
    this.#fileHeader = undefined;
    const reason = "The file has no footer (FF), so its end may be missing; download it again.";
    yield malformedRecord({ position, column: "", reason, raw });
  }

  /** A count lower than the number of rows is no problem: a section may continue from the previous file. */
  *#sectionCount(row: CsvRow): Generator<StatementRecord> {
    const stated = field(row, 1);
    const missing = /^\d{1,15}$/.test(stated) ? Number(stated) - this.#sectionRows : 0;
    if (missing <= 0 || !this.#totals.isWholeSection) return;
    const reason = `The section states ${stated} rows and has ${this.#sectionRows}; download the file again.`;
    yield malformedRecord({ position: row.position, column: "", reason, raw: row.raw });
  }

  #sectionHeader(row: CsvRow): StatementRecord {
    const [from, to, account] = [1, 2, 3].map((index) => field(row, index));
    this.#account = account ?? "";
    this.#sectionRows = 0;
    this.#totals.beginSection();
    return headerRecord({
      account: this.#account,
      currency: undefined,
      fromDate: paypalDate(from ?? "")?.date,
      toDate: paypalDate(to ?? "")?.date,
    });
  }

  #columnHeader(row: CsvRow): void {
    const header = bindHeader(row.fields.slice(1), PAYPAL_COLUMNS);
    if (header === undefined) {
      const sentence = `Line ${row.position} has column headers that ${PAYPAL_COLUMNS.report} do not have; store a mapping for this header and import the file with it.`;
      throw new StatementRefusedError("unknown_header", sentence);
    }
    if (this.#options.needsStatus && !header.has("status")) {
      const sentence = `The section in line ${row.position} has no column "Transactional Status", so the file is no transaction detail report; declare the settlement report (paypal_stl).`;
      throw new StatementRefusedError("not_this_format", sentence);
    }
    this.#body = new BodyRows(header);
  }

  #bodyRow(row: CsvRow): StatementRecord {
    if (this.#body === undefined) throw new FieldProblem("", "The row has no column headers (CH) before it.");
    const { line, sums } = this.#body.read({ ...row, fields: row.fields.slice(1) }, this.#account);
    if (line.type === "line") this.#totals.add(sums);
    return line;
  }

  *#footer(row: CsvRow, type: "SF" | "RF"): Generator<StatementRecord> {
    const currency = field(row, 1).toUpperCase();
    // A report without transactions has only a count here.
    if (/^\d*$/.test(currency)) return;
    try {
      const stated = SUMS.map((name, index) => minorOf(name, readHundredths(field(row, index + 2), currency)));
      const [grossCredits = 0n, grossDebits = 0n, feeCredits = 0n, feeDebits = 0n] = stated;
      yield* this.#totals.footer(type, currency, { grossCredits, grossDebits, feeCredits, feeDebits });
    } catch (error) {
      if (!(error instanceof FieldProblem)) throw error;
      const { column, message: reason } = error;
      yield malformedRecord({ position: row.position, column, reason, raw: row.raw });
    }
  }
}

/** In the order of the fields of a footer, after its type and currency. */
const SUMS = [
  "total gross amount of credits",
  "total gross amount of debits",
  "total fees of credits",
  "total fees of debits",
] as const;

function unknownType(row: CsvRow, type: string): StatementRecord {
  const reason = `${quoted(type)} is no type of row that the report has.`;
  return malformedRecord({ position: row.position, column: "", reason, raw: row.raw });
}

function field(row: CsvRow, index: number): string {
  return (row.fields[index] ?? "").replace(/^\ufeff/, "").trim();
}
