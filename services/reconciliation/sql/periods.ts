/** Periods of accounts: what each still lacks for its close, and which closing covers an import. An open period is not stored. */
import type { MISSING_CODES, PERIOD_KINDS } from "../../bus/messages/reconciliation-periods.ts";
import type { Fragment, Queryable } from "../../db/pool.ts";
import { RUN_LIMITS } from "../limits.ts";

export type PeriodKind = (typeof PERIOD_KINDS)[number];

export interface Period {
  readonly kind: PeriodKind;
  readonly fromDate: string;
  readonly toDate: string;
}

/**
 * The closed period that rests on an import; undefined when there is none, and the import may be withdrawn. The caller has locked
 * the import (`for update`): a close locks the imports that it rests on before it checks them, so one of both sees the other.
 */
export async function closedPeriodOf(
  sql: Queryable,
  importId: number,
): Promise<(Period & { readonly closingId: number }) | undefined> {
  const [row] = await sql<{ closing_id: number; kind: PeriodKind; from_date: string; to_date: string }[]>`
    select c.closing_id, c.kind, c.from_date::text as from_date, c.to_date::text as to_date
    from closing_imports r join period_closings c using (closing_id)
    where r.import_id = ${importId} order by c.closing_id limit 1`;
  return row && { closingId: row.closing_id, kind: row.kind, fromDate: row.from_date, toDate: row.to_date };
}

/** What is missing, how much of it, and since or until which day where that is known. */
interface MissingRow {
  readonly code: (typeof MISSING_CODES)[number];
  readonly count: number;
  readonly day: string | null;
}

interface PeriodRow {
  readonly account_id: number;
  readonly filial_id: number | null;
  readonly from_date: string;
  readonly to_date: string;
  readonly closing_id: number | null;
  readonly missing: readonly MissingRow[];
}

/**
 * By account and day, within an organization. A day of a closed month is closed with it. An account that is no longer used has
 * no periods after its last day, and after its statements.
 */
export async function listPeriods(
  sql: Queryable,
  page: {
    readonly organizationId: number;
    readonly kind: PeriodKind;
    readonly accountId?: number | undefined;
    readonly filialId?: number | undefined;
    /** Days from the first of these to the last one. Months that have one of these days. */
    readonly fromDate: string;
    readonly toDate: string;
    readonly after?: { readonly accountId: number; readonly fromDate: string } | undefined;
    readonly limit: number;
  },
): Promise<readonly PeriodRow[]> {
  const { organizationId, kind, accountId = null, filialId = null, fromDate, toDate, limit } = page;
  const { after = { accountId: 0, fromDate: "-infinity" } } = page;
  return await sql<PeriodRow[]>`
    with periods as (
      select a.*, day::date as from_date,
        case when ${kind} = 'day' then day::date else (day + interval '1 month' - interval '1 day')::date end as to_date
      from statement_accounts a cross join lateral generate_series(
        case when ${kind} = 'day' then ${fromDate}::date else date_trunc('month', ${fromDate}::date) end::timestamp,
        least(${toDate}::date, case when a.last_day is not null then greatest(a.last_day, newest_statement_day(a.account_id)) end)::timestamp,
        case when ${kind} = 'day' then interval '1 day' else interval '1 month' end) day
      where a.organization_id = ${organizationId} and (${accountId}::bigint is null or a.account_id = ${accountId})
        and (${filialId}::bigint is null or a.filial_id = ${filialId})
        and (a.account_id, day::date) > (${after.accountId}::bigint, ${after.fromDate}::text::date)
      order by a.account_id, day limit ${limit}
    ),
    -- Each undecided issue with its days, once for all periods.
    undecided as materialized (
      select a.account_id, days_of_issue(i, a.time_zone) as days
      from (select distinct account_id, config_id, time_zone from periods) a join issues i
        on i.account_key = coalesce('provider:' || a.config_id, 'statement:' || a.account_id)
      where i.organization_id = ${organizationId} and i.status in ('open', 'assigned')
    )
    select p.account_id, p.filial_id, p.from_date::text as from_date, p.to_date::text as to_date, c.closing_id,
      case when c.closing_id is not null then '[]' else (
        select coalesce(jsonb_agg(jsonb_build_object('code', code, 'count', count, 'day', day) order by place), '[]')
        from (${missing(sql)}) each (place, code, count, day) where count > 0) end as missing
    from periods p left join lateral (
      select min(closing_id) as closing_id from period_closings c
      where c.account_id = p.account_id and c.from_date <= p.from_date and c.to_date >= p.to_date) c on true
    order by p.account_id, p.from_date`;
}

