/** Rows of a file that are no line. */
import type { Queryable } from "../../db/pool.ts";
import { storedText } from "../../db/stored-text.ts";
import type { MalformedLine } from "../formats/format.ts";

export async function insertMalformed(
  sql: Queryable,
  importId: number,
  malformed: readonly MalformedLine[],
): Promise<void> {
  const rows = malformed.map(({ position, column, reason, raw }) => ({
    import_id: importId,
    position,
    column_name: storedText(column),
    reason: storedText(reason),
    raw: storedText(raw),
  }));
  await sql`
    insert into statement_malformed (import_id, position, column_name, reason, raw)
    select import_id, position, column_name, reason, raw
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
        as row (import_id bigint, position bigint, column_name text, reason text, raw text)
    on conflict (import_id, position) do nothing`;
}

/** What earlier attempts have left. */
export async function clearMalformed(sql: Queryable, importId: number): Promise<void> {
  await sql`delete from statement_malformed where import_id = ${importId}`;
}
