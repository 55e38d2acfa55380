-- The first instant of a local time. Where clocks go back over it, there are two, and PostgreSQL takes the second one.
create function first_instant(the_local timestamp, the_zone text) returns timestamptz language sql stable as $$
  select least(later, case when earlier at time zone the_zone = the_local then earlier end)
  from (
    select the_local at time zone the_zone as later,
      (the_local - interval '1 day') at time zone the_zone + interval '24 hours' as earlier) instants
$$;

-- The days of an account begin at their first instant.
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
  from_at := first_instant(the_from, zone);
  to_at := first_instant(the_to + 1, zone);
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
