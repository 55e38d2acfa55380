import type { ConformanceCheck, ConformanceRun } from "../../bus/messages/conformance-runs.ts";
import type { Database, Queryable, Transaction } from "../../db/pool.ts";

export interface ConformanceRunRow {
  readonly run_id: number;
  readonly sandbox_id: number;
  readonly user_id: number;
  readonly session_id: number;
  readonly status: ConformanceRun["status"];
  readonly started_at: Date;
  readonly ended_at: Date | null;
  readonly passed: number;
  readonly failed: number;
  readonly not_run: number;
  readonly left_behind: string[];
  readonly suite_version: string | null;
  readonly contract_sha256: string | null;
  readonly problem: string | null;
}

/** What a run's end stores. */
export interface RunEnd {
  readonly status: Exclude<ConformanceRun["status"], "running">;
  readonly leftBehind: readonly string[];
  readonly suiteVersion: string | null;
  readonly contractSha256: string | null;
  readonly problem: string | null;
}

/** A run whose lease is over counts as interrupted: its process has ended, at the end of the lease at the latest. */
const columns = (sql: Queryable) => sql`
  run_id, sandbox_id, user_id, session_id, started_at, left_behind, suite_version, contract_sha256, problem,
  case when status = 'running' and leased_until < now() then leased_until else ended_at end as ended_at,
  case when status = 'running' and leased_until < now() then 'interrupted' else status end as status,
  jsonb_array_length(jsonb_path_query_array(checks, '$[*] ? (@.outcome == "passed")')) as passed,
  jsonb_array_length(jsonb_path_query_array(checks, '$[*] ? (@.outcome == "failed")')) as failed,
  jsonb_array_length(jsonb_path_query_array(checks, '$[*] ? (@.outcome == "not_run")')) as not_run`;

export async function startConformanceRun(
  sql: Transaction,
  run: {
    readonly organizationId: number;
    readonly sandboxId: number;
    readonly userId: number;
    readonly sessionId: number;
    readonly leaseMs: number;
  },
): Promise<ConformanceRunRow> {
  const { organizationId, sandboxId, userId, sessionId, leaseMs } = run;
  const [row] = await sql<[ConformanceRunRow]>`
    insert into conformance_runs (organization_id, sandbox_id, user_id, session_id, leased_until)
    values (${organizationId}, ${sandboxId}, ${userId}, ${sessionId}, now() + ${leaseMs}::float8 * interval '1 millisecond')
    returning ${columns(sql)}`;
  return row;
}

/** Ends the runs of a sandbox whose process has ended, and returns the sessions that these runs may have left open. */
export async function endInterruptedRuns(
  sql: Transaction,
  sandboxId: number,
): Promise<readonly Pick<ConformanceRunRow, "user_id" | "session_id">[]> {
  return sql<Pick<ConformanceRunRow, "user_id" | "session_id">[]>`
    update conformance_runs set status = 'interrupted', ended_at = now(), problem = 'The process that ran it has ended.'
    where sandbox_id = ${sandboxId} and status = 'running' and leased_until < now() returning user_id, session_id`;
}

export async function isRunning(sql: Queryable, sandboxId: number): Promise<boolean> {
  const rows = await sql`select from conformance_runs where sandbox_id = ${sandboxId} and status = 'running'`;
  return rows.length > 0;
}

/** Keeps the newest runs of an organization, those under way included. Deletes the older ones that have ended. */
export async function deleteOlderRuns(sql: Transaction, organizationId: number, keep: number): Promise<void> {
  await sql`
    delete from conformance_runs where status <> 'running' and run_id in (
      select run_id from conformance_runs where organization_id = ${organizationId}
      order by run_id desc offset ${keep})`;
}

/** Up to `limit` runs of the organization before one of them, the newest first. */
export async function listConformanceRuns(
  sql: Database,
  page: { readonly organizationId: number; readonly beforeId: number | undefined; readonly limit: number },
): Promise<ConformanceRunRow[]> {
  return sql<ConformanceRunRow[]>`
    select ${columns(sql)} from conformance_runs
    where organization_id = ${page.organizationId} and (${page.beforeId ?? null}::bigint is null or run_id < ${page.beforeId ?? null})
    order by run_id desc limit ${page.limit}`;
}

export async function getConformanceRun(
  sql: Queryable,
  organizationId: number,
  runId: number,
): Promise<(ConformanceRunRow & { readonly checks: ConformanceCheck[] }) | undefined> {
  const [row] = await sql<(ConformanceRunRow & { checks: ConformanceCheck[] })[]>`
    select ${columns(sql)}, checks from conformance_runs
    where organization_id = ${organizationId} and run_id = ${runId}`;
  return row;
}

export async function endConformanceRun(sql: Queryable, organizationId: number, runId: number): Promise<void> {
  await sql`
    update conformance_runs set end_asked_at = coalesce(end_asked_at, now())
    where organization_id = ${organizationId} and run_id = ${runId} and status = 'running'`;
}

/**
 * Renews the lease of the run, and stores all its checks when there are new ones. Returns false when the run must end,
 * because an owner has asked for that. It stores all checks each time, so that a repetition after an unknown outcome is
 * safe.
 */
export async function renewRun(
  sql: Database,
  runId: number,
  { checks, leaseMs }: { readonly checks: readonly ConformanceCheck[] | undefined; readonly leaseMs: number },
): Promise<boolean> {
  const [row] = await sql<{ goes_on: boolean }[]>`
    update conformance_runs
    set checks = coalesce(${checks === undefined ? null : sql.json([...checks])}, checks),
      leased_until = now() + ${leaseMs}::float8 * interval '1 millisecond'
    where run_id = ${runId} and status = 'running' returning end_asked_at is null as goes_on`;
  return row?.goes_on ?? false;
}

export async function endRun(sql: Database, runId: number, end: RunEnd): Promise<void> {
  await sql`
    update conformance_runs
    set status = ${end.status}, ended_at = now(), left_behind = ${[...end.leftBehind]}, suite_version = ${end.suiteVersion},
      contract_sha256 = ${end.contractSha256}, problem = ${end.problem}
    where run_id = ${runId} and status = 'running'`;
}
