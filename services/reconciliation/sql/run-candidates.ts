/** Lines without a common reference: payments of the same amount within some days are candidates, with an explained score. */
import type { Transaction } from "../../db/pool.ts";
import { SCORE } from "../kinds.ts";
import { RUN_LIMITS } from "../limits.ts";
import { openLine, openPayment } from "./run-differences.ts";
import type { RunScope } from "./runs.ts";

/** Finds the lines and payments that no reference has joined. */
async function findOpen(sql: Transaction): Promise<void> {
  await sql.unsafe(`
    create temporary table run_open on commit drop as select ''::text as class, l.* from run_lines l limit 0;
    create temporary table run_free on commit drop as select ''::text as class, p.* from run_payments p limit 0;
    create temporary table run_reachable (line_id bigint, payments bigint) on commit drop;
    create temporary table run_guesses (line_id bigint, payment_key text, score integer, explanation jsonb) on commit drop;`);
  // A bank has QR payments and payouts, and a provider has payments at terminals and by QR.
  await sql`
    insert into run_open select class, l.* from run_lines l join (values ('payment', 'terminal'), ('payment', 'qr'),
        ('bank_credit', 'payout'), ('bank_credit', 'qr')) as c (kind, class) using (kind)
    where l.amount_minor > 0 and ${openLine(sql)}`;
  await sql`update run_open set amount_minor = net_minor where class = 'payout' and net_minor is not null`;
  await sql`
    insert into run_free select case p.route when 'payout' then 'payout' when 'dynamic_qr' then 'qr' else 'terminal' end, p.*
    from run_payments p
    where p.route <> 'cash' and p.source <> 'issue' and p.in_filial and ${openPayment(sql)}
      and not exists (select from run_named_payments n where n.payment_key = p.payment_key)`;
  await sql`analyze run_open, run_free`;
}

/** The days by which a line may come after its payment. */
const daysApart = (sql: Transaction) =>
  sql`(select generate_series(${-RUN_LIMITS.earlyDays}::int, ${RUN_LIMITS.candidateDays}::int) as days)`;

/**
 * Days are joined by equality, so that the join stays a hash join. A line with very many candidates is ambiguous without
 * listing them: the amount alone is too little evidence for any of them.
 */
async function scoreCandidates(sql: Transaction, accountId: number): Promise<void> {
  const { candidates } = RUN_LIMITS;
  const { parts } = SCORE;
  const day = daysApart(sql);
  await sql`
    insert into run_reachable
    select o.line_id, sum(c.payments) from run_open o cross join ${day} d
      join (select class, amount_minor, currency, settled_on, count(*) as payments from run_free
        group by class, amount_minor, currency, settled_on) c
        on (c.class, c.amount_minor, c.currency, c.settled_on) = (o.class, o.amount_minor, o.currency, o.booked_on - d.days)
    group by o.line_id`;
  await sql`
    insert into run_guesses
    select line_id, payment_key, amount + date + time + terminal + reference,
      jsonb_strip_nulls(jsonb_build_object('amount', amount, 'date', date, 'time', time, 'terminal', terminal, 'reference', reference,
        'daysApart', days, 'minutesApart', minutes))
    from (
      select o.line_id, p.payment_key, abs(d.days) as days, m.minutes, ${parts.amount}::int as amount,
        greatest(0, ${parts.date}::int - ${SCORE.day}::int * abs(d.days)) as date,
        case when m.minutes <= ${SCORE.nearMinutes}::int then ${parts.time}::int
          when m.minutes <= ${SCORE.sameHourMinutes}::int then ${parts.time / 2}::int else 0 end as time,
        case when t.station_id = p.station_id then ${parts.terminal}::int else 0 end as terminal,
        case when strpos(said.text, upper(p.our_key)) > 0 or strpos(said.text, upper(p.provider_key)) > 0
          or (length(p.typed_key) >= ${RUN_LIMITS.shortestWord} and strpos(typed_reference(said.text), p.typed_key) > 0) then ${parts.reference}::int else 0 end as reference
      from run_reachable r join run_open o using (line_id) join statement_lines s using (line_id) cross join ${day} d
        join run_free p on (p.class, p.amount_minor, p.currency, p.settled_on)
          = (o.class, o.amount_minor, o.currency, o.booked_on - d.days)
        left join run_terminals t on t.terminal = o.terminal
        cross join lateral (select floor(abs(extract(epoch from o.occurred_at - p.settled_at)) / 60)::int as minutes) m
        cross join lateral (select upper(concat_ws(' ', s.text, s.provider_reference, s.payment_reference,
          s.merchant_reference, (select string_agg(value, ' ') from jsonb_each_text(s.details)))) as text) said
      where r.payments <= ${candidates} and not exists (
        select from match_decisions m where m.account_id = ${accountId} and m.fingerprint = o.fingerprint
          and m.payment_key = p.payment_key and m.decision = 'rejected')
    ) scored`;
  await sql`analyze run_guesses`;
}

/** A line has one clear candidate when no other is as good, and when it is the best of no other line. */
export async function judgeCandidates(sql: Transaction, { accountId }: RunScope): Promise<void> {
  await findOpen(sql);
  await scoreCandidates(sql, accountId);
  await sql`
    insert into run_diffs
    select line_id, null, 'ambiguous_match', null, jsonb_build_object('candidates', payments::text)
    from run_reachable where payments > ${RUN_LIMITS.candidates}`;
  // None of their payments is missing: each may be that of one of the lines.
  await sql`
    insert into run_named_payments
    select payment_key from run_free where (class, amount_minor, currency, settled_on) in (
      select distinct o.class, o.amount_minor, o.currency, o.booked_on - d.days
      from run_reachable r join run_open o using (line_id) cross join ${daysApart(sql)} d
      where r.payments > ${RUN_LIMITS.candidates})`;
  await sql`
    with best as (
      select *, count(*) over (partition by payment_key) as of_payment
      from (select *, rank() over (partition by line_id order by score desc) as place from run_guesses) ranked
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
  await sql`insert into run_scores select line_id, payment_key, score, explanation from run_guesses`;
  await sql`analyze run_diffs, run_named_payments, run_scores`;
}
