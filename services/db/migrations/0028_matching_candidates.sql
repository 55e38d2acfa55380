-- Runs without a person, candidates that are kept with their score, and expected payments by the account's own days.

-- Null: the run started by itself, after an import had ended.
alter table reconciliation_runs alter column started_by drop not null;
-- The days that imported statements cover, within those of the run.
alter table reconciliation_runs add column covered datemultirange not null default '{}';
-- A row that could not be read has no amount.
alter table run_differences alter column amount_minor drop not null, alter column currency drop not null;

-- The payments that a line without a certain payment may be of, the best of them, as the last run has scored them.
create table line_candidates (
  line_id bigint not null references statement_lines on delete cascade,
  payment_key text not null,
  account_id bigint not null,
  score integer not null check (score between 0 and 100),
  -- What each agreement has counted.
  explanation jsonb not null,
  primary key (line_id, payment_key)
);
create index line_candidates_by_account on line_candidates (account_id, line_id);

-- The unique index over all columns of the key holds nothing that the key does not.
drop index match_decisions_confirmed_once;
create index match_decisions_by_payment on match_decisions (payment_key);

-- The days of an account that wait for a run: imports that have ended or were withdrawn since the last one.
create table wanted_runs (
  account_id bigint primary key references statement_accounts,
  organization_id bigint not null,
  from_date date not null,
  to_date date not null check (to_date >= from_date),
  -- The run starts when the account has been quiet since then, or has waited long.
  first_wanted_at timestamptz not null default clock_timestamp(),
  last_wanted_at timestamptz not null default clock_timestamp(),
  attempts integer not null default 0
);
create index wanted_runs_by_age on wanted_runs (last_wanted_at);

create function want_run(the_account_id bigint, the_from date, the_to date) returns void language sql as $$
  insert into wanted_runs as known (account_id, organization_id, from_date, to_date)
    select account_id, organization_id, the_from, the_to from statement_accounts where account_id = the_account_id
    on conflict (account_id) do update set from_date = least(known.from_date, excluded.from_date),
      to_date = greatest(known.to_date, excluded.to_date), last_wanted_at = clock_timestamp(), attempts = 0
$$;

-- In the transaction that ends or withdraws the import, so that no import stays without its run.
create function want_run_of_import() returns trigger language plpgsql as $$
begin
  if new.from_date is not null and new.to_date is not null then
    perform want_run(new.account_id, new.from_date, new.to_date);
  end if;
  return null;
end
$$;
create trigger statement_imports_want_run after update of status on statement_imports for each row
  when (new.status is distinct from old.status and new.status in ('imported', 'withdrawn')) execute function want_run_of_import();

-- The days that the imported statements of an account cover. A file without days of its own covers those of its lines, so a
-- gap of a few days between two files is a weekend or a day without payments.
create function covered_days(the_account_id bigint, the_gap_days integer) returns datemultirange stable language sql as $$
  select coalesce(range_agg(daterange(lower(days), upper(days) - the_gap_days)), '{}') from unnest((
    select range_agg(daterange(from_date, to_date + 1 + the_gap_days)) from statement_imports
    where account_id = the_account_id and status = 'imported' and from_date is not null)) as days
$$;

-- The other accounts whose statements may show the same payments at terminals.
create function rival_accounts(the_account_id bigint) returns setof statement_accounts stable language sql as $$
  select r from statement_accounts a join statement_accounts r on r.organization_id = a.organization_id and r.mode = a.mode
    and r.account_id <> a.account_id and r.config_id is null
    and (a.filial_id is null or r.filial_id is null or r.filial_id = a.filial_id)
  where a.account_id = the_account_id and a.config_id is null
    and exists (select from statement_lines l where l.account_id = r.account_id and l.kind = 'payment')
$$;

-- What a payout of an account is called where it arrives: by its reference; where the provider gives each payment its share of
-- a payout without a reference, by the day; else by its line. The amount is what the bank gets.
create function expected_payouts(the_account_id bigint, the_from date, the_to date)
returns table (payment_key text, amount_minor bigint, currency text, provider_key text, our_key text, paid_on date)
stable language sql as $$
  with movement as (
    select l.account_id, l.currency, l.payout_reference, l.provider_reference, l.fingerprint, l.kind,
      coalesce(l.value_on, l.booked_on) as paid_on,
      case when l.kind = 'payout' then -l.amount_minor else coalesce(l.net_minor, l.amount_minor + coalesce(l.fee_minor, 0)) end as minor,
      l.kind = 'payout' and l.payout_reference = '' and l.provider_reference <> '' and exists (
        select from statement_lines s where s.account_id = l.account_id and s.provider_reference = l.provider_reference
          and s.kind in ('payment', 'refund')) as is_share
    from statement_lines l
    where l.account_id = the_account_id and l.booked_on between the_from and the_to
      and (l.kind = 'payout' or (l.payout_reference <> '' and l.kind not in ('planned_payout', 'payout_reversal', 'not_money')))
  ),
  -- The lines of a payout count only where the statement has no line of the payout itself.
  counted as (
    select m.*, case when payout_reference <> '' then 'reference:' || payout_reference || ':' || currency
        when is_share then 'day:' || paid_on || ':' || currency else encode(fingerprint, 'hex') end as name
    from movement m
    where m.kind = 'payout' or not exists (
      select from statement_lines p where p.account_id = the_account_id and p.kind in ('payout', 'planned_payout')
        and p.payout_reference = m.payout_reference)
  )
  select 'payout:' || the_account_id || ':' || name, sum(minor)::bigint, currency,
    case when count(distinct provider_reference) = 1 and not bool_or(is_share) then comparable_reference(min(provider_reference)) end,
    comparable_reference(min(payout_reference)), max(paid_on)
  from counted group by name, currency having sum(minor) > 0
$$;

-- What an account's statements are expected to show: one row for each payment side, in one form, of what was settled or
-- reported on these days (of the account's time zone).
--
-- `own`: the payment is missing when the statements of the account, and of those that may show it as well, do not have it. Of
-- several such accounts the first reports it.
drop function expected_payments(bigint, date, date);
create function expected_payments(the_account_id bigint, the_from date, the_to date)
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
    return query
      select e.payment_key, 'payout', not exists (
          select from statement_accounts b where b.organization_id = account.organization_id and b.mode = account.mode
            and b.account_id <> account.account_id and (b.filial_id is null or a.filial_id is null or b.filial_id = a.filial_id)
            and exists (select from statement_lines l where l.account_id = b.account_id and l.kind = 'bank_credit')),
        true, null::bigint, null::bigint, null::bigint, null::bigint, 'payout', e.amount_minor, e.currency, e.provider_key, e.our_key,
        null::text, e.paid_on, null::timestamptz
      from statement_accounts a cross join lateral expected_payouts(a.account_id, the_from, the_to) e
      where a.organization_id = account.organization_id and a.mode = account.mode and a.account_id <> account.account_id
        and (account.filial_id is null or a.filial_id is null or a.filial_id = account.filial_id);
  end if;
end
$$;
