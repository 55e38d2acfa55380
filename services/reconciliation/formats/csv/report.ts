/** A provider's report as CSV: the rows below the header of a dictionary, each read by the report that the header begins. */
import type { StatementRecord } from "../format.ts";
import { NEXT_FILE } from "../records.ts";
import { type BoundHeader, bindHeader, dictionaryRule, type HeaderDictionary } from "./dictionary.ts";
import { type CsvRow, findHeader, readCsv } from "./read-csv.ts";

export interface CsvReport {
  row(row: CsvRow): Iterable<StatementRecord>;
  /** After the last row. */
  end(): Iterable<StatementRecord>;
}

/** Throws `StatementRefusedError`. */
export async function* readReport<Field extends string>(
  text: AsyncIterable<string>,
  dictionary: HeaderDictionary<Field>,
  begin: (header: BoundHeader<Field>) => CsvReport,
): AsyncIterable<StatementRecord> {
  let header: BoundHeader<Field> | undefined;
  let report: CsvReport | undefined;
  for await (const record of readCsv(text, { delimiter: undefined, header: dictionaryRule(dictionary) })) {
    if (record.type === "malformed") yield record;
    else if (record.type === "row") yield* report?.row(record.row) ?? [];
    else {
      if (record.type === "header") header = bound(record.header.columns, dictionary);
      else {
        yield* report?.end() ?? [];
        yield NEXT_FILE;
      }
      report = header && begin(header);
    }
  }
  yield* report?.end() ?? [];
}

/** The header of this dictionary in the first characters of a file. */
export function headerOf<Field extends string>(
  head: string,
  dictionary: HeaderDictionary<Field>,
): BoundHeader<Field> | undefined {
  const header = findHeader(head, { delimiter: undefined, header: dictionaryRule(dictionary) });
  return header === undefined ? undefined : bound(header.columns, dictionary);
}

function bound<Field extends string>(
  columns: readonly string[],
  dictionary: HeaderDictionary<Field>,
): BoundHeader<Field> {
  const header = bindHeader(columns, dictionary);
  if (header === undefined) throw new Error("A header that was accepted has no dictionary.");
  return header;
}
