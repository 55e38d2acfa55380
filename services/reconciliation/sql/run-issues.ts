/** The differences of a run as issues: gives them subjects, raises them, keeps decisions, ends what a run has explained. */
import type { Fragment, Transaction } from "../../db/pool.ts";
import { endIssues } from "../../issues/sql/ending.ts";
import { isNamedByMoney, lineSubject, moneySubject } from "../../issues/sql/lines-of-money.ts";
import { providerAccountKey, type RaisedIssue, raiseIssues } from "../../issues/sql/raise.ts";
import { UNCERTAIN_KINDS } from "../kinds.ts";
import { RUN_LIMITS } from "../limits.ts";
import { openLine } from "./run-differences.ts";
import { arrivedMinor } from "./run-inputs.ts";
import { nameAfterClosing } from "./run-late.ts";
import type { RunScope } from "./runs.ts";

const accountKeyOf = ({ accountId, configId }: RunScope): string =>
  configId === null ? `statement:${accountId}` : providerAccountKey(configId);

/** Whether the line's money is the subject of its issue. `l` is a row of `run_lines`. */
const isMoney = (sql: Transaction, { configId }: RunScope): Fragment =>
  isNamedByMoney(sql, sql`${configId}::bigint is not null`);
/** How much more the line is than its payment or its payouts. */
const difference = (sql: Transaction): Fragment => sql`
  coalesce(d.facts ->> 'differenceMinor', case when d.kind in ('amount_over', 'amount_under', 'tip', 'rounding') and l.currency = p.currency
    then (${arrivedMinor(sql)} - p.amount_minor)::text end)`;
/** A payout may be the sum of lines to which later files add, so the difference from it is evidence too. */
const evidenceType = (sql: Transaction): Fragment => sql`
  case when l.kind in ('bank_credit', 'payment') or l.line_id is null then 'payment' else l.kind end
    || case when d.kind in ('amount_over', 'amount_under', 'rounding') and (p.source = 'payout' or d.facts ? 'sumMinor')
      then ' ' || ${difference(sql)} else '' end`;

/**
 * Lines without a certain payment whose issue a person has closed. They keep the kind of that issue, even if their candidates
 * have changed since. With other evidence they are judged again.
 */
export async function keepDecided(sql: Transaction, scope: RunScope): Promise<void> {
  await sql`
    with kept as (
      select distinct on (l.line_id) l.line_id, i.kind, i.station_id, i.evidence #> '{statement,facts}' as facts
      from run_lines l join issues i on i.account_key = ${accountKeyOf(scope)} and i.kind = any (${[...UNCERTAIN_KINDS]}::text[])
        and i.subject_key in (${lineSubject(sql)}, ${moneySubject(sql)})
      where l.kind in ('payment', 'bank_credit') and i.status = 'closed' and i.superseded_by is null and i.source = 'statement'
        and i.evidence_hash = issue_evidence_hash(l.amount_minor, l.currency, 'paid', 'payment')
        and (i.subject_key like 'line:%' or ${isMoney(sql, scope)}) and ${openLine(sql)}
      order by l.line_id, i.issue_id desc
    ),
    -- The payouts of a group.
    named as (
      insert into run_named_payments select jsonb_array_elements_text((facts ->> 'named')::jsonb) from kept
    )
    insert into run_diffs select line_id, facts ->> 'payment', kind, (facts ->> 'score')::integer, '{}', station_id from kept`;
  await sql`analyze run_diffs, run_named_payments`;
  await freeUnchosen(sql, scope);
}

/**
 * A person has closed a line with the reference of several payments without a choice. Its payments are free again: they may be
 * candidates of other lines, or missing.
 */
async function freeUnchosen(sql: Transaction, scope: RunScope): Promise<void> {
  await sql`
    with closed as materialized (
      select l.line_id from run_diffs d join run_lines l using (line_id)
        join issues i on i.account_key = ${accountKeyOf(scope)} and i.kind = d.kind and i.subject_key = ${lineSubject(sql)}
      where d.kind = 'ambiguous_match' and i.status = 'closed' and i.superseded_by is null
        and i.evidence_hash = issue_evidence_hash(l.amount_minor, l.currency, 'paid', 'payment')
    )
    delete from run_named_payments n using run_scores s
    where s.payment_key = n.payment_key and s.line_id in (select line_id from closed) and not exists (
      select from run_scores o where o.payment_key = s.payment_key and o.line_id not in (select line_id from closed))`;
}

/**
 * Lines that a person has attributed: the line belongs to the transaction, however much later than the line it was settled.
 * A payment that another match has stays in that match.
 */
