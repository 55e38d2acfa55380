/** Tests of mappings: their progress and their results. */
import type { ExpiredRows, Json, Queryable } from "../../db/pool.ts";

export interface MappingTestRow {
  readonly test_id: number;
  readonly import_id: number;
  readonly mapping_id: number | null;
  readonly status: "running" | "done" | "refused" | "failed";
  readonly status_code: string | null;
  readonly status_detail: string | null;
  readonly read_bytes: number;
  readonly size_bytes: number;
  readonly lines: number;
  readonly malformed: number;
  readonly skipped: number;
  readonly totals: unknown;
  readonly from_date: string | null;
  readonly to_date: string | null;
  readonly malformed_rows: unknown;
  readonly started_by: number;
  readonly started_at: Date;
  readonly ended_at: Date | null;
  /** The test counts as running, but has reported nothing for so long that its process must have ended. */
  readonly is_lost: boolean;
}

export async function insertMappingTest(
  sql: Queryable,
  test: {
    readonly organizationId: number;
    readonly importId: number;
    readonly mappingId: number | undefined;
    readonly startedBy: number;
  },
): Promise<number> {
  const [row] = await sql<[{ test_id: number }]>`
    insert into mapping_tests (organization_id, import_id, mapping_id, started_by)
    values (${test.organizationId}, ${test.importId}, ${test.mappingId ?? null}, ${test.startedBy}) returning test_id`;
  return row.test_id;
}

interface MappingTestProgress {
  readonly readBytes: number;
  readonly lines: number;
  readonly malformed: number;
  readonly skipped: number;
}

export async function writeMappingTest(
  sql: Queryable,
  testId: number,
  { readBytes, lines, malformed, skipped }: MappingTestProgress,
): Promise<void> {
  await sql`
    update mapping_tests set read_bytes = ${readBytes}, lines = ${lines}, malformed = ${malformed}, skipped = ${skipped},
      seen_at = now()
    where test_id = ${testId} and status = 'running'`;
}

export interface MappingTestEnd extends MappingTestProgress {
  readonly status: "done" | "refused" | "failed";
  readonly code: string | null;
  readonly detail: string | null;
  readonly totals: readonly Json[];
  readonly malformedRows: readonly Json[];
  readonly fromDate: string | null;
  readonly toDate: string | null;
}

export async function endMappingTest(sql: Queryable, testId: number, end: MappingTestEnd): Promise<void> {
  await sql`
    update mapping_tests set status = ${end.status}, status_code = ${end.code}, status_detail = ${end.detail},
      read_bytes = ${end.readBytes}, lines = ${end.lines}, malformed = ${end.malformed}, skipped = ${end.skipped},
      totals = ${sql.json(end.totals)}, malformed_rows = ${sql.json(end.malformedRows)}, from_date = ${end.fromDate},
      to_date = ${end.toDate}, seen_at = now(), ended_at = now()
    where test_id = ${testId} and status = 'running'`;
}

export async function getMappingTest(
  sql: Queryable,
  key: { readonly organizationId: number; readonly testId: number; readonly lostAfterMs: number },
): Promise<MappingTestRow | undefined> {
  const [row] = await sql<MappingTestRow[]>`
    select t.test_id, t.import_id, t.mapping_id, t.status, t.status_code, t.status_detail, t.read_bytes, i.size_bytes, t.lines,
      t.malformed, t.skipped, t.totals, t.from_date::text as from_date, t.to_date::text as to_date, t.malformed_rows,
      t.started_by, t.started_at, t.ended_at,
      t.status = 'running' and t.seen_at < now() - ${key.lostAfterMs}::float8 * interval '1 ms' as is_lost
    from mapping_tests t join statement_imports i using (import_id)
    where t.organization_id = ${key.organizationId} and t.test_id = ${key.testId}`;
  return row;
}

/** Deletes up to `rows` tests that are past their retention. */
export async function removeMappingTests(sql: Queryable, { olderThanDays, rows }: ExpiredRows): Promise<number> {
  const removed = await sql`
    delete from mapping_tests where test_id in (
      select test_id from mapping_tests where started_at < now() - make_interval(days => ${olderThanDays})
      order by started_at limit ${rows})`;
  return removed.count;
}
