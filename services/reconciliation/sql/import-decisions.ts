/** What operators decide about imports, as it is stored. */
import type { Role } from "../../bus/messages/caller.ts";
import type { ImportStatus } from "../../bus/messages/import-decisions.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";
import { endIssues } from "../../issues/sql/ending.ts";
import { currentRequestId } from "../../runtime/log.ts";
import { removeLines } from "./import-work.ts";
import type { ImportKey } from "./imports.ts";
import { removeMatches } from "./match-removal.ts";
import { rowPlace, rowSubject } from "./run-issues.ts";

export interface DecidedRow {
  readonly import_id: number;
  readonly organization_id: number;
  readonly account_id: number;
  readonly status: ImportStatus;
  readonly from_date: string | null;
  readonly to_date: string | null;
  readonly released_by: number | null;
  readonly released_at: Date | null;
  readonly release_reason: string | null;
  readonly withdrawn_by: number | null;
  readonly withdrawn_at: Date | null;
  readonly withdrawal_reason: string | null;
}

const columns = (sql: Queryable) => sql`
  import_id, organization_id, account_id, status, from_date::text as from_date, to_date::text as to_date, released_by, released_at,
  release_reason, withdrawn_by, withdrawn_at, withdrawal_reason`;

export async function findDecidedImport(sql: Queryable, key: ImportKey): Promise<DecidedRow | undefined> {
  const [row] = await sql<DecidedRow[]>`
    select ${columns(sql)} from statement_imports
    where organization_id = ${key.organizationId} and import_id = ${key.importId}`;
  return row;
}

/** Waits a moment for the lock. Fails with `isLockTimeout` when an attempt keeps it, which may store a large file for minutes. */
export async function lockDecidedImport(
  sql: Transaction,
  { waitMs, ...key }: ImportKey & { readonly waitMs: number },
): Promise<DecidedRow | undefined> {
  await sql`select set_config('lock_timeout', ${String(waitMs)}, true)`;
  const [row] = await sql<DecidedRow[]>`
    select ${columns(sql)} from statement_imports
    where organization_id = ${key.organizationId} and import_id = ${key.importId} for update`;
  return row;
}

export interface Decision {
  readonly importId: number;
  readonly by: number;
  readonly reason: string;
}

/** The import waits for its next attempt, which does not hold it again. */
export async function releaseImport(sql: Transaction, { importId, by, reason }: Decision): Promise<DecidedRow> {
  const [row] = await sql<[DecidedRow]>`
    update statement_imports set status = 'waiting', status_code = null, status_detail = null, ended_at = null,
      released_by = ${by}, released_at = now(), release_reason = ${reason}, request_id = ${currentRequestId() ?? null}
    where import_id = ${importId} returning ${columns(sql)}`;
  return row;
}

/** From now on no attempt continues the import. */
export async function beginWithdrawal(sql: Transaction, { importId, by, reason }: Decision): Promise<DecidedRow> {
  const [row] = await sql<[DecidedRow]>`
    update statement_imports set status = 'withdrawing', leased_by = null, leased_until = null,
      withdrawn_by = ${by}, withdrawn_at = now(), withdrawal_reason = ${reason},
      withdrawal_request_id = ${currentRequestId() ?? null}
    where import_id = ${importId} returning ${columns(sql)}`;
  return row;
}

/** A withdrawal that is stored and not carried out. */
interface Withdrawing {
  readonly importId: number;
  /** Of the request that asked for it. */
  readonly requestId: string | undefined;
}

/** The oldest import comes first. */
export async function listWithdrawing(sql: Queryable): Promise<readonly Withdrawing[]> {
  const rows = await sql<{ import_id: number; withdrawal_request_id: string | null }[]>`
    select import_id, withdrawal_request_id from statement_imports where status = 'withdrawing' order by import_id`;
  return rows.map((row) => ({ importId: row.import_id, requestId: row.withdrawal_request_id ?? undefined }));
}

/**
 * Locks the account for runs, the account and the import. It waits for the locks, because runs and imports that follow one
 * another leave no gap for a single try. Fails with `isLockTimeout` when a lock is not free within `waitMs`. Undefined when the import is
 * withdrawn already.
 */
export async function takeWithdrawal(
  sql: Transaction,
  { importId, waitMs }: { readonly importId: number; readonly waitMs: number },
): Promise<DecidedRow | undefined> {
  await sql`select set_config('lock_timeout', ${String(waitMs)}, true)`;
  await sql`
    select pg_advisory_xact_lock(hashtextextended('reconciliation account ' || account_id, 0))
    from statement_imports where import_id = ${importId}`;
  await sql`
    select from statement_accounts where account_id = (select account_id from statement_imports where import_id = ${importId})
    for update`;
  const [row] = await sql<DecidedRow[]>`
    select ${columns(sql)} from statement_imports where import_id = ${importId} and status = 'withdrawing' for update`;
  await sql`reset lock_timeout`;
  return row;
}

/** A person as the audit log names one. */
export async function findPerson(
  sql: Queryable,
  key: { readonly organizationId: number; readonly userId: number },
): Promise<{ readonly role: Role; readonly name: string } | undefined> {
  const [row] = await sql<{ role: Role; name: string }[]>`
    select role, name from users where organization_id = ${key.organizationId} and user_id = ${key.userId}`;
  return row;
}

