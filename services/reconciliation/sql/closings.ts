/** Closings of periods, as they are stored. Every query for a person is confined to an organization. */
import type { Database, Queryable, Transaction } from "../../db/pool.ts";
import type { CanonicalObject } from "../canonical-json.ts";
import type { Period, PeriodKind } from "./periods.ts";
import { searchByIndex } from "./store-lines.ts";

export interface ClosingRow {
  readonly closing_id: number;
  readonly account_id: number;
  readonly kind: PeriodKind;
  readonly from_date: string;
  readonly to_date: string;
  readonly closed_by: number;
  readonly closed_by_name: string;
  readonly closed_at: Date;
  readonly reason: string;
  readonly through_line_id: number;
  readonly after_closing: number;
  readonly statement: string;
  readonly key_id: string;
  readonly public_key: Uint8Array;
  readonly signature: Uint8Array;
}

const closings = (sql: Queryable) => sql`
  select c.*, c.from_date::text as from_date, c.to_date::text as to_date, k.public_key, (
      select count(*) from issues i where i.kind = 'after_closing' and i.status <> 'ended'
        and i.account_key = coalesce('provider:' || a.config_id, 'statement:' || a.account_id)
        and string_to_array(i.evidence #>> '{statement,facts,closings}', ' ') @> array[c.closing_id::text]) as after_closing
  from period_closings c join closing_keys k using (key_id) join statement_accounts a using (account_id)`;

export async function getClosing(
  sql: Queryable,
  key: { readonly organizationId: number; readonly closingId: number },
): Promise<ClosingRow | undefined> {
  const [row] = await sql<ClosingRow[]>`
    ${closings(sql)} where c.organization_id = ${key.organizationId} and c.closing_id = ${key.closingId}`;
  return row;
}

/** The closing that covers a period: the one of the period itself, else the one of the month that contains the day. */
export async function findClosingOf(
  sql: Queryable,
  { accountId, kind, fromDate, toDate }: Period & { readonly accountId: number },
): Promise<ClosingRow | undefined> {
  const [row] = await sql<ClosingRow[]>`
    ${closings(sql)} where c.account_id = ${accountId} and c.from_date <= ${fromDate}::date and c.to_date >= ${toDate}::date
    order by c.kind <> ${kind}, c.closing_id limit 1`;
  return row;
}

export async function listClosings(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly accountId: number | undefined;
    readonly beforeId: number | undefined;
    readonly limit: number;
  },
): Promise<readonly ClosingRow[]> {
  const { organizationId, accountId = null, beforeId = null, limit } = page;
  return await sql<ClosingRow[]>`
    ${closings(sql)} where c.organization_id = ${organizationId} and (${accountId}::bigint is null or c.account_id = ${accountId})
      and (${beforeId}::bigint is null or c.closing_id < ${beforeId})
    order by c.closing_id desc limit ${limit}`;
}

interface ItemRow {
  readonly key: string;
  readonly item: string;
}

interface ItemsAfter {
  readonly after: string | undefined;
  readonly limit: number;
}

/** By id. */
export async function listClosingIssues(
  sql: Queryable,
  { closingId, after, limit }: ItemsAfter & { readonly closingId: number },
): Promise<readonly ItemRow[]> {
  return await sql<ItemRow[]>`
    select issue_id::text as key, item from closing_issues
    where closing_id = ${closingId} and issue_id > ${after ?? "0"}::bigint order by issue_id limit ${limit}`;
}

/**
 * Ordered by fingerprint. For a large closing, each page continues in the index of the account's lines, so that all pages read it
 * once; sorting would repeat for each page. For a small closing, PostgreSQL may sort, because it has few of the account's lines.
 */
export async function listClosingLines(
  database: Database,
  { closing, isLarge, after, limit }: ItemsAfter & { readonly closing: ClosingRow; readonly isLarge: boolean },
): Promise<readonly ItemRow[]> {
  const { account_id: accountId, from_date: fromDate, to_date: toDate, through_line_id: throughLineId } = closing;
  return await database.begin(async (sql) => {
    if (isLarge) await searchByIndex(sql, true);
    return await sql<ItemRow[]>`
      select encode((p.l).fingerprint, 'hex') as key, closing_line(p.l) as item from (
        select l from statement_lines l
        where (l.account_id, l.fingerprint) > (${accountId}, decode(${after ?? ""}, 'hex')) and l.account_id = ${accountId}
          and l.booked_on between ${fromDate}::date and ${toDate}::date and l.line_id <= ${throughLineId}
        order by l.account_id, l.fingerprint limit ${limit}) p`;
  });
}

