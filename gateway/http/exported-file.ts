/** Exports all results of a list's filter as one file. The server makes it while it sends it, one page at a time. */
import { z } from "zod";
import type { Reply } from "./handler-context.ts";

const FORMATS = ["csv", "json"] as const;
type ExportFormat = (typeof FORMATS)[number];
export const exportFormatSchema = z
  .enum(FORMATS)
  .meta({ id: "ExportFormat" })
  .default("csv")
  .meta({
    override: { default: "csv" },
    description: "`csv` for spreadsheets, or `json`: the objects of the list, all in one array.",
  });

export const CSV_TYPE = "text/csv; charset=utf-8";
/** A part of the description of every export. */
export const EXPORT_DESCRIPTION =
  "All of it in one answer. One that breaks off, for example because the session has ended, is not complete. In CSV no cell is a formula.";
/** Of the exports with columns in minor units. */
export const MINOR_COLUMNS = "The columns that end with `_minor` have the amounts in minor units.";

export interface Exported {
  readonly json: Readonly<Record<string, unknown>>;
  /** Amounts in minor units, for programs, in addition to the decimals. */
  readonly minor: Readonly<Record<string, string | null>>;
}

export interface ExportColumns {
  readonly columns: readonly string[];
  readonly minor: readonly string[];
}

interface ExportedFile {
  /** The name of the file that a browser stores. */
  readonly name: string;
  readonly format: ExportFormat;
  readonly columns: ExportColumns;
  readonly pages: AsyncIterable<readonly Exported[]>;
}

export function exportedFile({ name, format, columns, pages }: ExportedFile): Reply {
  const headers = {
    "Content-Type": format === "csv" ? CSV_TYPE : "application/json",
    "Content-Disposition": `attachment; filename="${name}.${format}"`,
  };
  return { status: 200, headers, stream: format === "csv" ? csvOf(columns, pages) : jsonOf(pages) };
}

async function* jsonOf(pages: ExportedFile["pages"]): AsyncIterable<string> {
  let before = "[";
  for await (const page of pages) {
    const texts = page.map(({ json }) => JSON.stringify(json));
    if (texts.length === 0) continue;
    yield `${before}${texts.join(",\n")}`;
    before = ",\n";
  }
  yield before === "[" ? "[]\n" : "]\n";
}

async function* csvOf({ columns, minor }: ExportColumns, pages: ExportedFile["pages"]): AsyncIterable<string> {
  const head = csvRow([...columns, ...minor]);
  let isFirst = true;
  for await (const page of pages) {
    const rows = page.map((each) =>
      csvRow([
        ...columns.map((column) => cellOf(each.json[column])),
        ...minor.map((column) => each.minor[column] ?? null),
      ]),
    );
    yield `${isFirst ? head : ""}${rows.join("")}`;
    isFirst = false;
  }
}

/** An object or array becomes JSON in its cell. */
function cellOf(value: unknown): Cell {
  if (value === undefined || value === null) return null;
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  return JSON.stringify(value);
}

/** Cells of CSV (RFC 4180) that a spreadsheet opens as data: no cell is a formula. */
type Cell = string | number | boolean | null;

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
