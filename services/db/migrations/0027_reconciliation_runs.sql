-- Reconciliation runs: what they have compared, which lines they have matched with which payments, and what differs.

-- A reference of a provider in the form in which references are compared, as `comparableReference` does it; null for an
-- empty one.
create function comparable_reference(the_reference text) returns text immutable language sql as $$
  select case when the_reference ~ '^[!-~]+$' then the_reference else substr(provider_money_name('money:' || the_reference), 7) end
$$;

-- A reference that a person has read from a slip and typed, as the payment seam compares it: letter case, spaces and invisible
-- characters do not count. Null for an empty one.
create function typed_reference(the_reference text) returns text immutable language sql as $$
  select case when the_reference ~ '^[0-9A-Z-]+$' then the_reference else
    nullif(upper(regexp_replace(normalize(the_reference, NFKC), '[[:space:][:cntrl:]\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u2064\uFEFF]', '', 'g')), '')
  end
$$;

-- One run over the lines of one account that were booked in a range of days. Its inputs are fixed when it begins: the
-- imports up to one, and what was stored at one moment; the hashes show whether two runs have compared the same.
create table reconciliation_runs (
  run_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  account_id bigint not null references statement_accounts,
  from_date date not null,
  to_date date not null check (to_date >= from_date),
  status text not null default 'running' check (status in ('running', 'done', 'failed')),
  step text not null default 'lines',
  started_by bigint not null,
  started_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  failure text,
  -- The run of the same account and days before this one, with which it is compared.
  previous_run_id bigint references reconciliation_runs,
  through_import_id bigint,
  covered_from date,
  covered_to date,
  lines bigint not null default 0,
  payments bigint not null default 0,
  matched bigint not null default 0,
  differing bigint not null default 0,
  rejected bigint not null default 0,
  differences bigint not null default 0,
  -- By currency: the sum of all lines, and of those that are matched, differ and are rejected.
  totals jsonb not null default '[]',
  input_hash bytea,
  result_hash bytea,
  constraint reconciliation_runs_ended_check check ((status = 'running') = (ended_at is null)),
  constraint reconciliation_runs_failure_check check ((status = 'failed') = (failure is not null))
);
create unique index reconciliation_runs_one_running on reconciliation_runs (account_id) where status = 'running';
create index reconciliation_runs_by_account on reconciliation_runs (organization_id, account_id, run_id);

-- Lines and payments that belong together. Only the exact tier matches by itself; `confirmed` is a person's decision.
create table statement_matches (
  match_id bigint generated always as identity primary key,
  account_id bigint not null references statement_accounts,
  -- The run that has found it first.
  run_id bigint not null references reconciliation_runs,
  tier text not null check (tier in ('exact', 'confirmed')),
  score integer not null check (score between 0 and 100),
  -- Which references agree, and how far apart the days are.
  explanation jsonb not null,
  created_at timestamptz not null default now()
);
create index statement_matches_by_account on statement_matches (account_id, match_id);
create table match_lines (
  line_id bigint primary key references statement_lines on delete cascade,
  match_id bigint not null references statement_matches on delete cascade
);
create index match_lines_by_match on match_lines (match_id);
-- `payment_key` names the payment side: `transaction:<id>`, `late:<station>:<version>:<ordinal>`, `payout:<account>:<fingerprint>` of another
-- account, `batch:<account>:<payout reference>`.
create table match_payments (
  payment_key text primary key,
  match_id bigint not null references statement_matches on delete cascade
);
create index match_payments_by_match on match_payments (match_id);

-- What a person has decided about a line and a payment. The line is named by its fingerprint, so that the decision returns
-- with the line when its file was withdrawn and is imported again.
create table match_decisions (
  account_id bigint not null references statement_accounts,
  fingerprint bytea not null,
  payment_key text not null,
  decision text not null check (decision in ('confirmed', 'rejected')),
  decided_by bigint not null,
  decided_at timestamptz not null default now(),
  reason text not null,
  primary key (account_id, fingerprint, payment_key)
);
create unique index match_decisions_confirmed_once on match_decisions (payment_key, account_id, fingerprint)
  where decision = 'confirmed';

-- How each line that is not matched has come out of the last run over it: it differs, and one issue explains it, or it is
-- rejected with a reason.
create table line_outcomes (
  line_id bigint primary key references statement_lines on delete cascade,
  account_id bigint not null,
  outcome text not null check (outcome in ('differs', 'rejected')),
  -- The kind of the difference, or why the line is rejected.
  reason text not null,
  issue_id bigint references issues,
  -- The payment that the difference is about, or the best candidate.
  payment_key text,
  score integer,
  constraint line_outcomes_issue_check check (outcome = 'differs' or issue_id is null)
);

-- The differences of each run, so that runs can be compared.
create table run_differences (
  run_id bigint not null references reconciliation_runs on delete cascade,
  kind text not null,
  subject_key text not null,
  station_id bigint not null,
  evidence_hash bytea not null,
  issue_id bigint not null,
  -- The day that the line was booked or the payment was settled.
  on_date date not null,
  amount_minor bigint not null,
  currency text not null,
  primary key (run_id, kind, subject_key, station_id)
);
create index run_differences_by_issue on run_differences (issue_id, run_id);