export async function matchAttributed(sql: Transaction, scope: RunScope): Promise<void> {
  await sql`
    with attributed as (
      select distinct on (l.line_id) l.line_id, 'transaction:' || i.transaction_id as payment_key
      from run_lines l join issues i on i.account_key = ${accountKeyOf(scope)}
        and i.subject_key in (${lineSubject(sql)}, ${moneySubject(sql)})
      where i.status = 'attributed' and i.transaction_id is not null and l.kind in ('payment', 'bank_credit')
        and (i.amount_minor, i.currency) = (l.amount_minor, l.currency) and (i.subject_key like 'line:%' or ${isMoney(sql, scope)})
        and not exists (select from run_group_lines g where g.line_id = l.line_id)
      order by l.line_id, i.issue_id desc
    ),
    free as (
      select * from attributed a
      where not exists (select from run_group_payments g where g.payment_key = a.payment_key)
        and not exists (select from match_payments m where m.payment_key = a.payment_key and not exists (
          select from match_lines ml join run_lines l using (line_id) where ml.match_id = m.match_id))
    ),
    of_line as (insert into run_group_lines select payment_key, line_id from free),
    of_payment as (insert into run_group_payments select payment_key, payment_key from free)
    insert into run_groups select payment_key, 'confirmed', 0, 0 from free`;
}

/** Fills `run_candidates` with the differences, as columns of the issues that are raised from them. */
async function nameDifferences(sql: Transaction, scope: RunScope): Promise<void> {
  await sql`
    create temporary table run_candidates on commit drop as
    select d.line_id, d.payment_key, d.kind, d.score, ${accountKeyOf(scope)}::text as account_key,
      case when d.kind in ('unmatched_money', 'late_money') and l.provider_key is not null and ${isMoney(sql, scope)} then ${moneySubject(sql)}
        when d.kind = 'batch_total_mismatch' and not d.facts ? 'share' then concat_ws(':', 'batch', l.payout_key, l.currency, d.facts ->> 'since')
        else coalesce(${lineSubject(sql)}, d.payment_key) end as subject_key,
      case when d.kind <> 'unmatched_money' then coalesce(d.station_id, p.station_id) end as station_id,
      case when l.line_id is null then 'settled' else 'paid' end as evidence_status, ${evidenceType(sql)} as evidence_type,
      case when d.kind <> 'batch_total_mismatch' then coalesce(l.amount_minor, p.amount_minor)
        -- A huge sum is only in the facts.
        when abs((d.facts ->> 'differenceMinor')::numeric) < 1e18 then (d.facts ->> 'differenceMinor')::bigint end as amount_minor,
      coalesce(l.currency, p.currency) as currency,
      p.intent_id, p.order_id, coalesce(l.provider_key, p.provider_key, p.typed_key, '') as provider_reference,
      coalesce(l.booked_on, p.settled_on) as on_date,
      d.kind in ('unmatched_money', 'late_money') and l.provider_key is not null as is_money,
      jsonb_build_object('statement', jsonb_build_object(
        'lineIds', case when l.line_id is null then '[]'::jsonb else jsonb_build_array(l.line_id) end,
        'differences', case when p.payment_key is null or l.line_id is null then '[]'::jsonb else (
          select coalesce(jsonb_agg(jsonb_build_object('field', field, 'expected', expected, 'found', found)), '[]')
          from (values ('amountMinor', p.amount_minor::text, (${arrivedMinor(sql)})::text), ('currency', p.currency, l.currency),
            ('date', p.settled_on::text, l.booked_on::text)) as each (field, expected, found)
          where expected is distinct from found) end,
        'facts', d.facts || jsonb_strip_nulls(jsonb_build_object(
          'payment', d.payment_key, 'terminal', nullif(l.terminal, ''), 'score', d.score::text,
          'differenceMinor', ${difference(sql)})))) as evidence
    from run_diffs d left join run_lines l using (line_id) left join run_payments p on p.payment_key = d.payment_key
    where d.kind <> 'callback_issue'`;
}

/** Which of the equal rows of a file a malformed row is. */
export const rowPlace = (sql: Transaction): Fragment => sql`
  row_number() over (partition by import_id, column_name, raw order by position)`;
/** The subject of a malformed row with its `place`: the content of the row, so that its issue returns with its file. */
export const rowSubject = (sql: Transaction): Fragment => sql`
  'row:' || encode(sha256(convert_to(concat_ws('|', column_name, raw, place), 'UTF8')), 'hex')`;

/** Whether the import `f` is about other days than the run's. */
const isOutside = (sql: Transaction, { fromDate, toDate }: RunScope): Fragment => sql`(
  f.status = 'imported' and (f.from_date > ${toDate}::date or f.to_date < ${fromDate}::date))`;

/**
 * Malformed rows of files: one issue each, also where several files have the row. An issue names these files, and those of other
 * days than the run's, which an earlier run has found.
 */
