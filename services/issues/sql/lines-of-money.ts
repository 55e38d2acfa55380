/** Which statement line is about the money of an issue. A line's money pays one order, or the line is confirmed as one payment. */
import { CALLBACK_ISSUE_KINDS } from "../../bus/messages/issues.ts";
import type { Fragment, Queryable, Transaction } from "../../db/pool.ts";

/**
 * One decision at a time in an organization, about a match or an attribution: two people never decide about one payment or one
 * line at once. Precedes every other lock.
 */
export async function lockDecisions(sql: Transaction, organizationId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('match decisions of ' || ${organizationId}::bigint, 0))`;
}

/** The subject of a line, and of the money that a callback may report as well. `l` has `provider_key`, as `run_lines`. */
export const lineSubject = (sql: Queryable): Fragment => sql`'line:' || encode(l.fingerprint, 'hex')`;
export const moneySubject = (sql: Queryable): Fragment => sql`
  case when length(l.provider_key) <= 200 then 'money:' || l.provider_key
    else 'money-sha256:' || encode(sha256(convert_to(l.provider_key, 'UTF8')), 'hex') end`;
/**
 * Whether the money is the subject of the line's issue: the line is the first one with its reference. A bank may restart its
 * numbers each day; where no callback reports the money either, the line itself is the subject.
 */
export const isNamedByMoney = (sql: Queryable, hasConfig: Fragment): Fragment => sql`(
  l.ordinal = 0 and (l.kind <> 'bank_credit' or ${hasConfig}) and not exists (
    select from statement_lines s join statement_lines o on o.provider_reference = s.provider_reference and o.account_id = s.account_id
    where s.line_id = l.line_id and o.provider_reference <> '' and o.kind in ('payment', 'bank_credit')
      and (o.ordinal, o.booked_on, o.fingerprint) < (l.ordinal, l.booked_on, l.fingerprint)))`;

/** The issues `i` whose money is that of the stored lines `s`: each is about the line, or about its reference. */
const issuesOfLines = (sql: Queryable): Fragment => sql`
  statement_lines s join statement_accounts a on a.account_id = s.account_id
    cross join lateral (select s.line_id, s.fingerprint, s.ordinal, s.kind, s.booked_on,
      case when s.provider_reference <> '' then comparable_reference(s.provider_reference) end as provider_key) l
    join issues i on i.account_key = coalesce('provider:' || a.config_id, 'statement:' || a.account_id)
      and i.kind = any (${[...CALLBACK_ISSUE_KINDS]}::text[]) and i.subject_key in (${lineSubject(sql)}, ${moneySubject(sql)})
      and (i.subject_key like 'line:%' or ${isNamedByMoney(sql, sql`a.config_id is not null`)})`;

/**
 * The issue by which the money of one of the lines pays an order, or is about to. An issue that has paid `except`, the key of a
 * payment, does not count. `transaction_id` is null until it has paid.
 */
export async function findAttributed(
  sql: Transaction,
  lineIds: readonly number[],
  except = "",
): Promise<{ readonly issue_id: number; readonly transaction_id: number | null } | undefined> {
  const [row] = await sql<{ issue_id: number; transaction_id: number | null }[]>`
    select i.issue_id, i.transaction_id from ${issuesOfLines(sql)}
    where s.line_id = any (${[...lineIds]}::bigint[]) and (i.status = 'attributed' or i.attribution is not null)
      and 'transaction:' || i.transaction_id is distinct from ${except}
    order by i.issue_id limit 1`;
  return row;
}

/** Whether a person has confirmed that the line with the issue's money is another payment. */
export async function isConfirmedAsPayment(sql: Transaction, issueId: number): Promise<boolean> {
  const [row] = await sql<[{ is_confirmed: boolean }]>`
    select exists (
      select from ${issuesOfLines(sql)} join match_decisions d on d.account_id = s.account_id and d.fingerprint = s.fingerprint
      where i.issue_id = ${issueId} and d.decision = 'confirmed') as is_confirmed`;
  return row.is_confirmed;
}
