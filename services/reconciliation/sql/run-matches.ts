/** The matches of a run: what a person has confirmed, then the exact tier for all lines before any weaker evidence. */
import type { Fragment, Transaction } from "../../db/pool.ts";
import { RUN_LIMITS } from "../limits.ts";
import { arrivedMinor } from "./run-inputs.ts";
import type { RunScope } from "./runs.ts";

const PASSES = [1, 2, 3] as const;
/** The most rounds of one pass. If a line's best payment goes to another line, it tries its next best in the next round. */
const ROUNDS = 20;

/**
 * What people have confirmed: groups of one line with several payments, or of one payment with several lines, whose sums are
 * equal. If a line or a payment of a group is gone or has another amount, the group waits until it fits again.
 */
export async function matchConfirmed(sql: Transaction, { accountId }: RunScope): Promise<void> {
  await sql`
    with decided as (
      select l.line_id, d.payment_key, l.booked_on - p.settled_on as days, ${arrivedMinor(sql)} as line_minor,
        p.amount_minor as payment_minor, coalesce(not p.is_taken and l.currency = p.currency, false) as is_there,
        count(*) over (partition by d.fingerprint) as of_line, count(*) over (partition by d.payment_key) as of_payment
      from match_decisions d left join run_lines l using (fingerprint) left join run_payments p using (payment_key)
      where d.account_id = ${accountId} and d.decision = 'confirmed'
    ),
    grouped as (
      select *, case when of_line > 1 then 'line:' || line_id else payment_key end as group_key from decided
    ),
    confirmed as (
      select group_key, line_id, payment_key, days from grouped where group_key in (
        select group_key from grouped group by group_key
        having bool_and(is_there) and case when max(of_line) > 1
          then max(of_payment) = 1 and sum(payment_minor) = max(line_minor)
          else sum(line_minor) = max(payment_minor) end)
    ),
    of_line as (insert into run_group_lines select distinct group_key, line_id from confirmed),
    of_payment as (insert into run_group_payments select distinct group_key, payment_key from confirmed)
    insert into run_groups select group_key, 'confirmed', 0, max(abs(days)) from confirmed group by group_key`;
}

/**
 * Pairs of one line and one payment with a common reference and equal amounts. Of several lines, the nearest in time gets the
 * payment. A line with two equally near payments gets none.
 */
export async function pairExact(sql: Transaction): Promise<void> {
  for (const pass of PASSES) {
    for (let round = 0; round < ROUNDS; round += 1) {
      const paired = await sql`
        insert into run_pairs
        select line_id, payment_key, pass, days from (
          select k.*,
            rank() over (partition by line_id order by preference, abs(days)) as of_line,
            count(*) over (partition by line_id, preference, abs(days)) as ties,
            row_number() over (partition by payment_key order by abs(days), booked_on, fingerprint) as of_payment
          from run_links k
          where pass = ${pass} and same_currency and difference = 0 and not is_taken
            and not exists (select from run_pairs r where r.line_id = k.line_id)
            and not exists (select from run_pairs r where r.payment_key = k.payment_key)
            and not exists (select from run_group_lines r where r.line_id = k.line_id)
            and not exists (select from run_group_payments r where r.payment_key = k.payment_key)
        ) ranked where of_line = 1 and ties = 1 and of_payment = 1`;
      await sql`analyze run_pairs`;
      if (paired.count === 0) break;
    }
  }
}

/**
 * The station of each terminal: that of nearly all exact pairs of its lines. The matches of the days around the run count too: a
 * run of one day must not lose what a run of a month has found.
 */
export async function findTerminals(sql: Transaction, { accountId, fromDate, toDate }: RunScope): Promise<void> {
  const { lookBackDays } = RUN_LIMITS;
  await sql`
    insert into run_terminals
    select terminal, station_id from (
      select terminal, station_id, count(*) as pairs, sum(count(*)) over (partition by terminal) as of_terminal
      from (
        select terminal, station_id from run_pairs join run_lines using (line_id) join run_payments using (payment_key)
        where terminal <> '' and station_id is not null
        union all
        select l.terminal, t.station_id
        from statement_lines l join match_lines using (line_id) join statement_matches m using (match_id)
          join match_payments p using (match_id)
          join transactions t on t.transaction_id = case when p.payment_key like 'transaction:%' then substr(p.payment_key, 13)::bigint end
        where l.account_id = ${accountId} and m.tier = 'exact'
          and l.booked_on between ${fromDate}::date - ${lookBackDays}::int and ${toDate}::date + ${lookBackDays}::int
          and l.terminal in (select terminal from run_lines where terminal <> '')
          and not exists (select from run_lines r where r.line_id = l.line_id)
      ) pairs
      group by terminal, station_id
    ) counted
    where pairs >= ${RUN_LIMITS.terminalMatches} and pairs >= of_terminal * ${RUN_LIMITS.terminalShare}::numeric`;
}

