-- Which accounts may show the same payments or payouts. An account that was replaced no longer counts, and a payout that arrives at
-- none of several banks is missing at the first one; it was missing at none.

create function newest_statement_day(the_account_id bigint) returns date stable language sql as $$
  select max(to_date) from statement_imports where account_id = the_account_id and status = 'imported'
$$;

-- Whether the statements of the second account go on: they end at most 120 days before those of the first one, the longest time
-- that a provider holds funds back (RUN_LIMITS.lookBackDays).
create function goes_on_beside(the_account_id bigint, other_id bigint) returns boolean stable language sql as $$
  select coalesce(newest_statement_day(other_id) >= newest_statement_day(the_account_id) - 120, true)
$$;

-- The other accounts whose statements may show the same payments at terminals, also those that were replaced. All of them get a run
-- after an import, because a file of earlier days may change what is missing there.
create function accounts_beside(the_account_id bigint) returns setof statement_accounts stable language sql as $$
  select r from statement_accounts a join statement_accounts r on r.organization_id = a.organization_id and r.mode = a.mode
    and r.account_id <> a.account_id and r.config_id is null
    and (a.filial_id is null or r.filial_id is null or r.filial_id = a.filial_id)
  where a.account_id = the_account_id and a.config_id is null
    and exists (select from statement_lines l where l.account_id = r.account_id and l.kind = 'payment')
$$;

-- Those whose statements must cover a day before a payment of it is missing.
create or replace function rival_accounts(the_account_id bigint) returns setof statement_accounts stable language sql as $$
  select r from accounts_beside(the_account_id) r where goes_on_beside(the_account_id, r.account_id)
$$;

-- The same of banks, where payouts arrive.
create function banks_beside(the_account_id bigint) returns setof statement_accounts stable language sql as $$
  select r from statement_accounts a join statement_accounts r on r.organization_id = a.organization_id and r.mode = a.mode
    and r.account_id <> a.account_id
    and (a.filial_id is null or r.filial_id is null or r.filial_id = a.filial_id)
    and (a.currency is null or r.currency is null or r.currency = a.currency)
  where a.account_id = the_account_id
    and exists (select from statement_lines l where l.account_id = r.account_id and l.kind = 'bank_credit')
$$;
create function rival_banks(the_account_id bigint) returns setof statement_accounts stable language sql as $$
  select r from banks_beside(the_account_id) r where goes_on_beside(the_account_id, r.account_id)
    and exists (select from statement_lines l where l.account_id = the_account_id and l.kind = 'bank_credit')
$$;

-- The credits of a bank that name a payout or a batch are no payouts of the bank.
create or replace function expected_payouts(the_account_id bigint, the_from date, the_to date)
returns table(payment_key text, amount_minor bigint, currency text, provider_key text, our_key text, paid_on date)
language sql stable as $function$
  with movement as (
    select l.account_id, l.currency, l.payout_reference, l.provider_reference, l.fingerprint, l.kind,
      coalesce(l.value_on, l.booked_on) as paid_on,
      case when l.kind = 'payout' then -l.amount_minor else coalesce(l.net_minor, l.amount_minor + coalesce(l.fee_minor, 0)) end as minor,
      l.kind = 'payout' and l.payout_reference = '' and l.provider_reference <> '' and exists (
        select from statement_lines s where s.account_id = l.account_id and s.provider_reference = l.provider_reference
          and s.kind in ('payment', 'refund')) as is_share
    from statement_lines l
    where l.account_id = the_account_id and l.booked_on between the_from and the_to
      and (l.kind = 'payout' or (l.payout_reference <> '' and l.kind not in ('planned_payout', 'payout_reversal', 'not_money', 'bank_credit', 'bank_debit')))
  ),
  -- The lines of a payout count only where the statement has no line of the payout itself.
  counted as (
    select m.*, case when payout_reference <> '' then 'reference:' || payout_reference || ':' || currency
        when is_share then 'day:' || paid_on || ':' || currency else encode(fingerprint, 'hex') end as name
    from movement m
    where (m.kind = 'payout' or not exists (
        select from statement_lines p where p.account_id = the_account_id and p.payout_reference = m.payout_reference
          and (p.kind in ('payout', 'planned_payout')
            or (p.currency <> m.currency and p.kind not in ('payout_reversal', 'not_money')))))
      and (m.payout_reference = '' or not exists (
        select from statement_lines r where r.account_id = the_account_id and r.payout_reference = m.payout_reference
          and r.kind = 'payout_reversal'))
  )
  select 'payout:' || the_account_id || ':' || name, sum(minor)::bigint, currency,
    case when count(distinct provider_reference) = 1 and not bool_or(is_share) then comparable_reference(min(provider_reference)) end,
    comparable_reference(min(payout_reference)), max(paid_on)
  from counted group by name, currency having sum(minor) between 1 and 999999999999999999
$function$;

