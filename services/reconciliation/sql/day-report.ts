/** The sums of a filial's day. Each total is computed separately from its parts, so that a missing part is visible. */
import type { Queryable } from "../../db/pool.ts";

export interface FilialDay {
  readonly organizationId: number;
  readonly filialId: number;
  readonly mode: "test" | "live";
  readonly day: string;
  readonly from: Date;
  readonly to: Date;
}

/** The zone that the filial's accounts have, if they agree, and whether there is such a filial. */
export async function findFilialZone(
  sql: Queryable,
  { organizationId, filialId, mode }: Pick<FilialDay, "organizationId" | "filialId" | "mode">,
): Promise<{ readonly time_zone: string | null } | undefined> {
  const [row] = await sql<{ time_zone: string | null }[]>`
    select (select case when count(distinct time_zone) = 1 then min(time_zone) end from statement_accounts a
      where a.organization_id = f.organization_id and a.filial_id = f.filial_id and a.mode = ${mode}) as time_zone
    from filials f where f.organization_id = ${organizationId} and f.filial_id = ${filialId}`;
  return row;
}

/** The instants at which a business day begins and ends. */
export async function findInstants(
  sql: Queryable,
  {
    day,
    timeZone,
    startsAtMinute,
  }: { readonly day: string; readonly timeZone: string; readonly startsAtMinute: number },
): Promise<{ readonly from: Date; readonly to: Date }> {
  const [row] = await sql<[{ from: Date; to: Date }]>`
    select first_instant(begins, ${timeZone}) as from, first_instant(begins + interval '1 day', ${timeZone}) as to
    from (select ${day}::date::timestamp + ${startsAtMinute}::integer * interval '1 minute' as begins) b`;
  return row;
}

export async function listFilialAccounts(
  sql: Queryable,
  { organizationId, filialId, mode, day }: FilialDay,
): Promise<readonly { readonly account_id: number; readonly name: string; readonly is_closed: boolean }[]> {
  return await sql<{ account_id: number; name: string; is_closed: boolean }[]>`
    select a.account_id, a.name, exists (
      select from period_closings c where c.account_id = a.account_id and ${day}::date between c.from_date and c.to_date) as is_closed
    from statement_accounts a
    where a.organization_id = ${organizationId} and a.filial_id = ${filialId} and a.mode = ${mode} order by a.account_id`;
}

export interface PartRow {
  readonly currency: string;
  readonly part: string;
  readonly count: number;
  readonly minor: string;
}

/** Settled payments: by route and as `total`; those that are not cash also as `electronic` and by outcome. */
export async function sumSettled(sql: Queryable, filialDay: FilialDay): Promise<readonly PartRow[]> {
  const { organizationId, filialId, mode, from, to } = filialDay;
  return await sql<PartRow[]>`
    with settled as (
      select t.currency, t.route, t.amount_minor, case
          when t.route = 'cash' then null
          when exists (select from match_payments m where m.payment_key = 'transaction:' || t.transaction_id) then 'matched'
          when exists (
            select from line_outcomes o where o.payment_key = 'transaction:' || t.transaction_id and o.outcome = 'differs')
            or exists (
              select from issues i where i.intent_id = t.intent_id and i.source = 'statement' and i.status <> 'ended'
                and i.subject_key = 'transaction:' || t.transaction_id) then 'differing'
          else 'expected' end as outcome
      from transactions t join stations s using (station_id)
      where t.organization_id = ${organizationId} and s.filial_id = ${filialId} and s.sandbox = ${mode === "test"}
        and t.settled_at >= ${from} and t.settled_at < ${to}
    )
    select currency, part, count(*) as count, sum(amount_minor)::text as minor from settled cross join lateral (
      values ('total'), (route), (outcome), (case when route <> 'cash' then 'electronic' end)) parts (part)
    where part is not null group by currency, part`;
}

/** Rows that are no part of an account's balance: no money has moved, a payout is only announced, or it is cash. */
const NO_BALANCE = ["planned_payout", "not_money", "cash_payment"];

/** Lines that were booked on the day: by part, as `total`, and `tips`. A fee counts where it is; its line counts once. */
export async function sumLines(sql: Queryable, filialDay: FilialDay): Promise<readonly PartRow[]> {
  const { organizationId, filialId, mode, day } = filialDay;
  return await sql<PartRow[]>`
    with lines as (
      select l.currency, l.kind, l.amount_minor, coalesce(l.fee_minor, 0) as fee_minor, l.tip_minor
      from statement_accounts a join statement_lines l using (account_id)
      where a.organization_id = ${organizationId} and a.filial_id = ${filialId} and a.mode = ${mode}
        and l.booked_on = ${day}::date and l.kind <> all (${NO_BALANCE}::text[])
    )
    select currency, part, sum(lines)::bigint as count, sum(minor)::text as minor from lines cross join lateral (values
      (case when kind in ('refund', 'refund_reversal') then 'refunds' when kind in ('chargeback', 'chargeback_reversal') then 'chargebacks'
        when kind in ('payout', 'payout_reversal') then 'payouts' when kind in ('bank_credit', 'bank_debit') then 'bank'
        when kind = 'payment' then 'payments' when kind = 'fee' then 'fees' else 'other' end, 1, amount_minor),
      (case when fee_minor <> 0 then 'fees' end, 0, fee_minor),
      ('total', 1, amount_minor + fee_minor),
      (case when kind = 'payment' and tip_minor <> 0 then 'tips' end, 1, tip_minor)) parts (part, lines, minor)
    where part is not null group by currency, part`;
}

/** Undecided issues of the day, by kind, and as `total`; those without an amount have the currency ''. */
export async function sumOpenIssues(sql: Queryable, filialDay: FilialDay): Promise<readonly PartRow[]> {
  const { organizationId, filialId, mode, day, from, to } = filialDay;
  return await sql<PartRow[]>`
    with undecided as (
      select i.kind, coalesce(case when i.amount_minor is not null then i.currency end, '') as currency,
        coalesce(i.amount_minor, 0) as amount_minor
      from issues i
      where i.organization_id = ${organizationId} and i.status in ('open', 'assigned')
        and (i.account_key in (
            select coalesce('provider:' || a.config_id, 'statement:' || a.account_id) from statement_accounts a
            where a.organization_id = ${organizationId} and a.filial_id = ${filialId} and a.mode = ${mode})
          or i.station_id in (
            select station_id from stations s
            where s.organization_id = ${organizationId} and s.filial_id = ${filialId} and s.sandbox = ${mode === "test"}))
        and case when i.kind = 'malformed_line' then days_of_issue(i, null) @> ${day}::date
          else coalesce(
            (select d.on_date = ${day}::date from run_differences d where d.issue_id = i.issue_id order by d.run_id desc limit 1),
            i.opened_at >= ${from} and i.opened_at < ${to}) end
    )
    select currency, part, count(*) as count, sum(amount_minor)::text as minor
    from undecided cross join lateral (values ('total'), (kind)) parts (part) group by currency, part order by part`;
}