export async function listClosingKeys(
  sql: Queryable,
): Promise<readonly { readonly key_id: string; readonly public_key: Uint8Array; readonly first_used_at: Date }[]> {
  return await sql<{ key_id: string; public_key: Uint8Array; first_used_at: Date }[]>`
    select key_id, public_key, first_used_at from closing_keys order by first_used_at, key_id`;
}

/**
 * Locks what a close reads, so that nothing of it changes until its commit: the account for runs, the account for imports, the
 * imports, the issues, in the order in which all code locks several of these. False when a run has the account. Fails
 * with `isLockTimeout` when an import keeps it.
 */
export async function lockForClose(
  sql: Transaction,
  period: Period & { readonly accountId: number; readonly waitMs: number },
): Promise<boolean> {
  const { accountId, fromDate, toDate, waitMs } = period;
  await sql`select set_config('lock_timeout', ${String(waitMs)}, true), set_config('statement_timeout', '0', true)`;
  const [free] = await sql<{ is_free: boolean }[]>`
    select pg_try_advisory_xact_lock(hashtextextended('reconciliation account ' || ${accountId}::bigint, 0)) as is_free`;
  if (free?.is_free !== true) return false;
  await sql`select from statement_accounts where account_id = ${accountId} for update`;
  await sql`
    select from statement_imports where account_id = ${accountId} and status not in ('refused', 'withdrawn')
    order by import_id for share`;
  // Ended issues too, which a callback may open again.
  await sql`
    select from issues where issue_id in (
      select i.issue_id from statement_accounts a join issues i
        on i.account_key = coalesce('provider:' || a.config_id, 'statement:' || a.account_id)
      where a.account_id = ${accountId} and days_of_issue(i, a.time_zone) && daterange(${fromDate}::date, ${toDate}::date, '[]'))
    order by issue_id for share`;
  return true;
}

/** What a closing states about its lines and issues, in its canonical names; `through_line_id` is the newest line of the account. */
interface ClosingFacts {
  readonly closed_at: string;
  readonly through_line_id: number;
  readonly account: CanonicalObject;
  readonly lines: { readonly count: number; readonly hash: string };
  readonly totals: readonly CanonicalObject[];
  readonly outcomes: readonly CanonicalObject[];
  readonly issue_counts: readonly CanonicalObject[];
  readonly issues: { readonly count: number; readonly hash: string };
  readonly imports: readonly CanonicalObject[];
  readonly previous_closing: string | null;
}

