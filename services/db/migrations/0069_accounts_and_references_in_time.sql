-- An account that was replaced stays the first one for the payments that its statements cover to the end of its settlement delay: it
-- has their issues, and its successor would open them again.
create or replace function expected_payments(the_account_id bigint, the_from date, the_to date)
 RETURNS TABLE(payment_key text, source text, own boolean, in_filial boolean, issue_id bigint, station_id bigint, intent_id bigint, order_id bigint, route text, amount_minor bigint, currency text, provider_key text, our_key text, typed_key text, settled_on date, settled_at timestamp with time zone)
 LANGUAGE plpgsql
 STABLE
AS $$
declare
  account statement_accounts;
  shows_payments boolean;
  -- The accounts that come first: their filials (0 stands for all filials), their last days, how long their lines may take, and
  -- the days that their statements cover; null where more statements may come.
  earlier_filials bigint[];
  earlier_days date[];
  earlier_delays integer[];
  earlier_covered datemultirange[];
  has_banks_elsewhere boolean;
  zone text;
  from_at timestamptz;
  to_at timestamptz;
begin
  select * into strict account from statement_accounts a where a.account_id = the_account_id;
  zone := coalesce(account.time_zone, 'UTC');
  from_at := the_from::timestamp at time zone zone;
  to_at := (the_to + 1)::timestamp at time zone zone;
  shows_payments := account.config_id is null
    and exists (select from statement_lines l where l.account_id = account.account_id and l.kind = 'payment');
  select array_agg(coalesce(r.filial_id, 0)), array_agg(coalesce(r.last_day, 'infinity')), array_agg(r.settlement_delay_days),
      array_agg(case when not goes_on_beside(the_account_id, r.account_id) then covered_days(r.account_id, 5) end)
    into earlier_filials, earlier_days, earlier_delays, earlier_covered
    from accounts_beside(the_account_id) r where r.account_id < the_account_id;
  -- Settled orders.
  return query
    select 'transaction:' || t.transaction_id, 'transaction', case
        when t.route = 'cash' then false
        when t.route = 'dynamic_qr' then p.config_id = account.config_id
        else shows_payments and (account.filial_id is null or s.filial_id = account.filial_id)
          and day.settled_on <= coalesce(account.last_day, 'infinity')
          and not exists (
            select from unnest(earlier_filials, earlier_days, earlier_delays, earlier_covered) as earlier (filial_id, last_day, delay, covered)
            where earlier.filial_id in (0, s.filial_id) and day.settled_on <= earlier.last_day
              and (earlier.covered is null or daterange(day.settled_on, day.settled_on + 1 + earlier.delay) <@ earlier.covered)) end is true,
      account.filial_id is null or s.filial_id = account.filial_id,
      null::bigint, t.station_id, t.intent_id, t.order_id, t.route, t.amount_minor, t.currency,
      case when t.route = 'dynamic_qr' then comparable_reference(coalesce(p.paid_reference, t.reference)) end,
      comparable_reference(p.reference),
      case when t.route <> 'dynamic_qr' then coalesce(r.reference_key, typed_reference(t.reference)) end,
      day.settled_on, t.settled_at
    from transactions t
      cross join lateral (select (t.settled_at at time zone zone)::date as settled_on) day
      join stations s on s.station_id = t.station_id
      left join provider_payments p on p.intent_id = t.intent_id and t.route = 'dynamic_qr'
      left join settled_references r on r.transaction_id = t.transaction_id
    where t.organization_id = account.organization_id and t.settled_at >= from_at and t.settled_at < to_at
      and s.sandbox = (account.mode = 'test')
      -- A payment of a provider config is shown by the account of that config, where there is one.
      and (t.route <> 'dynamic_qr' or p.config_id = account.config_id
        or not exists (select from statement_accounts a where a.config_id = p.config_id));
  -- Money of a callback that has paid no order.
  return query
    select 'issue:' || i.issue_id, 'issue', false, true, i.issue_id, i.station_id, i.intent_id, i.order_id, 'dynamic_qr',
      i.amount_minor, i.currency, comparable_reference(i.provider_reference), null::text, null::text,
      (i.opened_at at time zone zone)::date, i.opened_at
    from issues i
    where i.config_id = account.config_id and i.source = 'provider' and i.opened_at >= from_at and i.opened_at < to_at
      and i.amount_minor is not null and i.currency is not null and i.provider_reference <> '' and i.kind <> 'unmatched_money'
      and i.transaction_id is null and i.status <> 'ended' and i.superseded_by is null;
  -- Reports of a success that came after the collection had ended.
  return query
    select 'late:' || e.station_id || ':' || e.version || ':' || e.ordinal, 'late_evidence', false,
      account.filial_id is null or s.filial_id = account.filial_id,
      null::bigint, e.station_id, e.intent_id, p.order_id, 'attested_terminal', p.amount_minor, p.currency,
      null::text, null::text, typed_reference(e.data ->> 'providerReference'), (e.at at time zone zone)::date, e.at
    from station_events e
      join stations s on s.station_id = e.station_id
      join payments p on p.intent_id = e.intent_id
    where e.organization_id = account.organization_id and e.type = 'late_evidence_kept' and e.at >= from_at and e.at < to_at
      and e.data ->> 'outcome' = 'reported_success' and s.sandbox = (account.mode = 'test')
      and coalesce(e.data ->> 'providerReference', '') <> ''
      and not exists (select from transactions t where t.intent_id = e.intent_id);
  -- Payouts of the organization's other accounts, which arrive at a bank.
  if exists (select from statement_lines b where b.account_id = account.account_id and b.kind = 'bank_credit') then
    select array_agg(coalesce(r.filial_id, 0)), array_agg(coalesce(r.last_day, 'infinity')), array_agg(r.settlement_delay_days),
        array_agg(case when not goes_on_beside(the_account_id, r.account_id) then covered_days(r.account_id, 5) end)
      into earlier_filials, earlier_days, earlier_delays, earlier_covered
      from banks_beside(the_account_id) r where r.account_id < the_account_id;
    -- A payout of an account that several filials share may arrive at a bank of any of them, and no bank reports it.
    has_banks_elsewhere := exists (
      select from statement_accounts b where b.organization_id = account.organization_id and b.mode = account.mode
        and b.filial_id <> account.filial_id
        and exists (select from statement_lines l where l.account_id = b.account_id and l.kind = 'bank_credit'));
    return query
      select e.payment_key, 'payout', (account.currency is null or account.currency = e.currency)
          and e.paid_on <= coalesce(account.last_day, 'infinity') and not exists (
            select from unnest(earlier_filials, earlier_days, earlier_delays, earlier_covered) as earlier (filial_id, last_day, delay, covered)
            where (earlier.filial_id = 0 or a.filial_id is null or earlier.filial_id = a.filial_id) and e.paid_on <= earlier.last_day
              and (earlier.covered is null or daterange(e.paid_on, e.paid_on + 1 + earlier.delay) <@ earlier.covered))
          and not (a.filial_id is null and has_banks_elsewhere),
        true, null::bigint, null::bigint, null::bigint, null::bigint, 'payout', e.amount_minor, e.currency, e.provider_key, e.our_key,
        null::text, e.paid_on, null::timestamptz
      from statement_accounts a cross join lateral expected_payouts(a.account_id, the_from, the_to) e
      where a.organization_id = account.organization_id and a.mode = account.mode and a.account_id <> account.account_id
        and (account.filial_id is null or a.filial_id is null or a.filial_id = account.filial_id);
  end if;
