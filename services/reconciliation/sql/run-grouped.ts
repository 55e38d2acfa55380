/**
 * Payouts without a common reference that arrive together, or in parts: one credit of a bank is the exact sum of several payouts
 * of one account, or several credits of one day are the exact sum of one payout. Such groups are candidates; a person confirms
 * them. Groups with references are found before (run-matches.ts, `matchSums`).
 */
import type { Transaction } from "../../db/pool.ts";
import { SCORE } from "../kinds.ts";
import { RUN_LIMITS } from "../limits.ts";
import { openLine, openPayment } from "./run-differences.ts";
import type { RunScope } from "./runs.ts";

/** Credits and payouts that no other rule has joined, as pairs that could belong to one group. */
async function findPairs(sql: Transaction, accountId: number): Promise<void> {
  const { earlyDays, candidateDays } = RUN_LIMITS;
  await sql`
    create temporary table run_parts on commit drop as
    select l.line_id, l.fingerprint, l.booked_on, l.amount_minor as line_minor, p.payment_key, p.amount_minor as payment_minor,
      split_part(p.payment_key, ':', 2) as payer, abs(l.booked_on - p.settled_on) as days
    from run_open l cross join (select generate_series(${-earlyDays}::int, ${candidateDays}::int) as days) d
      join run_free p on (p.class, p.currency, p.settled_on) = (l.class, l.currency, l.booked_on - d.days)
        and p.amount_minor <> l.amount_minor
    where l.class = 'payout' and l.kind = 'bank_credit' and coalesce(l.net_minor, l.amount_minor) = l.amount_minor
      and ${openLine(sql)} and ${openPayment(sql)}
      and not exists (select from run_named_payments n where n.payment_key = p.payment_key)
      and not exists (
        select from match_decisions m where m.account_id = ${accountId} and m.fingerprint = l.fingerprint
          and m.payment_key = p.payment_key and m.decision = 'rejected')`;
  await sql`analyze run_parts`;
}

/**
 * Compares all sums of the possible parts of one line or one payout: at most 2 to the power of `groupedParts`. One with more
 * possible parts is left to a person, because many sums would be equal by chance.
 */
async function findGroups(sql: Transaction): Promise<void> {
  const most = RUN_LIMITS.groupedParts;
  await sql.unsafe(`
    create temporary table run_grouped (group_key text, line_id bigint, payment_key text, days integer, parts integer,
      sum_minor bigint, is_of_line boolean) on commit drop`);
  await sql`
    insert into run_grouped
    with recursive part as (
      select *, row_number() over (partition by line_id, payer order by payment_key) as place,
        count(*) over (partition by line_id, payer) as possible
      from run_parts where payment_minor < line_minor
    ),
    sums as (
      select line_id, payer, place, line_minor, payment_minor as total, array[payment_key] as keys, days
      from part where possible <= ${most}
      union all
      select s.line_id, s.payer, p.place, s.line_minor, s.total + p.payment_minor, s.keys || p.payment_key, greatest(s.days, p.days)
      from sums s join part p on p.line_id = s.line_id and p.payer = s.payer and p.place > s.place
      where s.total + p.payment_minor <= s.line_minor
    )
    select 'line:' || line_id || ' ' || array_to_string(keys, ' '), line_id, unnest(keys), days, cardinality(keys), total, true
    from sums where total = line_minor`;
  await sql`
    insert into run_grouped
    with recursive part as (
      select *, row_number() over (partition by payment_key, booked_on order by fingerprint) as place,
        count(*) over (partition by payment_key, booked_on) as possible
      from run_parts where line_minor < payment_minor
    ),
    sums as (
      select payment_key, booked_on, place, payment_minor, line_minor as total, array[line_id] as lines, days
      from part where possible <= ${most}
      union all
      select s.payment_key, s.booked_on, p.place, s.payment_minor, s.total + p.line_minor, s.lines || p.line_id, s.days
      from sums s join part p on p.payment_key = s.payment_key and p.booked_on = s.booked_on and p.place > s.place
      where s.total + p.line_minor <= s.payment_minor
    )
    select payment_key || ' ' || array_to_string(lines, ' '), unnest(lines), payment_key, days, cardinality(lines), total, false
    from sums where total = payment_minor`;
  await sql`analyze run_grouped`;
}

/** A group is clear when none of its lines and payouts is in another group. */
export async function judgeGrouped(sql: Transaction, { accountId }: RunScope): Promise<void> {
  const { parts, day } = SCORE;
  await findPairs(sql, accountId);
  await findGroups(sql);
  await sql`
    create temporary table run_grouped_scores on commit drop as
    with of_line as (select line_id, count(distinct group_key) as line_groups from run_grouped group by line_id),
    of_payment as (select payment_key, count(distinct group_key) as payment_groups from run_grouped group by payment_key)
    select g.*, ${parts.amount}::int + greatest(0, ${parts.date}::int - ${day}::int * days) as score,
      bool_and(line_groups = 1 and payment_groups = 1) over (partition by group_key) as is_clear
    from run_grouped g join of_line using (line_id) join of_payment using (payment_key)`;
  await sql`
    insert into run_scores
    select distinct on (line_id, payment_key) line_id, payment_key, score, jsonb_build_object('amount', ${parts.amount}::int,
      'date', score - ${parts.amount}::int, 'time', 0, 'terminal', 0, 'reference', 0, 'daysApart', days,
      case when is_of_line then 'payments' else 'lines' end, parts, 'sumMinor', sum_minor::text, 'differenceMinor', '0')
    from run_grouped_scores order by line_id, payment_key, score desc, parts, is_of_line`;
  await sql`
    insert into run_diffs
    select line_id, case when bool_and(is_clear and not is_of_line) then min(payment_key) end,
      case when bool_and(is_clear) then 'reference_mismatch' else 'ambiguous_match' end, max(score),
      jsonb_build_object('candidates', count(distinct group_key)::text) || case when bool_and(is_clear) then jsonb_build_object(
        case when bool_and(is_of_line) then 'payments' else 'lines' end, max(parts)::text, 'sumMinor', max(sum_minor)::text,
        'differenceMinor', '0') else '{}' end
        || case when bool_and(is_clear and is_of_line) then jsonb_build_object('named', jsonb_agg(payment_key order by payment_key)::text)
          else '{}' end
    from run_grouped_scores group by line_id`;
  await sql`insert into run_named_payments select distinct payment_key from run_grouped`;
  await sql`analyze run_diffs, run_named_payments, run_scores`;
}