async function nameMalformed(sql: Transaction, scope: RunScope): Promise<void> {
  const { accountId, fromDate, toDate } = scope;
  await sql`
    insert into run_candidates (line_id, payment_key, kind, account_key, subject_key, evidence_status, evidence_type,
      provider_reference, on_date, is_money, evidence)
    select null, null, 'malformed_line', ${accountKeyOf(scope)}, subject, 'malformed', reason, '', on_date, false,
      jsonb_build_object('statement', jsonb_build_object('lineIds', '[]'::jsonb, 'differences', '[]'::jsonb, 'facts',
        jsonb_build_object('import', import_id::text, 'line', position::text, 'column', column_name, 'reason', reason, 'row', left(raw, 500))
          || jsonb_strip_nulls(jsonb_build_object('imports', nullif(concat_ws(' ', earlier.imports, of_run), import_id::text)))))
    from (
      select each.*, ${rowSubject(sql)} as subject, string_agg(import_id::text, ' ') over (partition by ${rowSubject(sql)}
        order by import_id rows between unbounded preceding and unbounded following) as of_run
      from (
        select m.*, i.on_date, ${rowPlace(sql)} as place,
          row_number() over (partition by m.import_id order by position) as of_import
        from statement_malformed m join (
          select import_id, coalesce(from_date, ended_at::date) as on_date from statement_imports
          where account_id = ${accountId} and status = 'imported' and coalesce(from_date, ended_at::date) <= ${toDate}::date
            and coalesce(to_date, ended_at::date) >= ${fromDate}::date) i using (import_id)
      ) each where of_import <= ${RUN_LIMITS.malformedOfImport}
    ) each left join (
      select i.subject_key, string_agg(f.import_id::text, ' ' order by f.import_id) as imports
      from issues i cross join lateral unnest(malformed_imports(i.evidence)) as of_row (import_id) join statement_imports f using (import_id)
      where i.account_key = ${accountKeyOf(scope)} and i.kind = 'malformed_line' and i.status in ('open', 'assigned')
        and ${isOutside(sql, scope)}
      group by i.subject_key
    ) earlier on earlier.subject_key = each.subject`;
}

interface RunIssues {
  readonly raised: readonly RaisedIssue[];
  /** Those that the run has explained. */
  readonly ended: readonly {
    readonly issue_id: number;
    readonly organization_id: number;
    readonly kind: string;
  }[];
}

/** Why an issue ends without a person. */
export const EXPLAINED = "A later run has explained it.";

/**
 * Raises the differences, and ends the issues that earlier runs have found last on these days and that are no longer differences.
 * What a person has closed stays closed unless its evidence has changed.
 */
export async function raiseDifferences(sql: Transaction, scope: RunScope): Promise<RunIssues> {
  const { organizationId, accountId, configId, runId } = scope;
  await nameDifferences(sql, scope);
  await nameMalformed(sql, scope);
  await nameAfterClosing(sql, scope, accountKeyOf(scope));
  await sql`analyze run_candidates`;
  const raised = await raiseIssues(
    sql,
    sql`
      select ${organizationId}::bigint, account_key, station_id, kind, subject_key, evidence_status, evidence_type, amount_minor,
        currency, 'statement', ${configId}::bigint, ${accountId}::bigint, intent_id, order_id, provider_reference, evidence,
        is_money, '', null::bigint
      from run_candidates`,
  );
  await sql`
    insert into run_differences (run_id, kind, subject_key, station_id, evidence_hash, issue_id, on_date, amount_minor, currency)
    select distinct on (c.kind, c.subject_key, coalesce(c.station_id, 0)) ${runId}, c.kind, c.subject_key,
      coalesce(c.station_id, 0), issue_evidence_hash(c.amount_minor, c.currency, c.evidence_status, c.evidence_type), i.issue_id,
      c.on_date, c.amount_minor, c.currency
    from run_candidates c join issues i on i.account_key = c.account_key and i.kind = c.kind and i.subject_key = c.subject_key
      and coalesce(i.station_id, 0) = coalesce(c.station_id, 0) and i.superseded_by is null
    -- Of several rows with one identity, the one that counts for its issue; of several issues, the one with its evidence.
    order by c.kind, c.subject_key, coalesce(c.station_id, 0), c.amount_minor, c.currency, c.evidence_status, c.evidence_type, c.evidence,
      i.evidence_hash = issue_evidence_hash(c.amount_minor, c.currency, c.evidence_status, c.evidence_type) desc, i.generation desc`;
  const ended = await endIssues(sql, {
    which: sql`
      select i.issue_id from issues i cross join lateral (
        -- An earlier file may have had it on another day.
        select run_id, on_date from run_differences d where d.issue_id = i.issue_id order by run_id desc limit 1) newest
        join reconciliation_runs r using (run_id)
      where i.account_key = ${accountKeyOf(scope)} and i.status in ('open', 'assigned') and i.source = 'statement'
        and r.account_id = ${accountId} and newest.run_id <> ${runId}
        and (newest.on_date between ${scope.fromDate}::date and ${scope.toDate}::date
          -- The run also judges payouts of other days, by the reference that they share.
          or i.kind = 'batch_total_mismatch' and exists (
            select from run_lines l where l.kind = 'payout' and l.booked_on = newest.on_date
              and starts_with(i.subject_key, concat_ws(':', 'batch', l.payout_key, l.currency))))
        and (i.kind <> 'malformed_line' or not exists (
          select from statement_imports f where f.import_id = any (malformed_imports(i.evidence)) and ${isOutside(sql, scope)}))`,
    reason: EXPLAINED,
  });
  return { raised, ended };
}