/**
 * A pair becomes a match if no rule holds for it. Otherwise the first rule that holds gives its difference, in the order of
 * `RUN_KINDS`.
 */
export async function judgePairs(sql: Transaction, { settlementDelayDays }: RunScope): Promise<void> {
  const latest = settlementDelayDays + RUN_LIMITS.graceDays;
  await sql`
    insert into run_diffs
    select line_id, payment_key, kind, 100, '{}' from (
      select r.line_id, r.payment_key, case
          when p.source = 'issue' then 'callback_issue'
          when p.source = 'late_evidence' then 'late_money'
          when not p.in_filial or t.station_id <> p.station_id then 'wrong_station'
          when r.days > ${latest}::int or r.days < ${-RUN_LIMITS.earlyDays}::int then 'date_out_of_window'
          when l.net_minor <> l.amount_minor + l.fee_minor then 'fee_mismatch'
        end as kind
      from run_pairs r join run_lines l using (line_id) join run_payments p using (payment_key)
        left join run_terminals t on t.terminal = l.terminal
    ) judged where kind is not null`;
  await sql`
    with matched as (
      select r.* from run_pairs r where not exists (select from run_diffs d where d.line_id = r.line_id)
    ),
    of_line as (insert into run_group_lines select payment_key, line_id from matched),
    of_payment as (insert into run_group_payments select payment_key, payment_key from matched)
    insert into run_groups select payment_key, 'exact', pass, abs(days) from matched`;
}

/** Matches several lines with one payment, or one line with several payments: by reference, and where the sums are equal. */
export async function matchSums(sql: Transaction): Promise<void> {
  const free = sql`
    from run_links k join run_lines l using (line_id) join run_payments p using (payment_key)
    where k.same_currency and not k.is_taken and l.amount_minor > 0 and p.source not in ('issue', 'late_evidence')
      and p.in_filial
      and not exists (select from run_pairs r where r.line_id = k.line_id)
      and not exists (select from run_pairs r where r.payment_key = k.payment_key)
      and not exists (select from run_group_lines g where g.line_id = k.line_id)
      and not exists (select from run_group_payments g where g.payment_key = k.payment_key)`;
  await sql`
    with free as (
      select k.*, p.amount_minor + k.difference as line_minor, p.amount_minor as payment_minor,
        count(*) over (partition by k.line_id) as of_line, count(*) over (partition by k.payment_key) as of_payment ${free}
    ),
    sums as (
      -- Several lines, which name no other payment, and one payment.
      select payment_key as group_key, max(pass) as pass, max(abs(days)) as days from free
        group by payment_key having count(*) > 1 and max(of_line) = 1 and sum(line_minor) = max(payment_minor)
      union all
      -- One line, and several payments, which no other line names.
      select 'line:' || line_id, max(pass), max(abs(days)) from free
        group by line_id having count(*) > 1 and max(of_payment) = 1 and sum(payment_minor) = max(line_minor)
    ),
    members as (
      select s.group_key, f.line_id, f.payment_key from sums s join free f on f.payment_key = s.group_key
      union all select s.group_key, f.line_id, f.payment_key from sums s join free f on 'line:' || f.line_id = s.group_key
    ),
    of_line as (insert into run_group_lines select distinct group_key, line_id from members),
    of_payment as (insert into run_group_payments select distinct group_key, payment_key from members)
    insert into run_groups select group_key, 'exact', pass, days from sums`;
  await sql`analyze run_groups, run_group_lines, run_group_payments`;
}

/**
 * Matches payouts of single payments: such a row has the reference of the payment whose net amount it pays out. If several such
 * payouts do not add up to the payment, the first one is compared with the payment, and the others with zero.
 */
