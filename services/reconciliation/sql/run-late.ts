/** What a run finds in closed periods, beyond their closings: each finding becomes an issue, and the closing stays unchanged. */
import type { Transaction } from "../../db/pool.ts";
import type { RunScope } from "./runs.ts";

/**
 * Adds issues to `run_candidates` for lines that came after a closing of their day, and for differences of closed days that are
 * new or have other evidence. A line and its difference get one issue. `run_candidates` already has the differences of the run.
 */
export async function nameAfterClosing(
  sql: Transaction,
  { accountId }: Pick<RunScope, "accountId">,
  accountKey: string,
): Promise<void> {
  await sql`
    create temporary table run_closings on commit drop as
    select closing_id, from_date, to_date, through_line_id, closed_at from period_closings where account_id = ${accountId}`;
  await sql`
    insert into run_candidates (line_id, payment_key, kind, account_key, subject_key, station_id, evidence_status, evidence_type,
      amount_minor, currency, intent_id, order_id, provider_reference, on_date, is_money, evidence)
    select null, null, 'after_closing', ${accountKey}, 'closed:line:' || encode(l.fingerprint, 'hex'), null, 'late', l.kind,
      l.amount_minor, l.currency, null, null, coalesce(l.provider_key, ''), l.booked_on, false,
      ${evidence(sql, sql`jsonb_build_array(l.line_id)`, sql`'line'`)}
    from run_lines l join run_closings c on l.booked_on between c.from_date and c.to_date and l.line_id > c.through_line_id
    group by l.line_id, l.fingerprint, l.kind, l.amount_minor, l.currency, l.provider_key, l.booked_on`;
  await sql`
    insert into run_candidates (line_id, payment_key, kind, account_key, subject_key, station_id, evidence_status, evidence_type,
      amount_minor, currency, intent_id, order_id, provider_reference, on_date, is_money, evidence)
    select null, null, 'after_closing', ${accountKey}, 'closed:' || d.kind || ':' || d.subject_key, d.station_id, d.evidence_status,
      d.evidence_type, d.amount_minor, d.currency, null, null, d.provider_reference, d.on_date, false,
      ${evidence(sql, sql`'[]'::jsonb`, sql`d.kind`)}
    from run_candidates d left join lateral (
        select f.from_date, f.to_date from unnest(malformed_imports(d.evidence)) as of_row (import_id) join statement_imports f using (import_id)
        where d.kind = 'malformed_line') f on true
      join run_closings c on coalesce(f.from_date, d.on_date) <= c.to_date and coalesce(f.to_date, d.on_date) >= c.from_date
    where d.kind <> 'after_closing' and (d.line_id is null or d.line_id <= c.through_line_id)
      and not exists (
        select from closing_issues k join issues i using (issue_id)
        where k.closing_id = c.closing_id and i.account_key = d.account_key and i.kind = d.kind and i.subject_key = d.subject_key
          and coalesce(i.station_id, 0) = coalesce(d.station_id, 0)
          and k.evidence_hash = issue_evidence_hash(d.amount_minor, d.currency, d.evidence_status, d.evidence_type))
      -- A person had decided it before the closing: by then it was about other days only.
      and not exists (
        select from issues i
        where i.account_key = d.account_key and i.kind = d.kind and i.subject_key = d.subject_key
          and coalesce(i.station_id, 0) = coalesce(d.station_id, 0) and i.superseded_by is null
          and i.status in ('closed', 'attributed') and i.resolved_at < c.closed_at
          and i.evidence_hash = issue_evidence_hash(d.amount_minor, d.currency, d.evidence_status, d.evidence_type))
    group by d.kind, d.subject_key, d.station_id, d.evidence_status, d.evidence_type, d.amount_minor, d.currency,
      d.provider_reference, d.on_date`;
}

/** Names the closings that do not contain the line or the difference. */
const evidence = (sql: Transaction, lineIds: ReturnType<typeof sql>, what: ReturnType<typeof sql>) => sql`
  jsonb_build_object('statement', jsonb_build_object('lineIds', ${lineIds}, 'differences', '[]'::jsonb,
    'facts', jsonb_build_object('what', ${what}, 'closings', array_to_string(array_agg(distinct c.closing_id), ' '))))`;
