/** Rows of CSV (RFC 4180) that a spreadsheet opens as data: no cell is a formula. */

export type Cell = string | number | boolean | null;

/** A spreadsheet takes a cell with one of these at its start for a formula; those of full width too. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/u;
const NUMBER = /^-?\d+(?:\.\d+)?$/;
const NEEDS_QUOTES = /[",\r\n]/;

function cellText(cell: Cell): string {
  const text = cell === null ? "" : String(cell);
  const harmless = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return NEEDS_QUOTES.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

export const csvRow = (cells: readonly Cell[]): string => `${cells.map(cellText).join(",")}\r\n`;