end
$$;

-- One text may be unreadable in files of several months. Its issue is about the days of all of them: of the imports that its evidence
-- names.
create function malformed_imports(the_evidence jsonb) returns bigint[] language sql immutable as $$
  select string_to_array(
    coalesce(the_evidence #>> '{statement,facts,imports}', the_evidence #>> '{statement,facts,import}'), ' ')::bigint[]
$$;

create function days_of_issue(i issues, the_zone text) returns datemultirange language sql stable as $$
  select coalesce(
    case when i.kind = 'malformed_line' then (
      select range_agg(daterange(f.from_date, f.to_date, '[]')) from statement_imports f
      where f.import_id = any (malformed_imports(i.evidence)) and f.status <> 'withdrawn' and f.from_date <= f.to_date) end,
    (select datemultirange(daterange(day, day, '[]')) from (select issue_day(i, the_zone) as day offset 0) it))
$$;

create or replace function issues_of_days(the_account_id bigint, the_from date, the_to date) returns setof issues stable language sql as $$
  select i from statement_accounts a join issues i
    on i.account_key = coalesce('provider:' || a.config_id, 'statement:' || a.account_id)
  where a.account_id = the_account_id and i.status <> 'ended' and i.superseded_by is null
    and days_of_issue(i, a.time_zone) && daterange(the_from, the_to, '[]')
$$;

-- The uses of a payout's reference, by a day of each: a use keeps its name when its files are withdrawn and imported again.
create table payout_names (
  account_id bigint not null references statement_accounts,
  payout_reference text not null,
  day date not null,
  use_day date not null,
  primary key (account_id, payout_reference, day)
);

-- A provider may use the reference of a payout again. The uses are more than 120 days apart, and each is named by the day of its
-- line that was stored first: `use_day`. That of the use that was stored first is -infinity, so that it keeps the name without a day.
create function payout_uses(the_account_id bigint, the_references text[])
returns table (payout_reference text, from_date date, to_date date, use_day date) stable rows 10 language sql as $$
  select payout_reference, from_date, to_date, coalesce(
    (select min(n.use_day) from payout_names n
      where n.account_id = the_account_id and n.payout_reference = used.payout_reference and n.day between from_date - 120 and to_date + 120),
    case when line_id = min(line_id) over (partition by payout_reference) and not exists (
        select from payout_names n where n.account_id = the_account_id and n.payout_reference = used.payout_reference)
      then '-infinity' else first_day end)
  from (
    select payout_reference, min(booked_on) as from_date, max(booked_on) as to_date, min(line_id) as line_id,
      (array_agg(booked_on order by line_id))[1] as first_day
    from (
      select *, count(*) filter (where is_first) over (partition by payout_reference order by booked_on) as use
      from (
        select l.payout_reference, l.booked_on, min(l.line_id) as line_id,
          l.booked_on - lag(l.booked_on) over (partition by l.payout_reference order by l.booked_on) > 120 as is_first
        from statement_lines l
        where l.account_id = the_account_id and l.payout_reference = any (the_references) and l.payout_reference <> ''
        group by l.payout_reference, l.booked_on) days) counted
    group by payout_reference, use) used
$$;

create or replace function expected_payouts(the_account_id bigint, the_from date, the_to date)
 RETURNS TABLE(payment_key text, amount_minor bigint, currency text, provider_key text, our_key text, paid_on date)
 LANGUAGE sql
 STABLE
AS $$
  with movement as (
    select l.account_id, l.booked_on, l.currency, l.payout_reference, l.provider_reference, l.fingerprint, l.kind,
      coalesce(l.value_on, l.booked_on) as paid_on,
      case when l.kind = 'payout' then -l.amount_minor else coalesce(l.net_minor, l.amount_minor + coalesce(l.fee_minor, 0)) end as minor,
      l.kind = 'payout' and l.payout_reference = '' and l.provider_reference <> '' and exists (
        select from statement_lines s where s.account_id = l.account_id and s.provider_reference = l.provider_reference
          and s.kind in ('payment', 'refund')) as is_share
    from statement_lines l
    where l.account_id = the_account_id and l.booked_on between the_from and the_to
      and (l.kind = 'payout' or (l.payout_reference <> '' and l.kind not in ('planned_payout', 'payout_reversal', 'not_money', 'bank_credit', 'bank_debit')))
  ),
  -- The lines of a payout count only where the statement has no line of the payout itself, and all have one currency.
  uses as materialized (
    select u.*, bool_or(l.kind in ('payout', 'planned_payout')) or count(distinct l.currency) filter (
        where l.kind not in ('payout_reversal', 'not_money')) > 1 as has_payout, bool_or(l.kind = 'payout_reversal') as is_reversed
    from payout_uses(the_account_id, array(select distinct payout_reference from movement where payout_reference <> '')) u
      join statement_lines l on l.payout_reference = u.payout_reference and l.booked_on between u.from_date and u.to_date
    where l.account_id = the_account_id and l.payout_reference <> '' and u.from_date <= the_to and u.to_date >= the_from
    group by u.payout_reference, u.from_date, u.to_date, u.use_day
  ),
  counted as (
    select m.*, case when m.payout_reference <> '' then concat_ws(':', 'reference', m.payout_reference, m.currency, nullif(u.use_day, '-infinity')::text)
        when is_share then 'day:' || paid_on || ':' || currency else encode(fingerprint, 'hex') end as name
    from movement m left join uses u on u.payout_reference = m.payout_reference and m.booked_on between u.from_date and u.to_date
    where (m.kind = 'payout' or not u.has_payout) and u.is_reversed is not true
  )
  select 'payout:' || the_account_id || ':' || name, sum(minor)::bigint, currency,
    case when count(distinct provider_reference) = 1 and not bool_or(is_share) then comparable_reference(min(provider_reference)) end,
    comparable_reference(min(payout_reference)), max(paid_on)
  from counted group by name, currency having sum(minor) between 1 and 999999999999999999
$$;

-- The import that has added the payout to a line of an earlier file. When it is withdrawn, another file can correct the payout.
alter table statement_lines add column payout_import_id bigint;
