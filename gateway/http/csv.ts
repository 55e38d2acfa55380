/** Writes rows of CSV (RFC 4180) in which a spreadsheet finds no formula. */

export type Cell = string | number | boolean | null;

/** A spreadsheet treats a cell that starts with one of these as a formula, including the full-width characters. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/u;
/** In languages with decimal commas, a spreadsheet separates cells at semicolons: a cell can then start inside of ours. */
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
