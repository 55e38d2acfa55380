/** What is left after the matches of a run: every line and payment gets the kind of its difference, or a reason (../kinds.ts). */
import type { Transaction } from "../../db/pool.ts";
import { NOT_MONEY_REASON } from "../formats/format.ts";
import { FULL_SCORE, SMALLEST_COIN } from "../kinds.ts";
import { RUN_LIMITS } from "../limits.ts";
import { comparable, typedKeys } from "./run-inputs.ts";
import type { RunScope } from "./runs.ts";

/**
 * A line that has no outcome yet. A statement that inserts into one of these tables orders its rows: PostgreSQL then finds all
 * rows before it inserts the first, and does not compare each line with all lines before it.
 */
export const openLine = (sql: Transaction) => sql`(
  not exists (select from run_group_lines g where g.line_id = l.line_id)
  and not exists (select from run_diffs d where d.line_id = l.line_id)
  and not exists (select from run_rejects r where r.line_id = l.line_id))`;
/** A payment that no match and no difference has. */
export const openPayment = (sql: Transaction) => sql`(
  not p.is_taken
  and not exists (select from run_group_payments g where g.payment_key = p.payment_key)
  and not exists (select from run_diffs d where d.payment_key = p.payment_key))`;

/** Lines whose kind alone decides. */
export async function judgeByKind(sql: Transaction): Promise<void> {
  await sql`
    insert into run_diffs
    select l.line_id, null, case when l.kind like 'refund%' then 'refund_not_registered' else 'chargeback_not_registered' end,
      null, '{}'
    from run_lines l
    where l.kind in ('refund', 'refund_reversal', 'chargeback', 'chargeback_reversal') and ${openLine(sql)} order by l.line_id`;
  await sql`
    insert into run_rejects
    select l.line_id, l.kind from run_lines l
    where l.kind in ('not_money', 'planned_payout', 'fee', 'adjustment', 'conversion', 'payout_reversal', 'bank_debit')
      and ${openLine(sql)}
    order by l.line_id`;
  await sql`analyze run_diffs, run_rejects`;
}

/**
 * A credit that names several payouts, or several credits that name one payout. Where the sums differ, the difference is that of
 * the sums, and not that to the payout with the nearest amount. None of these payouts is missing.
 */
export async function judgeNamedPayouts(sql: Transaction): Promise<void> {
  await sql`
    with open as (
      select k.*, p.amount_minor + k.difference as line_minor, p.amount_minor as payment_minor,
        p.source = 'payout' and same_currency and p.in_filial and ${openPayment(sql)} as is_payout,
        count(*) over (partition by k.line_id) as of_line, count(*) over (partition by k.payment_key) as of_payment
      from run_links k join run_lines l using (line_id) join run_payments p using (payment_key)
      where l.kind = 'bank_credit' and ${openLine(sql)}
    ),
    sums as (
      select array[line_id] as lines, array_agg(payment_key order by payment_key) as payments, 'payments' as counted,
        sum(payment_minor) as sum_minor, max(line_minor) - sum(payment_minor) as difference
      from open group by line_id
      having bool_and(is_payout and difference <> 0) and max(of_payment) = 1 and count(*) > 1
      union all
      -- Credits whose sum is more than the payout may show it twice.
      select array_agg(line_id), array[payment_key], 'lines', sum(line_minor), sum(line_minor) - max(payment_minor)
      from open group by payment_key
      having bool_and(is_payout and difference <> 0) and max(of_line) = 1 and count(*) > 1 and sum(line_minor) < max(payment_minor)
    ),
    named as (insert into run_named_payments select unnest(payments) from sums)
    insert into run_diffs
    select unnest(lines), null, case when difference > 0 then 'amount_over' else 'amount_under' end, null,
      jsonb_build_object(counted, greatest(cardinality(lines), cardinality(payments))::text, 'sumMinor', sum_minor::text,
        'differenceMinor', difference::text, 'named', to_jsonb(payments)::text)
    from sums where difference <> 0`;
  await sql`analyze run_diffs, run_named_payments`;
}

/**
 * Lines with the reference of a payment that differ from it. Of several lines, the one with the nearest amount is for the
 * payment; the others, and those whose payment is matched, are duplicates.
 */
