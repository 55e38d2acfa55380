/** Runs, as they are stored: one SQL operation per function. */
import type { RUN_CHANGES } from "../../bus/messages/reconciliation-runs.ts";
import type { Database, Queryable, Transaction } from "../../db/pool.ts";
import { RUN_LIMITS } from "../limits.ts";

/** What a run is about; every step of it gets this. Days are `YYYY-MM-DD`. */
export interface RunScope {
  readonly runId: number;
  readonly organizationId: number;
  readonly accountId: number;
  readonly configId: number | null;
  readonly settlementDelayDays: number;
  readonly fromDate: string;
  readonly toDate: string;
}

interface RunTotals {
  readonly currency: string;
  readonly lines: number;
  readonly totalMinor: string;
  readonly matchedMinor: string;
  readonly differingMinor: string;
  readonly rejectedMinor: string;
}

export interface RunRow {
  readonly run_id: number;
  readonly account_id: number;
  readonly from_date: string;
  readonly to_date: string;
  readonly status: "running" | "done" | "failed";
  readonly step: string;
  readonly started_by: number | null;
  readonly started_at_ms: number;
  readonly ended_at_ms: number | null;
  readonly failure: string | null;
  readonly previous_run_id: number | null;
  readonly covered_from: string | null;
  readonly covered_to: string | null;
  readonly lines: number;
  readonly payments: number;
  readonly matched: number;
  readonly differing: number;
  readonly rejected: number;
  readonly differences: number;
  readonly totals: readonly RunTotals[];
  readonly input_hash: string | null;
  readonly result_hash: string | null;
}

const columns = (sql: Queryable) => sql`
  run_id, account_id, from_date::text as from_date, to_date::text as to_date, status, step, started_by,
  floor(extract(epoch from started_at) * 1000)::bigint as started_at_ms,
  floor(extract(epoch from ended_at) * 1000)::bigint as ended_at_ms, failure, previous_run_id,
  covered_from::text as covered_from, covered_to::text as covered_to, lines, payments, matched, differing, rejected, differences,
  totals, encode(input_hash, 'hex') as input_hash, encode(result_hash, 'hex') as result_hash`;

/** True when no other run of the account is under way; the transaction then holds the account until it ends. */
export async function lockAccount(sql: Transaction, accountId: number): Promise<boolean> {
  const [row] = await sql<{ locked: boolean }[]>`
    select pg_try_advisory_xact_lock(hashtextextended('reconciliation account ' || ${accountId}::bigint, 0)) as locked`;
  return row?.locked === true;
}

/** Accounts of one organization share the payments of terminals, so only one of their runs works at a time. */
export async function lockOrganization(sql: Transaction, organizationId: number): Promise<void> {
  await sql`set local lock_timeout = 0`;
  await sql`select pg_advisory_xact_lock(hashtextextended('reconciliation of ' || ${organizationId}::bigint, 0))`;
}