create index transactions_by_settlement on transactions (organization_id, settled_at);
create index station_events_late on station_events (organization_id, at) where type = 'late_evidence_kept';

-- What an account's statements are expected to show: one row for each payment side, in one form, of what was settled or
-- reported on these days (UTC).
--
-- `own` is false for a payment that another account may show as well: a terminal's, where the filial has several accounts, and
-- one of another filial. Only a payment of the account itself can be missing in its statements.
create function expected_payments(the_account_id bigint, the_from date, the_to date)
returns table (
  payment_key text, source text, own boolean, in_filial boolean, issue_id bigint, station_id bigint, intent_id bigint,
  order_id bigint, route text, amount_minor bigint, currency text, provider_key text, our_key text, typed_key text, settled_on date
)
stable language plpgsql as $$
declare
  account statement_accounts;
  is_only boolean;
  from_at timestamptz := the_from::timestamp at time zone 'utc';
  to_at timestamptz := (the_to + 1)::timestamp at time zone 'utc';
begin
  select * into strict account from statement_accounts a where a.account_id = the_account_id;
  select count(*) = 1 into is_only from statement_accounts a
    where a.organization_id = account.organization_id and a.mode = account.mode and a.config_id is null
      and a.filial_id is not distinct from account.filial_id
      and exists (select from statement_lines l where l.account_id = a.account_id and l.kind = 'payment');
  -- Settled orders.
  return query
    select 'transaction:' || t.transaction_id, 'transaction', case
        when t.route = 'cash' then false
        when t.route = 'dynamic_qr' then p.config_id = account.config_id
        else is_only and account.config_id is null
          and (account.filial_id is null or s.filial_id = account.filial_id) end is true,
      account.filial_id is null or s.filial_id = account.filial_id,
      null::bigint, t.station_id, t.intent_id, t.order_id, t.route, t.amount_minor, t.currency,
      case when t.route = 'dynamic_qr' then comparable_reference(coalesce(p.paid_reference, t.reference)) end,
      comparable_reference(p.reference),
      case when t.route <> 'dynamic_qr' then coalesce(r.reference_key, typed_reference(t.reference)) end,
      (t.settled_at at time zone 'utc')::date
    from transactions t
      join stations s on s.station_id = t.station_id
      left join provider_payments p on p.intent_id = t.intent_id and t.route = 'dynamic_qr'
      left join settled_references r on r.transaction_id = t.transaction_id
    where t.organization_id = account.organization_id and t.settled_at >= from_at and t.settled_at < to_at
      and s.sandbox = (account.mode = 'test')
      -- A payment of another provider config is shown by that account.
      and (t.route <> 'dynamic_qr' or p.config_id = account.config_id);
  -- Money of a callback that has paid no order.
  return query
    select 'issue:' || i.issue_id, 'issue', false, true, i.issue_id, i.station_id, i.intent_id, i.order_id, 'dynamic_qr',
      i.amount_minor, i.currency, comparable_reference(i.provider_reference), null::text, null::text,
      (i.opened_at at time zone 'utc')::date
    from issues i
    where i.config_id = account.config_id and i.source = 'provider' and i.opened_at >= from_at and i.opened_at < to_at
      and i.amount_minor is not null and i.currency is not null and i.provider_reference <> '' and i.kind <> 'unmatched_money'
      and i.transaction_id is null and i.status <> 'ended' and i.superseded_by is null;
  -- Reports of a success that came after the collection had ended.
  return query
    select 'late:' || e.station_id || ':' || e.version || ':' || e.ordinal, 'late_evidence', false,
      account.filial_id is null or s.filial_id = account.filial_id,
      null::bigint, e.station_id, e.intent_id, o.order_id, 'attested_terminal', o.total_minor, o.currency,
      null::text, null::text, typed_reference(e.data ->> 'providerReference'), (e.at at time zone 'utc')::date
    from station_events e
      join stations s on s.station_id = e.station_id
      join intent_records r on r.intent_id = e.intent_id
      join orders o on o.order_id = r.order_id
    where e.organization_id = account.organization_id and e.type = 'late_evidence_kept' and e.at >= from_at and e.at < to_at
      and e.data ->> 'outcome' = 'reported_success' and s.sandbox = (account.mode = 'test')
      and coalesce(e.data ->> 'providerReference', '') <> ''
      and not exists (select from transactions t where t.intent_id = e.intent_id);
  -- Payouts of the organization's other accounts, which arrive at a bank.
  return query
    select 'payout:' || l.account_id || ':' || encode(l.fingerprint, 'hex'), 'payout', false, true, null::bigint, null::bigint, null::bigint, null::bigint, 'payout',
      -l.amount_minor, l.currency, comparable_reference(l.provider_reference), comparable_reference(l.payout_reference), null::text,
      coalesce(l.value_on, l.booked_on)
    from statement_lines l join statement_accounts a on a.account_id = l.account_id
    where a.organization_id = account.organization_id and a.mode = account.mode and a.account_id <> account.account_id
      and l.kind = 'payout' and l.booked_on between the_from and the_to
      and exists (select from statement_lines b where b.account_id = account.account_id and b.kind = 'bank_credit');
end
$$;
