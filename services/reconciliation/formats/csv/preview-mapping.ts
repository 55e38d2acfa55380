/** The first rows of a file as a mapping reads them: each row as it is in the file, beside its line or the reason. */
import type { MalformedLine, StatementLine } from "../format.ts";
import type { HeadedRow, MappedRow } from "./mapped.ts";

export interface PreviewRow {
  readonly position: number;
  readonly raw: string;
  /** The columns of the file with their values; none for a row that cannot be divided. */
  readonly fields: readonly { readonly column: string; readonly value: string }[];
  readonly outcome:
    | { readonly type: "line"; readonly line: StatementLine }
    | { readonly type: "malformed"; readonly malformed: MalformedLine }
    /** By a rule of the mapping. */
    | { readonly type: "skipped" };
}

/** The skipped rows included. Throws `StatementRefusedError` as what reads the rows does. */
export async function* previewRows(headed: AsyncIterable<HeadedRow>): AsyncIterable<PreviewRow> {
  for await (const { header, ...row } of headed) {
    if (row.record?.type === "next_file") continue;
    const { position, raw, fields } = row;
    const named = fields.map((value, index) => ({ column: header.columns[index] ?? "", value }));
    yield { position, raw, fields: named, outcome: outcomeOf(row) };
  }
}

function outcomeOf({ record }: MappedRow): PreviewRow["outcome"] {
  return record?.type === "line" || record?.type === "malformed" ? record : { type: "skipped" };
}