/** What a close of the period `p` lacks. `undecided` has the days of the issues that wait for a person. */
const missing = (sql: Queryable): Fragment => sql`
  select 1, 'settlement_delay', 1, p.to_date + 1 + p.settlement_delay_days
    where now() < first_instant(p.to_date + 1 + p.settlement_delay_days, coalesce(p.time_zone, 'UTC'))
  union all
  select 2, 'statement_missing', sum(upper(days) - lower(days))::integer, min(lower(days)) from unnest(
    datemultirange(daterange(p.from_date, p.to_date, '[]')) - covered_days(p.account_id, ${RUN_LIMITS.graceDays})) days
  union all
  select 3, case when i.status = 'held' then 'import_held' else 'import_unfinished' end, count(*)::integer, min(i.from_date)
    from statement_imports i where i.organization_id = p.organization_id and i.account_id = p.account_id
      and i.status in ('held', 'needs_format', 'waiting', 'importing', 'withdrawing')
      and (coalesce(i.from_date, p.from_date) <= p.to_date and coalesce(i.to_date, p.to_date) >= p.from_date
        -- Lines may be booked on other days than those that their file names.
        or i.status = 'withdrawing' and exists (
          select from statement_line_sources s join statement_lines l using (line_id)
          where s.import_id = i.import_id and l.booked_on between p.from_date and p.to_date))
    group by i.status = 'held'
  union all
  select 4, 'run_missing', count(*)::integer, min(l.booked_on) from statement_lines l
    where l.account_id = p.account_id and l.booked_on between p.from_date and p.to_date
      and not exists (select from match_lines m where m.line_id = l.line_id)
      and not exists (select from line_outcomes o where o.line_id = l.line_id)
  union all
  select 5, 'run_pending', count(*)::integer, min(from_date) from (
    select from_date, to_date, ${RUN_LIMITS.lookBackDays}::int as around from wanted_runs w where w.account_id = p.account_id
    union all
    select from_date, to_date, 0 from reconciliation_runs r where r.account_id = p.account_id and r.status = 'running'
  ) runs where from_date - around <= p.to_date and to_date + around >= p.from_date
  union all
  select 6, 'issues_undecided', count(*)::integer, min(greatest(lower(u.days), p.from_date)) from undecided u
    where u.account_id = p.account_id and u.days && daterange(p.from_date, p.to_date, '[]')
  union all
  select 7, 'payments_expected', count(*)::integer, min(e.settled_on)
    from expected_payments(p.account_id, p.from_date, p.to_date) e
    where e.own and e.source in ('transaction', 'payout')
      and not exists (select from match_payments m where m.payment_key = e.payment_key)
      and not exists (select from line_outcomes o where o.payment_key = e.payment_key)
      and not exists (
        select from issues i where i.account_key = coalesce('provider:' || p.config_id, 'statement:' || p.account_id)
          and i.kind in ('missing_in_statement', 'status_mismatch') and i.subject_key = e.payment_key and i.status <> 'ended')
      -- A credit names several payouts or is their sum, or several credits name one.
      and (e.source <> 'payout' or not exists (
        select from statement_accounts b join issues i on i.account_key = coalesce('provider:' || b.config_id, 'statement:' || b.account_id)
        where b.organization_id = p.organization_id and i.kind in ('amount_over', 'amount_under', 'reference_mismatch') and i.status <> 'ended' and i.superseded_by is null
          and jsonb_exists((i.evidence #>> '{statement,facts,named}')::jsonb, e.payment_key)))
  union all
  select 8, 'settlement_pending', count(distinct e.intent_id)::integer, null::date
    from station_events e join stations s using (station_id)
    where e.organization_id = p.organization_id and e.type = 'settlement_started' and s.sandbox = (p.mode = 'test')
      and (p.filial_id is null or s.filial_id = p.filial_id)
      and e.at >= first_instant(p.from_date, coalesce(p.time_zone, 'UTC'))
      and e.at < first_instant(p.to_date + 1, coalesce(p.time_zone, 'UTC'))
      -- The audit copy may lack the end of a settlement whose commit the log has lost.
      and not exists (select from transactions t where t.intent_id = e.intent_id)
      and not exists (
        select from payments n where n.intent_id = e.intent_id and n.status in ('succeeded', 'cancelled', 'expired'))
      and not exists (
        select from station_events n where n.intent_id = e.intent_id and n.station_id = e.station_id
          and (n.version, n.ordinal) > (e.version, e.ordinal)
          and n.type in ('intent_succeeded', 'settlement_refused', 'settlement_conflict', 'intent_cancelled', 'intent_expired'))`;
