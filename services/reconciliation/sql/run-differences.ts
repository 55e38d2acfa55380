/** What is left after the matches of a run: every line and payment gets the name of its difference, or a reason (../kinds.ts). */
import type { Transaction } from "../../db/pool.ts";
import { SCORE, SMALLEST_COIN } from "../kinds.ts";
import { RUN_LIMITS } from "../limits.ts";
import type { RunScope } from "./runs.ts";

/** A line that has no outcome yet. */
const openLine = (sql: Transaction) => sql`
  not exists (select from run_group_lines g where g.line_id = l.line_id)
  and not exists (select from run_diffs d where d.line_id = l.line_id)
  and not exists (select from run_rejects r where r.line_id = l.line_id)`;
/** A payment that no match and no difference has. */
const openPayment = (sql: Transaction) => sql`
  not exists (select from run_group_payments g where g.payment_key = p.payment_key)
  and not exists (select from run_diffs d where d.payment_key = p.payment_key)`;

/** Lines whose kind alone decides. */
export async function judgeByKind(sql: Transaction): Promise<void> {
  await sql`
    insert into run_diffs
    select l.line_id, null, case when l.kind like 'refund%' then 'refund_not_registered' else 'chargeback_not_registered' end,
      null, '{}'
    from run_lines l
    where l.kind in ('refund', 'refund_reversal', 'chargeback', 'chargeback_reversal') and ${openLine(sql)}`;
  await sql`
    insert into run_rejects
    select l.line_id, l.kind from run_lines l
    where l.kind in ('not_money', 'planned_payout', 'fee', 'adjustment', 'conversion', 'payout_reversal', 'bank_debit')
      and ${openLine(sql)}`;
  await sql`analyze run_diffs, run_rejects`;
}

/**
 * Lines with the reference of a payment that differ from it. Of several lines the one with the nearest amount stands for the
 * payment; the others, and those whose payment is matched, are duplicates.
 */
export async function judgeLinked(sql: Transaction): Promise<void> {
  const coins = sql.json(SMALLEST_COIN);
  await sql`
    with best as (
      select k.*, p.amount_minor as payment_minor, p.currency as payment_currency, p.source, l.amount_minor, l.tip_minor,
        not ${openPayment(sql)} as is_taken,
        row_number() over (partition by k.line_id
          order by not ${openPayment(sql)}, preference, pass, not same_currency, abs(difference), abs(days), payment_key) as of_line,
        count(*) filter (where same_currency and difference = 0 and ${openPayment(sql)}) over (partition by k.line_id) as equal
      from run_links k join run_payments p using (payment_key) join run_lines l using (line_id)
      where ${openLine(sql)}
    ),
    ranked as (
      select *, row_number() over (partition by payment_key
        order by not same_currency, abs(difference), booked_on, fingerprint) as of_payment
      from best where of_line = 1
    ),
    named as (
      select line_id, payment_key, equal, case
          when equal > 1 then 'ambiguous_match'
          when (is_taken or of_payment > 1) and same_currency and amount_minor < 0 then 'direction_mismatch'
          when is_taken or of_payment > 1 then 'duplicate_in_statement'
          when not same_currency then 'currency_mismatch'
          when difference = 0 then case when source = 'late_evidence' then 'late_money' else 'ambiguous_match' end
          when amount_minor < 0 then 'direction_mismatch'
          when tip_minor > 0 and difference = tip_minor then 'tip'
          when amount_minor = rounded.minor then 'rounding'
          when difference > 0 then 'amount_over'
          else 'amount_under'
        end as kind
      from ranked, lateral (select coalesce((${coins}::jsonb ->> payment_currency)::bigint, 1) as coin) c,
        lateral (select (payment_minor + coin / 2) / coin * coin as minor) rounded
    ),
    candidates as (
      insert into run_named_payments
      select k.payment_key from named n join run_links k using (line_id)
      where n.kind = 'ambiguous_match' and k.same_currency and k.difference = 0
    )
    insert into run_diffs
    select line_id, case when kind <> 'ambiguous_match' then payment_key end, kind, null,
      case when equal > 1 then jsonb_build_object('candidates', equal::text) else '{}' end
    from named`;
  await sql`
    insert into run_rejects select l.line_id, 'cash_not_compared' from run_lines l where l.kind = 'cash_payment' and ${openLine(sql)}`;
  await sql`analyze run_diffs`;
}

/** Lines without a provider's reference that are equal to another line: all but the first are named. */
export async function judgePossibleDuplicates(sql: Transaction): Promise<void> {
  await sql`
    insert into run_diffs
    select line_id, null, 'possible_duplicate', null, jsonb_build_object('equalLines', equal::text) from (
      select l.line_id, ${openLine(sql)} as is_open, count(*) over same as equal,
        row_number() over (partition by l.booked_on, l.amount_minor, l.currency, l.merchant_key, l.terminal, s.text
          order by ${openLine(sql)}, l.fingerprint) as place
      from run_lines l join statement_lines s using (line_id)
      where l.kind in ('payment', 'bank_credit') and l.provider_key is null
      window same as (partition by l.booked_on, l.amount_minor, l.currency, l.merchant_key, l.terminal, s.text)
    ) ranked where is_open and place > 1`;
}

/**
 * Lines without a common reference: payments of the same amount within some days are candidates, by score. Days are joined
 * by equality, so that the join stays a hash join; a line with very many candidates is ambiguous without listing them.
 */