export async function matchShares(sql: Transaction, { accountId }: RunScope): Promise<void> {
  await sql`
    with share as (
      select l.line_id, l.amount_minor as paid_minor, own.provider_reference,
        case when p.sum_minor + p.paid_minor = 0 then -l.amount_minor when p.is_first then p.sum_minor else 0 end as sum_minor,
        'batch:' || ${accountId}::bigint || ':' || encode(l.fingerprint, 'hex') as group_key
      from run_lines l join statement_lines own using (line_id) cross join lateral (
        select sum(coalesce(s.net_minor, s.amount_minor + coalesce(s.fee_minor, 0))) filter (where s.kind = 'payment') as sum_minor,
          sum(s.amount_minor) filter (where s.kind = 'payout') as paid_minor,
          bool_and(s.kind = 'payment' or (s.booked_on, s.fingerprint) >= (l.booked_on, l.fingerprint)) as is_first
        from statement_lines s
        where s.account_id = ${accountId} and s.provider_reference = own.provider_reference and s.provider_reference <> ''
          and s.kind in ('payment', 'payout') and s.currency = l.currency) p
      where l.kind = 'payout' and p.sum_minor is not null
        and not exists (select from run_group_lines g where g.line_id = l.line_id)
    ),
    matched as (select * from share where paid_minor + sum_minor = 0),
    of_line as (insert into run_group_lines select group_key, line_id from matched),
    of_payment as (insert into run_group_payments select group_key, group_key from matched),
    of_group as (insert into run_groups select group_key, 'exact', 1, 0 from matched)
    insert into run_diffs
    select line_id, null, 'batch_total_mismatch', null,
      jsonb_build_object('payoutMinor', paid_minor::text, 'linesMinor', sum_minor::text, 'lines', '1', 'share', provider_reference,
        'differenceMinor', (paid_minor + sum_minor)::text)
    from share where paid_minor + sum_minor <> 0`;
}

/** Whether the line `s` is of the payout `u`. */
const ofUse = (sql: Transaction): Fragment => sql`
  s.payout_reference = u.payout_reference and s.booked_on between u.from_date and u.to_date`;

/**
 * Matches payouts with the sum of the lines that name them. Lines in other currencies are not compared: no rate is known. A
 * reference that is used again long after its last line names another payout.
 */
export async function matchBatches(sql: Transaction, { accountId }: RunScope): Promise<void> {
  await sql`
    with uses as materialized (
      select * from payout_uses(${accountId}, array(select distinct payout_key from run_lines where payout_key is not null))
    ),
    named as (
      insert into payout_names select ${accountId}, payout_reference, from_date, use_day from uses
      on conflict do nothing
    ),
    converted as (
      select u.payout_reference as payout_key, u.use_day from uses u join statement_lines s on ${ofUse(sql)}
      where s.account_id = ${accountId} and s.payout_reference <> '' and s.kind <> 'not_money'
      group by u.payout_reference, u.use_day having count(distinct s.currency) > 1
    ),
    batch as (
      select u.payout_reference as payout_key, u.use_day, s.currency, nullif(count(*) filter (where s.kind <> 'payout'), 0) as lines,
        sum(coalesce(s.net_minor, s.amount_minor + coalesce(s.fee_minor, 0))) filter (where s.kind <> 'payout') as sum_minor,
        sum(s.amount_minor) filter (where s.kind = 'payout') as paid_minor
      from uses u join statement_lines s on ${ofUse(sql)}
      where s.account_id = ${accountId} and s.payout_reference <> '' and s.kind not in ('planned_payout', 'payout_reversal', 'not_money')
      group by u.payout_reference, u.use_day, s.currency
    ),
    payout as (
      select l.line_id, l.payout_key, nullif(u.use_day, '-infinity')::text as since, l.currency, b.lines, b.sum_minor, b.paid_minor,
        (l.payout_key, u.use_day) in (select payout_key, use_day from converted) is true as is_converted
      from run_lines l left join uses u on u.payout_reference = l.payout_key and l.booked_on between u.from_date and u.to_date
        left join batch b on b.payout_key = l.payout_key and b.use_day = u.use_day and b.currency = l.currency
      where l.kind = 'payout' and not exists (select from run_group_lines g where g.line_id = l.line_id)
        and not exists (select from run_diffs d where d.line_id = l.line_id)
    ),
    matched as (
      select *, concat_ws(':', 'batch', ${accountId}::bigint, payout_key, currency, since) as group_key
      from payout where not is_converted and lines is not null and paid_minor + sum_minor = 0
    ),
    of_line as (insert into run_group_lines select group_key, line_id from matched),
    of_payment as (insert into run_group_payments select distinct group_key, group_key from matched),
    of_group as (insert into run_groups select distinct group_key, 'exact', 1, 0 from matched),
    differing as (
      insert into run_diffs
      select line_id, null, 'batch_total_mismatch', null,
        jsonb_strip_nulls(jsonb_build_object('payoutMinor', paid_minor::text, 'linesMinor', sum_minor::text, 'lines', lines::text,
          'differenceMinor', (paid_minor + sum_minor)::text, 'since', since))
      from payout where not is_converted and lines is not null and paid_minor + sum_minor <> 0
    )
    insert into run_rejects
    select line_id, case when is_converted then 'payout_converted' else 'payout_without_lines' end
    from payout where is_converted or lines is null`;
}