export async function judgeLinked(sql: Transaction): Promise<void> {
  const coins = sql.json(SMALLEST_COIN);
  await sql`
    with best as (
      select k.*, p.amount_minor as payment_minor, p.currency as payment_currency, p.source, l.amount_minor, l.tip_minor,
        not ${openPayment(sql)} as is_used,
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
          when (is_used or of_payment > 1) and same_currency and amount_minor < 0 then 'direction_mismatch'
          when is_used or of_payment > 1 then 'duplicate_in_statement'
          -- No order has any part of it, so the difference from the report is no tip and no rounding.
          when source = 'late_evidence' and amount_minor > 0 then 'late_money'
          when not same_currency then 'currency_mismatch'
          when difference = 0 then 'ambiguous_match'
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
      insert into run_scores
      select k.line_id, k.payment_key, ${FULL_SCORE}, jsonb_build_object('reference',
        case k.pass when 1 then 'provider' when 2 then 'merchant' else 'typed' end, 'daysApart', abs(k.days))
      from named n join run_links k using (line_id)
      where n.kind = 'ambiguous_match' and k.same_currency and k.difference = 0
    )
    insert into run_diffs
    select line_id, case when kind <> 'ambiguous_match' then payment_key end, kind, null,
      case when equal > 1 then jsonb_build_object('candidates', equal::text) else '{}' end
    from named`;
  await sql`insert into run_named_payments select payment_key from run_scores`;
  await sql`
    insert into run_rejects
    select l.line_id, case l.kind when 'cash_payment' then 'cash_not_compared' else 'not_money' end from run_lines l
    where (l.kind = 'cash_payment' or (l.kind in ('payment', 'bank_credit') and l.amount_minor = 0)) and ${openLine(sql)}
    order by l.line_id`;
  await sql`analyze run_diffs, run_rejects`;
}

/**
 * Equal lines without a provider's reference, of which overlapping files have different counts. The lines that not all of these
 * files have are possible duplicates. Equal rows within one file are several movements.
 */
export async function judgePossibleDuplicates(sql: Transaction): Promise<void> {
  await sql`
    insert into run_diffs
    with unreferenced as (
      select l.line_id, ${openLine(sql)} as is_open, dense_rank() over (order by s.kind, s.provider_type, s.amount_minor, s.currency,
        s.fee_minor, s.net_minor, s.booked_on, s.value_on, s.occurred_at, s.payment_reference, s.merchant_reference,
        s.payout_reference, s.terminal, s.account, s.text) as same
      from run_lines l join statement_lines s using (line_id)
      where l.kind in ('payment', 'bank_credit') and l.provider_key is null
    ),
    equal as (select * from (select *, count(*) over (partition by same) as lines from unreferenced) counted where lines > 1),
    filed as (
      select e.same, e.line_id, e.lines, e.is_open, count(*) as files from equal e join statement_line_sources s using (line_id)
      group by e.same, e.line_id, e.lines, e.is_open)
    select line_id, null, 'possible_duplicate', null, jsonb_build_object('equalLines', lines::text)
    from filed f where is_open and files < (select max(files) from filed o where o.same = f.same)`;
}

export async function judgeUnmatched(sql: Transaction): Promise<void> {
  await sql`
    insert into run_diffs select l.line_id, null, 'unmatched_money', null, '{}' from run_lines l where ${openLine(sql)}
    order by l.line_id`;
}

/**
 * Payments and payouts that this account's statements should have shown: the statements cover every day from the payment to
 * the end of the settlement delay, also days after those of the run, whose lines have had another run. A payment that a
 * statement shows as failed or as cash, on whichever day, is a `status_mismatch`.
 */
export async function judgeMissing(sql: Transaction, scope: RunScope): Promise<void> {
  await sql`
    insert into run_diffs
    with failed_lines as (
      select case kind when 'cash_payment' then 'cash' else coalesce(details ->> ${NOT_MONEY_REASON}::text, provider_type) end as status,
        ${comparable(sql, sql`provider_reference`)} as provider_key, ${comparable(sql, sql`merchant_reference`)} as merchant_key,
        ${typedKeys(sql)} as typed_keys
      from statement_lines
      where account_id = ${scope.accountId} and kind in ('not_money', 'cash_payment') and booked_on
        between ${scope.fromDate}::date - ${RUN_LIMITS.earlyDays}::int and ${scope.toDate}::date + ${RUN_LIMITS.lookBackDays}::int
    )
    select null, p.payment_key, case when f.payment_key is null then 'missing_in_statement' else 'status_mismatch' end, null,
      case when f.payment_key is null then '{}' else jsonb_build_object('status', f.status) end
    from run_payments p
      left join (
        select payment_key, min(status) as status from (
          select p.payment_key, l.status from failed_lines l join run_payments p on p.provider_key = l.provider_key
          union all
          select p.payment_key, l.status from failed_lines l join run_payments p on p.our_key = l.merchant_key
          union all
          select p.payment_key, l.status from failed_lines l join run_payments p on p.typed_key = any (l.typed_keys)
            where p.in_filial and length(p.typed_key) > ${RUN_LIMITS.shortReferenceCharacters}
        ) failed group by payment_key
      ) f on f.payment_key = p.payment_key
    where p.own and p.source in ('transaction', 'payout') and p.route <> 'cash' and p.settled_on between ${scope.fromDate}::date and ${scope.toDate}::date
      and (f.payment_key is not null or daterange(p.settled_on, p.settled_on + 1 + ${scope.settlementDelayDays}::int)
        <@ any (select unnest(covered) from reconciliation_runs where run_id = ${scope.runId}))
      and ${openPayment(sql)}
      and not exists (select from run_named_payments n where n.payment_key = p.payment_key)
    order by p.payment_key`;
  await sql`analyze run_diffs`;
}
