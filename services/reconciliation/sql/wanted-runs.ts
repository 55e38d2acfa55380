/**
 * Accounts whose days wait for a run, because an import has ended or was withdrawn, or because a person has decided a match or
 * changed the account.
 */
import type { Fragment, Queryable, Transaction } from "../../db/pool.ts";
import { RUN_LIMITS } from "../limits.ts";

interface WantedDays {
  readonly accountId: number;
  readonly fromDate: string;
  readonly toDate: string;
}

/** Adds the days to those of the account that already wait. */
export async function wantRun(sql: Transaction, { accountId, fromDate, toDate }: WantedDays): Promise<void> {
  await sql`select want_run(${accountId}, ${fromDate}::date, ${toDate}::date, false)`;
}

/** Wants a run of the account, and then of the accounts that may own the payments of its lines. */
export async function wantRunsBeside(sql: Transaction, { accountId, fromDate, toDate }: WantedDays): Promise<void> {
  await sql`
    select want_run(account_id, ${fromDate}::date, ${toDate}::date, account_id <> ${accountId}) from (
      select ${accountId}::bigint as account_id
      union select account_id from accounts_beside(${accountId})
      union select account_id from banks_beside(${accountId})
        where exists (select from statement_lines where account_id = ${accountId} and kind = 'bank_credit')) beside
    order by account_id`;
}

/** Wants a run of each account over the days of its statements, from the first day to the last that is not closed. */
export async function wantRunsOfOpenDays(sql: Transaction, accountIds: readonly number[]): Promise<void> {
  await sql`
    with days as (
      select account_id, range_merge(
        (select range_agg(daterange(from_date, to_date, '[]')) from statement_imports i
          where i.account_id = a.account_id and status = 'imported' and from_date is not null)
        - coalesce((select range_agg(daterange(from_date, to_date, '[]')) from period_closings c
          where c.account_id = a.account_id), '{}')) as open
      from unnest(${[...accountIds]}::bigint[]) as a (account_id)
    )
    select want_run(account_id, lower(open), upper(open) - 1, false) from days where not isempty(open) order by account_id`;
}

interface WantedRun extends WantedDays {
  readonly organizationId: number;
}

interface WantedLimits {
  readonly quietMs: number;
  readonly longestWaitMs: number;
  /** For followers: accounts that wait because of another account's import. */
  readonly followerQuietMs: number;
  readonly followerLongestWaitMs: number;
  readonly retryMs: number;
  readonly attempts: number;
  /** Accounts that are left out. */
  readonly except: readonly number[];
}

/**
 * The days of the run that `w` wants: lines and payments up to `lookBackDays` apart may belong together, within the days of the
 * account's statements.
 */
const runDays = (sql: Queryable): Fragment => sql`
  select greatest(w.from_date - ${RUN_LIMITS.lookBackDays}::int, least(w.from_date, min(i.from_date))) as from_date,
    least(w.to_date + ${RUN_LIMITS.lookBackDays}::int, greatest(w.to_date, max(i.to_date))) as to_date
  from statement_imports i where i.account_id = w.account_id and i.status = 'imported'`;

/**
 * Finds the run that has waited longest among the accounts that are quiet or have waited too long; undefined when there is none.
 * Accounts with their own import come before followers, except followers that have waited too long. After each failure a run
 * waits longer; after too many failures it is left out until more is wanted.
 */
export async function findWantedRun(sql: Queryable, limits: WantedLimits): Promise<WantedRun | undefined> {
  const { quietMs, longestWaitMs, followerQuietMs, followerLongestWaitMs, retryMs, attempts, except } = limits;
  const [row] = await sql<{ account_id: number; organization_id: number; from_date: string; to_date: string }[]>`
    select w.account_id, w.organization_id, d.from_date::text as from_date, d.to_date::text as to_date
    from wanted_runs w cross join lateral (${runDays(sql)}) d
      cross join lateral (
        select case when w.is_follower then ${followerQuietMs}::float8 else ${quietMs}::float8 end * interval '1 ms' as quiet,
          w.first_wanted_at < clock_timestamp()
            - case when w.is_follower then ${followerLongestWaitMs}::float8 else ${longestWaitMs}::float8 end * interval '1 ms' as is_late) due
    where w.attempts < ${attempts} and w.account_id <> all (${[...except]}::bigint[])
      and (w.last_wanted_at < clock_timestamp() - due.quiet or due.is_late)
      and w.last_wanted_at < clock_timestamp() - w.attempts * ${retryMs}::float8 * interval '1 ms'
      and not exists (select from reconciliation_runs r where r.account_id = w.account_id and r.status = 'running')
    order by w.is_follower and not due.is_late, w.first_wanted_at limit 1`;
  return (
    row && {
      accountId: row.account_id,
      organizationId: row.organization_id,
      fromDate: row.from_date,
      toDate: row.to_date,
    }
  );
}

/** The version of the account's request for a run over days that these contain; it changes when more is wanted. */
export async function findVersionWithin(
  sql: Queryable,
  { accountId, fromDate, toDate }: WantedDays,
): Promise<string | undefined> {
  const [row] = await sql<{ version: string }[]>`
    select w.last_wanted_at::text as version from wanted_runs w cross join lateral (${runDays(sql)}) d
    where w.account_id = ${accountId} and d.from_date >= ${fromDate}::date and d.to_date <= ${toDate}::date`;
  return row?.version;
}

/** Ends the request for a run. What was wanted since waits for the next run, and its wait begins now. */
export async function endWantedRun(
  sql: Queryable,
  { accountId, version }: { readonly accountId: number; readonly version: string },
): Promise<void> {
  await sql`
    with done as (delete from wanted_runs where account_id = ${accountId} and last_wanted_at::text = ${version})
    update wanted_runs set first_wanted_at = last_wanted_at where account_id = ${accountId} and last_wanted_at::text <> ${version}`;
}

export async function countFailure(sql: Queryable, { accountId }: Pick<WantedRun, "accountId">): Promise<void> {
  await sql`update wanted_runs set attempts = attempts + 1 where account_id = ${accountId}`;
}

/** Postpones the run as if it were wanted now. Each next attempt waits longer, but there is always one. */
export async function postponeRun(
  sql: Queryable,
  { accountId, attempts }: Pick<WantedRun, "accountId"> & Pick<WantedLimits, "attempts">,
): Promise<void> {
  await sql`
    update wanted_runs set attempts = least(attempts + 1, ${attempts}::int - 1), last_wanted_at = clock_timestamp()
    where account_id = ${accountId}`;
}

/** Whether a run is under way, waits or has failed too often: a cheap check before the other statements. */
export async function hasRunOrWanted(sql: Queryable): Promise<boolean> {
  const rows = await sql`
    (select from reconciliation_runs where status = 'running' limit 1) union all (select from wanted_runs limit 1)`;
  return rows.count > 0;
}

/** Ends runs whose process has ended: the lock of their account is free. Returns how many. */
export async function endDeadRuns(sql: Queryable, failure: string): Promise<number> {
  const ended = await sql`
    with dead as materialized (
      select run_id, account_id from reconciliation_runs where status = 'running' order by run_id limit 100
    )
    update reconciliation_runs r set status = 'failed', ended_at = clock_timestamp(), failure = ${failure}
    from dead d where r.run_id = d.run_id and r.status = 'running'
      and pg_try_advisory_xact_lock(hashtextextended('reconciliation account ' || d.account_id, 0))`;
  return ended.count;
}