/** Begins a run; undefined where the organization has no such account. The caller holds the account. */
export async function insertRun(
  database: Database,
  run: Pick<RunScope, "organizationId" | "accountId" | "fromDate" | "toDate"> & {
    readonly startedBy: number | null;
  },
): Promise<RunScope | undefined> {
  const { organizationId, accountId, fromDate, toDate, startedBy } = run;
  return await database.begin(async (sql) => {
    // Their process has ended: the account was free.
    await sql`
      update reconciliation_runs set status = 'failed', ended_at = clock_timestamp(), failure = 'The process of the run has ended.'
      where account_id = ${accountId} and status = 'running'`;
    const [row] = await sql<
      {
        run_id: number;
        config_id: number | null;
        settlement_delay_days: number;
      }[]
    >`
      with account as (
        select a.*, covered_days(a.account_id, ${RUN_LIMITS.graceDays}) as covered,
          exists (select from statement_lines l where l.account_id = a.account_id and l.kind = 'payment') as shows_payments
        from statement_accounts a
        where a.organization_id = ${organizationId} and a.account_id = ${accountId}
      ),
      days as (
        -- A payment is missing only when no other statement can show it either. An account may have begun later than this one.
        select a.covered * coalesce((
          select range_intersect_agg(covered_days(r.account_id, ${RUN_LIMITS.graceDays}) + datemultirange(daterange(null, first_day)))
          from (
              select account_id from rival_accounts(a.account_id) where a.shows_payments
              union select account_id from rival_banks(a.account_id)) r
            cross join lateral (select min(i.from_date) as first_day from statement_imports i
              where i.account_id = r.account_id and i.status = 'imported') s), a.covered) as covered
        from account a
      ),
      started as (
        insert into reconciliation_runs (organization_id, account_id, from_date, to_date, started_by, previous_run_id,
          through_import_id, covered, covered_from, covered_to)
        select a.organization_id, a.account_id, ${fromDate}::date, ${toDate}::date, ${startedBy}::bigint, (
            select max(run_id) from reconciliation_runs p where p.account_id = a.account_id and p.status = 'done'
              and p.from_date <= ${toDate}::date and p.to_date >= ${fromDate}::date),
          (select max(import_id) from statement_imports i where i.account_id = a.account_id and i.status = 'imported'),
          d.covered, lower(shown.days), upper(shown.days) - 1
        from account a cross join days d
          cross join lateral (select d.covered * datemultirange(daterange(${fromDate}::date, ${toDate}::date, '[]')) as days) shown
        returning run_id, account_id
      )
      select s.run_id, a.config_id, a.settlement_delay_days from started s join account a using (account_id)`;
    return (
      row && {
        runId: row.run_id,
        organizationId,
        accountId,
        configId: row.config_id,
        settlementDelayDays: row.settlement_delay_days,
        fromDate,
        toDate,
      }
    );
  });
}

/** The first and the last day of the account's imported statements; undefined where the organization has no such account. */
export async function findCoveredDays(
  sql: Queryable,
  { organizationId, accountId }: { readonly organizationId: number; readonly accountId: number },
): Promise<{ readonly from_date: string | null; readonly to_date: string | null } | undefined> {
  const [row] = await sql<{ from_date: string | null; to_date: string | null }[]>`
    select min(i.from_date)::text as from_date, max(i.to_date)::text as to_date
    from statement_accounts a left join statement_imports i on i.account_id = a.account_id and i.status = 'imported'
    where a.organization_id = ${organizationId} and a.account_id = ${accountId} group by a.account_id`;
  return row;
}

/** Stores the progress outside of the run's transaction, so that it is visible while the run is under way. */
export async function writeStep(database: Database, runId: number, step: string): Promise<void> {
  await database`update reconciliation_runs set step = ${step} where run_id = ${runId} and status = 'running'`;
}

/** Its process knows the reason of a failure, also of a run that counted as dead between its rollback and this. */
export async function endRun(sql: Queryable, runId: number, failure: string | null): Promise<void> {
  await sql`
    update reconciliation_runs set status = case when ${failure}::text is null then 'done' else 'failed' end,
      ended_at = clock_timestamp(), failure = ${failure}
    where run_id = ${runId} and (status = 'running' or status = 'failed' and ${failure}::text is not null)`;
}

export async function getRun(
  sql: Queryable,
  key: { readonly organizationId: number; readonly runId: number },
): Promise<RunRow | undefined> {
  const [row] = await sql<RunRow[]>`
    select ${columns(sql)} from reconciliation_runs
    where organization_id = ${key.organizationId} and run_id = ${key.runId}`;
  return row;
}