export interface EndedIssue {
  readonly issue_id: number;
  readonly organization_id: number;
  readonly kind: string;
}

/**
 * Removes what only this import has: lines, matches and malformed rows. Ends the undecided issues whose cause is removed with
 * it, and returns them. The caller has locked the import (`takeWithdrawal`).
 */
export async function withdrawImport(sql: Transaction, row: DecidedRow): Promise<readonly EndedIssue[]> {
  const { import_id: importId, withdrawal_reason: reason } = row;
  await sql`set local statement_timeout = 0`;
  await sql`
    create temporary table leaving_lines on commit drop as
      select l.line_id, l.fingerprint, l.kind, l.provider_reference, l.payment_reference, l.merchant_reference
      from statement_lines l
      where l.line_id in (select line_id from statement_line_sources where import_id = ${importId})
        and not exists (
          select from statement_line_sources s where s.line_id = l.line_id and s.import_id <> ${importId})`;
  await sql`create unique index on leaving_lines (line_id)`;
  // The statistics of `issues` may be out of date, so the account's issues get a table that can be analyzed.
  await sql`
    create temporary table undecided_issues on commit drop as
      select issue_id, kind, subject_key, intent_id from issues
      where organization_id = ${row.organization_id} and statement_account_id = ${row.account_id} and status in ('open', 'assigned')`;
  await sql`analyze leaving_lines, undecided_issues`;
  const ended = await endIssues(sql, {
    which: sql`
      ${issuesOfLines(sql, row)} union all ${issuesOfRows(sql, row)} union all ${issuesOfDays(sql, row)} union all ${issuesOfStatus(sql)}
      union all ${issuesAfterClosing(sql)}`,
    reason: reason ?? "",
  });
  // A match that loses a line no longer adds up; the next run judges its other lines.
  await removeMatches(sql, sql`select m.match_id from match_lines m join leaving_lines using (line_id)`);
  await removeLines(sql, importId);
  await sql`update statement_imports set status = 'withdrawn', ended_at = coalesce(ended_at, now()) where import_id = ${importId}`;
  return ended;
}

/** Issues of lines that are removed, and of no line that stays. */
const issuesOfLines = (sql: Transaction, row: DecidedRow) => sql`
  select o.issue_id from line_outcomes o left join leaving_lines g using (line_id)
  where o.account_id = ${row.account_id} and o.issue_id is not null
  group by o.issue_id having bool_and(g.line_id is not null)`;

/** Issues of malformed rows that no other imported file has. */
const issuesOfRows = (sql: Transaction, row: DecidedRow) => sql`
  select i.issue_id from undecided_issues i
    join (
      select ${rowSubject(sql)} as subject, bool_and(import_id = ${row.import_id}) as is_alone from (
        select import_id, column_name, raw, ${rowPlace(sql)} as place
        from statement_malformed join statement_imports f using (import_id)
        where f.account_id = ${row.account_id} and (f.status = 'imported' or f.import_id = ${row.import_id})) each
      group by subject
    ) r on r.subject = i.subject_key
  where i.kind = 'malformed_line' and r.is_alone`;

/** Issues of payments that were missing on days which no other imported file covers. */
const issuesOfDays = (sql: Transaction, row: DecidedRow) => sql`
  select i.issue_id from undecided_issues i
    join lateral (select on_date from run_differences d where d.issue_id = i.issue_id order by d.run_id desc limit 1) d on true
  where i.kind = 'missing_in_statement' and d.on_date between ${row.from_date}::date and ${row.to_date}::date
    and not exists (
      select from statement_imports o where o.account_id = ${row.account_id} and o.import_id <> ${row.import_id}
        and o.status = 'imported' and d.on_date between o.from_date and o.to_date)`;

/** Issues of payments that a removed row has shown as failed, or as cash. One comparison for each key, so that each is hashed. */
const issuesOfStatus = (sql: Transaction) => sql`
  select i.issue_id from undecided_issues i
    join transactions t on t.intent_id = i.intent_id
    left join provider_payments p on p.intent_id = i.intent_id
    cross join lateral (values
      ('provider', comparable_reference(coalesce(p.paid_reference, t.reference))),
      ('merchant', comparable_reference(p.reference)),
      ('typed', typed_reference(t.reference))) k (of, key)
    join (
      select of, key from leaving_lines cross join lateral (values
        ('provider', comparable_reference(provider_reference)),
        ('merchant', comparable_reference(merchant_reference)),
        ('typed', typed_reference(provider_reference)),
        ('typed', typed_reference(payment_reference)),
        ('typed', typed_reference(merchant_reference))) shown (of, key)
      where kind in ('not_money', 'cash_payment') and key <> ''
    ) f using (of, key)
  where i.kind = 'status_mismatch'`;

/** Issues of lines that came after the closing of their day. */
const issuesAfterClosing = (sql: Transaction) => sql`
  select i.issue_id from undecided_issues i join leaving_lines g on i.subject_key = 'closed:line:' || encode(g.fingerprint, 'hex')
  where i.kind = 'after_closing'`;
