/** Rows of CSV (RFC 4180) that a spreadsheet opens as data: no cell is a formula. */

export type Cell = string | number | boolean | null;

/** A spreadsheet takes a cell with one of these at its start for a formula; those of full width too. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/u;
/** Where a language has decimal commas, a spreadsheet divides at semicolons, and a cell can begin in the middle of ours. */
const FORMULA_INSIDE = /(?<=[;\t\r\n]["\s]*)[=+\-@＝＋－＠]/gu;
const NUMBER = /^-?\d+(?:\.\d+)?$/;
const NEEDS_QUOTES = /[",\r\n]/;

function cellText(cell: Cell): string {
  const text = cell === null ? "" : String(cell);
  const marked = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  const harmless = marked.replaceAll(FORMULA_INSIDE, "'$&");
  return NEEDS_QUOTES.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

export const csvRow = (cells: readonly Cell[]): string => `${cells.map(cellText).join(",")}\r\n`;