/** Newest first. */
export async function listRuns(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly accountId: number | undefined;
    readonly beforeId: number | undefined;
    readonly limit: number;
  },
): Promise<readonly RunRow[]> {
  return await sql<RunRow[]>`
    select ${columns(sql)} from reconciliation_runs
    where organization_id = ${page.organizationId}
      and (${page.accountId ?? null}::bigint is null or account_id = ${page.accountId ?? null}::bigint)
      and (${page.beforeId ?? null}::bigint is null or run_id < ${page.beforeId ?? null}::bigint)
    order by run_id desc limit ${page.limit}`;
}

/** Those that are still stored. */
export async function countDifferences(sql: Queryable, runId: number): Promise<number> {
  const [row] = await sql<[{ differences: number }]>`
    select count(*) as differences from run_differences where run_id = ${runId}`;
  return row.differences;
}

type RunChange = (typeof RUN_CHANGES)[number];

/** How many differences of a run are new, gone, changed in their evidence and unchanged against another run. */
export async function countChanges(
  sql: Queryable,
  { runId, previousRunId }: { readonly runId: number; readonly previousRunId: number },
): Promise<Readonly<Record<RunChange, number>>> {
  const rows = await sql<{ change: RunChange; differences: number }[]>`
    select change, count(*) as differences from (${changes(sql, runId, previousRunId)}) compared group by change`;
  const found = new Map(rows.map((row) => [row.change, row.differences]));
  const count = (change: RunChange): number => found.get(change) ?? 0;
  return { new: count("new"), gone: count("gone"), changed: count("changed"), unchanged: count("unchanged") };
}

interface ComparedDifference {
  readonly issue_id: number;
  readonly kind: string;
  readonly change: RunChange;
  readonly amount_minor: string | null;
  readonly currency: string | null;
  readonly on_date: string;
}

/** By issue. */
export async function listChanges(
  sql: Queryable,
  page: {
    readonly runId: number;
    readonly previousRunId: number;
    readonly change: RunChange;
    readonly afterIssueId: number;
    readonly limit: number;
  },
): Promise<readonly ComparedDifference[]> {
  return await sql<ComparedDifference[]>`
    select issue_id, kind, change, amount_minor::text as amount_minor, currency, on_date::text as on_date
    from (${changes(sql, page.runId, page.previousRunId)}) compared
    where change = ${page.change} and issue_id > ${page.afterIssueId}
    order by issue_id limit ${page.limit}`;
}

/** Only the days of both runs count: other days have not been compared. */
const changes = (sql: Queryable, runId: number, previousRunId: number) => sql`
  select coalesce(n.issue_id, p.issue_id) as issue_id, coalesce(n.kind, p.kind) as kind,
    coalesce(n.amount_minor, p.amount_minor) as amount_minor, coalesce(n.currency, p.currency) as currency,
    coalesce(n.on_date, p.on_date) as on_date,
    case when p.kind is null then 'new' when n.kind is null then 'gone' when n.evidence_hash = p.evidence_hash then 'unchanged'
      else 'changed' end as change
  from (${differencesOfDays(sql, runId, previousRunId)}) n
    full join (${differencesOfDays(sql, previousRunId, runId)}) p using (kind, subject_key, station_id)`;

const differencesOfDays = (sql: Queryable, runId: number, otherRunId: number) => sql`
  select d.* from run_differences d
  where d.run_id = ${runId} and not exists (select from reconciliation_runs o
    where o.run_id = ${otherRunId} and d.on_date not between o.from_date and o.to_date)`;

/** The newest run of an account stays, and what its matches refer to. Returns how many rows have gone. */
export async function deleteOldDifferences(sql: Queryable, days: number, rows: number): Promise<number> {
  const deleted = await sql`
    delete from run_differences where ctid in (
      select d.ctid from run_differences d join reconciliation_runs r using (run_id)
      where r.started_at < now() - ${days}::int * interval '1 day' and exists (
        select from reconciliation_runs n where n.account_id = r.account_id and n.status = 'done' and n.run_id > r.run_id)
        and not exists (select from issues i where i.issue_id = d.issue_id and i.status in ('open', 'assigned'))
      limit ${rows})`;
  return deleted.count;
}