create or replace function expected_payments(the_account_id bigint, the_from date, the_to date)
returns table (
  payment_key text, source text, own boolean, in_filial boolean, issue_id bigint, station_id bigint, intent_id bigint,
  order_id bigint, route text, amount_minor bigint, currency text, provider_key text, our_key text, typed_key text, settled_on date,
  settled_at timestamptz
)
stable language plpgsql as $$
declare
  account statement_accounts;
  shows_payments boolean;
  earlier_filials bigint[];
  earlier_banks bigint[];
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
  -- 0 stands for all filials.
  select coalesce(array_agg(distinct coalesce(r.filial_id, 0)), '{}') into earlier_filials
    from rival_accounts(the_account_id) r where r.account_id < the_account_id;
  -- Settled orders.
  return query
    select 'transaction:' || t.transaction_id, 'transaction', case
        when t.route = 'cash' then false
        when t.route = 'dynamic_qr' then p.config_id = account.config_id
        else shows_payments and (account.filial_id is null or s.filial_id = account.filial_id)
          and not earlier_filials && array[0, s.filial_id] end is true,
      account.filial_id is null or s.filial_id = account.filial_id,
      null::bigint, t.station_id, t.intent_id, t.order_id, t.route, t.amount_minor, t.currency,
      case when t.route = 'dynamic_qr' then comparable_reference(coalesce(p.paid_reference, t.reference)) end,
      comparable_reference(p.reference),
      case when t.route <> 'dynamic_qr' then coalesce(r.reference_key, typed_reference(t.reference)) end,
      (t.settled_at at time zone zone)::date, t.settled_at
    from transactions t
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
      null::bigint, e.station_id, e.intent_id, o.order_id, 'attested_terminal', o.total_minor, o.currency,
      null::text, null::text, typed_reference(e.data ->> 'providerReference'), (e.at at time zone zone)::date, e.at
    from station_events e
      join stations s on s.station_id = e.station_id
      join intent_records r on r.intent_id = e.intent_id
      join orders o on o.order_id = r.order_id
    where e.organization_id = account.organization_id and e.type = 'late_evidence_kept' and e.at >= from_at and e.at < to_at
      and e.data ->> 'outcome' = 'reported_success' and s.sandbox = (account.mode = 'test')
      and coalesce(e.data ->> 'providerReference', '') <> ''
      and not exists (select from transactions t where t.intent_id = e.intent_id);
  -- Payouts of the organization's other accounts, which arrive at a bank.
  if exists (select from statement_lines b where b.account_id = account.account_id and b.kind = 'bank_credit') then
    select coalesce(array_agg(distinct coalesce(r.filial_id, 0)), '{}') into earlier_banks
      from rival_banks(the_account_id) r where r.account_id < the_account_id;
    -- A payout of an account that several filials share may arrive at a bank of any of them, and no bank reports it.
    has_banks_elsewhere := exists (
      select from statement_accounts b where b.organization_id = account.organization_id and b.mode = account.mode
        and b.filial_id <> account.filial_id
        and exists (select from statement_lines l where l.account_id = b.account_id and l.kind = 'bank_credit'));
    return query
      select e.payment_key, 'payout', (account.currency is null or account.currency = e.currency) and not exists (
          select from unnest(earlier_banks) as earlier (filial_id)
          where earlier.filial_id = 0 or a.filial_id is null or earlier.filial_id = a.filial_id)
          and not (a.filial_id is null and has_banks_elsewhere),
        true, null::bigint, null::bigint, null::bigint, null::bigint, 'payout', e.amount_minor, e.currency, e.provider_key, e.our_key,
        null::text, e.paid_on, null::timestamptz
      from statement_accounts a cross join lateral expected_payouts(a.account_id, the_from, the_to) e
      where a.organization_id = account.organization_id and a.mode = account.mode and a.account_id <> account.account_id
        and (account.filial_id is null or a.filial_id is null or a.filial_id = account.filial_id);
  end if;
end
$$;

-- The other banks follow an import of a bank. One whose file was withdrawn may have no line any more.
create or replace function want_run_of_import() returns trigger language plpgsql as $$
declare
  wanted record;
begin
  if new.from_date is null or new.to_date is null then
    return null;
  end if;
  for wanted in
    select new.account_id as account_id, false as is_follower
    union
    select r.account_id, true from accounts_beside(new.account_id) r
    union
    select r.account_id, true from banks_beside(new.account_id) r
      where new.status = 'withdrawn'
        or exists (select from statement_lines l where l.account_id = new.account_id and l.kind = 'bank_credit')
    union
    select b.account_id, true from statement_accounts a join statement_accounts b on b.organization_id = a.organization_id
      and b.mode = a.mode and b.account_id <> a.account_id
      and (a.filial_id is null or b.filial_id is null or b.filial_id = a.filial_id)
      where a.account_id = new.account_id and new.has_payouts
        and exists (select from statement_lines l where l.account_id = b.account_id and l.kind = 'bank_credit')
    order by account_id
  loop
    perform want_run(wanted.account_id, new.from_date, new.to_date, wanted.is_follower);
  end loop;
  return null;
end
$$;