export async function judgeCandidates(sql: Transaction, { accountId }: RunScope): Promise<void> {
  const { earlyDays, candidateDays, candidates } = RUN_LIMITS;
  await sql.unsafe(`
    create temporary table run_open on commit drop as select ''::text as class, l.* from run_lines l limit 0;
    create temporary table run_free on commit drop as select ''::text as class, p.* from run_payments p limit 0;
    create temporary table run_scores (line_id bigint, payment_key text, days integer, score integer) on commit drop;`);
  await sql`
    insert into run_open select case l.kind when 'payment' then 'payment' else 'payout' end, l.* from run_lines l
    where l.kind in ('payment', 'bank_credit') and l.amount_minor > 0 and ${openLine(sql)}`;
  await sql`
    insert into run_free select case p.source when 'payout' then 'payout' else 'payment' end, p.* from run_payments p
    where p.route <> 'cash' and p.source <> 'issue' and p.in_filial and ${openPayment(sql)}
      and not exists (select from run_named_payments n where n.payment_key = p.payment_key)`;
  await sql`analyze run_open, run_free`;
  await sql`
    with day as (select generate_series(${-earlyDays}::int, ${candidateDays}::int) as days),
    counted as (
      select class, amount_minor, currency, settled_on, count(*) as payments from run_free
      group by class, amount_minor, currency, settled_on
    ),
    reachable as (
      select o.line_id, sum(c.payments) as payments
      from run_open o cross join day d
        join counted c on (c.class, c.amount_minor, c.currency, c.settled_on)
          = (o.class, o.amount_minor, o.currency, o.booked_on - d.days)
      group by o.line_id
    ),
    crowded as (
      insert into run_diffs
      select line_id, null, 'ambiguous_match', null, jsonb_build_object('candidates', payments::text)
      from reachable where payments > ${candidates}
    )
    insert into run_scores
    select o.line_id, p.payment_key, d.days,
      ${SCORE.amount}::int + greatest(0, ${SCORE.date}::int - ${SCORE.day}::int * abs(d.days))
        + case when t.station_id = p.station_id then ${SCORE.terminal}::int else 0 end
        + case when strpos(s.text, p.our_key) > 0 or strpos(s.text, p.provider_key) > 0
            or strpos(typed_reference(s.text), p.typed_key) > 0 then ${SCORE.reference}::int else 0 end
    from reachable r join run_open o using (line_id) join statement_lines s using (line_id) cross join day d
      join run_free p on (p.class, p.amount_minor, p.currency, p.settled_on)
        = (o.class, o.amount_minor, o.currency, o.booked_on - d.days)
      left join run_terminals t on t.terminal = o.terminal
    where r.payments <= ${candidates} and not exists (
      select from match_decisions m where m.account_id = ${accountId} and m.fingerprint = o.fingerprint
        and m.payment_key = p.payment_key and m.decision = 'rejected')`;
  await sql`
    with best as (
      select *, count(*) over (partition by line_id) as of_line, count(*) over (partition by payment_key) as of_payment
      from (select *, rank() over (partition by line_id order by score desc) as place from run_scores) ranked
      where place = 1
    ),
    named as (
      select line_id, min(payment_key) as payment_key, max(score) as score, count(*) as candidates,
        count(*) = 1 and max(of_payment) = 1 as is_clear
      from best group by line_id
    ),
    spoken as (
      insert into run_named_payments
      select b.payment_key from best b join named n using (line_id) where not n.is_clear
    )
    insert into run_diffs
    select line_id, case when is_clear then payment_key end, case when is_clear then 'reference_mismatch' else 'ambiguous_match' end,
      score, jsonb_build_object('candidates', candidates::text)
    from named`;
  await sql`analyze run_diffs, run_named_payments`;
}

export async function judgeUnmatched(sql: Transaction): Promise<void> {
  await sql`
    insert into run_diffs select l.line_id, null, 'unmatched_money', null, '{}' from run_lines l where ${openLine(sql)}`;
}

/**
 * Payments of this account that its statements should have shown: settled within the days that the lines cover, and early
 * enough for the settlement delay. One that a statement shows as failed has another status there.
 */
export async function judgeMissing(sql: Transaction, scope: RunScope): Promise<void> {
  await sql`
    insert into run_diffs
    select null, p.payment_key, case when f.payment_key is null then 'missing_in_statement' else 'status_mismatch' end, null,
      case when f.payment_key is null then '{}' else jsonb_build_object('status', f.provider_type) end
    from run_payments p
      left join (
        select payment_key, min(provider_type) as provider_type from (
          select p.payment_key, s.provider_type
            from run_lines l join statement_lines s using (line_id) join run_payments p on p.provider_key = l.provider_key
            where l.kind = 'not_money'
          union all
          select p.payment_key, s.provider_type
            from run_lines l join statement_lines s using (line_id) join run_payments p on p.our_key = l.merchant_key
            where l.kind = 'not_money'
          union all
          select p.payment_key, s.provider_type
            from run_lines l join statement_lines s using (line_id) join run_payments p on p.typed_key = l.typed_key
            where l.kind = 'not_money' and p.in_filial and length(p.typed_key) > ${RUN_LIMITS.shortReferenceCharacters}
        ) failed group by payment_key
      ) f on f.payment_key = p.payment_key
    where p.own and p.source = 'transaction' and p.settled_on >= ${scope.fromDate}::date
      and (f.payment_key is not null or p.settled_on between ${scope.coveredFrom}::date
        and ${scope.coveredTo}::date - ${scope.settlementDelayDays}::int)
      and ${openPayment(sql)}
      and not exists (select from run_named_payments n where n.payment_key = p.payment_key)`;
  await sql`analyze run_diffs`;
}