/** The caller has locked them (`lockForClose`). */
export async function gatherClosing(
  sql: Transaction,
  { accountId, fromDate, toDate }: Period & { readonly accountId: number },
): Promise<ClosingFacts> {
  await sql`
    create temporary table closing_line_hashes on commit drop as
    select l.fingerprint, sha256(convert_to(closing_line(l), 'UTF8')) as hash, l.kind, l.currency, l.amount_minor,
      coalesce(l.fee_minor, 0) as fee_minor, coalesce(l.tip_minor, 0) as tip_minor,
      case when m.line_id is not null then 'matched' else o.outcome end as outcome
    from statement_lines l left join match_lines m on m.line_id = l.line_id left join line_outcomes o on o.line_id = l.line_id
    where l.account_id = ${accountId} and l.booked_on between ${fromDate}::date and ${toDate}::date`;
  await sql`
    create temporary table closing_issue_items on commit drop as
    select issue_id, kind, status, evidence_hash, closing_issue(i) as item
    from issues_of_days(${accountId}, ${fromDate}::date, ${toDate}::date) i`;
  const [facts] = await sql<[ClosingFacts]>`
    select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as closed_at,
      (select coalesce(max(line_id), 0) from statement_lines where account_id = ${accountId}) as through_line_id,
      jsonb_build_object('account_id', a.account_id, 'filial_id', a.filial_id, 'provider', a.provider, 'reference', a.reference,
        'name', a.name, 'mode', a.mode, 'time_zone', a.time_zone) as account,
      (select jsonb_build_object('count', count(*), 'hash', encode(sha256(coalesce(string_agg(hash, ''::bytea order by fingerprint), '')), 'hex'))
        from closing_line_hashes) as lines,
      (select coalesce(jsonb_agg(to_jsonb(t) order by currency collate "C", kind collate "C"), '[]') from (
        select currency, kind, count(*) as lines, sum(amount_minor)::text as amount_minor, sum(fee_minor)::text as fee_minor,
          sum(tip_minor)::text as tip_minor from closing_line_hashes group by currency, kind) t) as totals,
      (select coalesce(jsonb_agg(to_jsonb(t) order by currency collate "C", outcome collate "C"), '[]') from (
        select currency, outcome, count(*) as lines, sum(amount_minor)::text as amount_minor
        from closing_line_hashes group by currency, outcome) t) as outcomes,
      (select jsonb_build_object('count', count(*), 'hash', encode(sha256(coalesce(
          string_agg(sha256(convert_to(item, 'UTF8')), ''::bytea order by issue_id), '')), 'hex'))
        from closing_issue_items) as issues,
      (select coalesce(jsonb_agg(to_jsonb(t) order by kind collate "C", status collate "C"), '[]') from (
        select kind, status, count(*) as count from closing_issue_items group by kind, status) t) as issue_counts,
      (select coalesce(jsonb_agg(jsonb_build_object('import_id', import_id, 'sha256', encode(sha256, 'hex')) order by import_id), '[]')
        from statement_imports i where i.import_id in (select import_id from ${importsOf(sql, { accountId, fromDate, toDate })} rested)) as imports,
      (select encode(statement_hash, 'hex') from period_closings c where c.account_id = a.account_id order by closing_id desc limit 1)
        as previous_closing
    from statement_accounts a where a.account_id = ${accountId}`;
  return facts;
}

/** The imported files that cover a day of the period, or have a line of it. */
const importsOf = (
  sql: Transaction,
  { accountId, fromDate, toDate }: { readonly accountId: number; readonly fromDate: string; readonly toDate: string },
) => sql`(
  select import_id from statement_imports where account_id = ${accountId} and status = 'imported'
    and from_date <= ${toDate}::date and to_date >= ${fromDate}::date
  union
  select s.import_id from statement_lines l join statement_line_sources s using (line_id)
    where l.account_id = ${accountId} and l.booked_on between ${fromDate}::date and ${toDate}::date)`;

/** The caller has gathered the statement in the same transaction. */
export async function insertClosing(
  sql: Transaction,
  closing: Period & {
    readonly organizationId: number;
    readonly accountId: number;
    readonly throughLineId: number;
    readonly statement: string;
    readonly keyId: string;
    readonly publicKey: Uint8Array;
    readonly signature: Uint8Array;
    readonly closedBy: number;
    readonly closedByName: string;
    readonly closedAt: string;
    readonly reason: string;
  },
): Promise<number> {
  const { organizationId, accountId, kind, fromDate, toDate, throughLineId, statement, keyId, signature } = closing;
  await sql`
    insert into closing_keys (key_id, public_key) values (${keyId}, ${closing.publicKey}) on conflict do nothing`;
  const [row] = await sql<[{ closing_id: number }]>`
    insert into period_closings (organization_id, account_id, kind, from_date, to_date, through_line_id, statement, statement_hash,
      key_id, signature, closed_by, closed_by_name, closed_at, reason)
    values (${organizationId}, ${accountId}, ${kind}, ${fromDate}, ${toDate}, ${throughLineId}, ${statement},
      sha256(convert_to(${statement}, 'UTF8')), ${keyId}, ${signature}, ${closing.closedBy}, ${closing.closedByName},
      ${closing.closedAt}::text::timestamptz, ${closing.reason})
    returning closing_id`;
  await sql`
    insert into closing_issues (closing_id, issue_id, evidence_hash, item)
    select ${row.closing_id}, issue_id, evidence_hash, item from closing_issue_items`;
  await sql`
    insert into closing_imports (closing_id, import_id)
    select ${row.closing_id}, import_id from ${importsOf(sql, closing)} rested`;
  return row.closing_id;
}
