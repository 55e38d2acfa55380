/** A field that cannot be read: its row is malformed, and the rows after it are read. */
import { type AmountReading, type DecimalNotation, readDecimal } from "../amounts.ts";
import type { StatementRecord } from "../format.ts";
import { cutTo, malformedRecord } from "../records.ts";
import type { CsvRow } from "./read-csv.ts";

export class FieldProblem extends Error {
  override readonly name = "FieldProblem";
  readonly column: string;

  constructor(column: string, reason: string) {
    super(reason);
    this.column = column;
  }
}

/** The line of a row, or the row as malformed. */
export function recordOfRow(row: CsvRow, lineOf: (row: CsvRow) => StatementRecord): StatementRecord {
  try {
    return lineOf(row);
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    return malformedRecord({ position: row.position, column: error.column, reason: error.message, raw: row.raw });
  }
}

export function minorOf(column: string, reading: AmountReading): bigint {
  if ("reason" in reading) throw new FieldProblem(column, reading.reason);
  return reading.minor;
}

export function decimalOf(column: string, text: string, currency: string, notation?: DecimalNotation): bigint {
  return minorOf(column, readDecimal(text, currency, notation));
}

/** A value in the sentence of a reason, in quotes and short. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 40 ? `${cutTo(40, text)}…` : text);
}
