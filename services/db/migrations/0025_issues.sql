-- One list of issues: what provider callbacks and reconciliation runs find different. Rows, ids and decisions of
-- `provider_issues` are carried over. Two kinds are named more exactly: `amount_mismatch` becomes `amount_over`,
-- `amount_under` or, where no amount can be read, `amount_unknown`.
alter table provider_issues rename to issues;
alter table issues rename column money_key to subject_key;
alter table issues alter column money_names set default '{}';
alter table issues alter column provider_reference set default '';
-- Null for an account that no provider config stands for, as a bank's.
alter table issues alter column config_id drop not null;

-- What an issue is, as far as a person's decision about it depends on it: amount, currency, status and type, written one way.
create function issue_evidence_hash(the_amount_minor bigint, the_currency text, the_status text, the_type text)
returns bytea immutable language sql as $$
  select sha256(convert_to(
    jsonb_build_array(the_amount_minor, upper(btrim(the_currency)), lower(btrim(the_status)), lower(btrim(the_type)))::text, 'UTF8'))
$$;

alter table issues
  -- The identity of an issue: the account at the provider, the station, the kind and the subject. One that is decided is not
  -- opened again: when its evidence changes, the next generation of the same identity is a new issue.
  add column account_key text,
  add column generation integer not null default 1 check (generation > 0),
  add column supersedes_id bigint references issues,
  add column superseded_by bigint references issues,
  -- Who has found it first.
  add column source text not null default 'provider' check (source in ('provider', 'statement')),
  -- The account whose statement has it; null for an issue that a callback has raised.
  add column statement_account_id bigint,
  add column evidence_hash bytea,
  -- Earlier evidence of an issue that was not decided yet, the oldest first, a bounded number.
  add column prior_evidence jsonb not null default '[]',
  -- When a callback or a run has found it last.
  add column last_seen_at timestamptz not null default now(),
  add column assignee_id bigint;

alter table issues drop constraint provider_issues_kind_check;
-- What it is compared with: the registered amount, or that of the order to which the money was attributed before.
update issues i set kind = case
    when amount_minor is null then 'amount_unknown'
    when amount_minor < coalesce((evidence #>> '{registered,amountMinor}')::bigint, (
      select a.amount_minor from issues a
        where a.status = 'attributed' and a.config_id = i.config_id and a.subject_key = i.subject_key limit 1), 0)
      then 'amount_under'
    else 'amount_over'
  end
  where kind = 'amount_mismatch';
update issues set account_key = 'provider:' || config_id, last_seen_at = opened_at,
  evidence_hash = issue_evidence_hash(amount_minor, currency, 'paid', 'payment');
-- After an attribution another amount of the same money was a new issue of the same kind.
update issues later set generation = 2, supersedes_id = earlier.issue_id
  from issues earlier
  where earlier.status = 'attributed' and later.status <> 'attributed' and earlier.issue_id < later.issue_id
    and (earlier.account_key, earlier.kind, earlier.subject_key) = (later.account_key, later.kind, later.subject_key)
    and earlier.station_id is not distinct from later.station_id;
update issues earlier set superseded_by = later.issue_id from issues later where later.supersedes_id = earlier.issue_id;

alter table issues
  alter column account_key set not null,
  alter column evidence_hash set not null,
  add constraint issues_evidence_hash_check check (octet_length(evidence_hash) = 32),
  add constraint issues_kind_check check (kind in (
    'unmatched_money', 'amount_over', 'amount_under', 'amount_unknown', 'currency_mismatch', 'account_mismatch',
    'reference_mismatch', 'late_money', 'duplicate_money', 'settlement_refused', 'missing_in_statement',
    'direction_mismatch', 'status_mismatch', 'ambiguous_match', 'duplicate_in_statement', 'possible_duplicate',
    'date_out_of_window', 'fee_mismatch', 'refund_not_registered', 'chargeback_not_registered', 'wrong_station', 'rounding',
    'tip', 'batch_total_mismatch', 'malformed_line', 'after_closing')),
  drop constraint provider_issues_status_check,
  drop constraint provider_issues_check,
  -- `ended`: its cause is gone, because its import was withdrawn or a later run has explained it. No person has decided it,
  -- so it comes back with its cause.
  add constraint issues_status_check check (status in ('open', 'assigned', 'attributed', 'closed', 'ended')),
  add constraint issues_resolved_check check ((status in ('open', 'assigned')) = (resolved_at is null)),
  add constraint issues_assigned_check check (case status
    when 'open' then assignee_id is null when 'assigned' then assignee_id is not null else true end),
  add constraint issues_organization_id_fkey foreign key (organization_id) references organizations;
alter table issues rename constraint provider_issues_pkey to issues_pkey;
alter table issues rename constraint provider_issues_check1 to issues_attribution_check;
alter table issues rename constraint provider_issues_organization_id_config_id_fkey to issues_organization_id_config_id_fkey;
alter sequence provider_issues_issue_id_seq rename to issues_issue_id_seq;

alter index provider_issues_attribution_open rename to issues_attribution_open;
alter index provider_issues_by_intent rename to issues_by_intent;
alter index provider_issues_by_money_name rename to issues_by_money_name;
alter index provider_issues_by_organization rename to issues_by_organization;
alter index provider_issues_money_attributed_once rename to issues_money_attributed_once;
drop index provider_issues_one_each;
create unique index issues_one_each on issues (account_key, kind, subject_key, coalesce(station_id, 0), generation);
drop index provider_issues_open_by_intent;
create index issues_open_by_intent on issues (intent_id) where status in ('open', 'assigned');
drop index provider_issues_refused;
create index issues_refused on issues (issue_id) where kind = 'settlement_refused' and status in ('open', 'assigned');
-- For the list of what waits for a person, and for the metrics.
create index issues_unresolved on issues (organization_id, issue_id) where status in ('open', 'assigned');
create index issues_unresolved_by_age on issues (opened_at, kind) where status in ('open', 'assigned');

-- What people write to each other about an issue.
create table issue_comments (
  comment_id bigint generated always as identity primary key,
  organization_id bigint not null,
  issue_id bigint not null references issues,
  author_id bigint not null,
  author_name text not null,
  text text not null,
  created_at timestamptz not null default now()
);
create index issue_comments_by_issue on issue_comments (issue_id, comment_id);

-- The audit log names every issue `issue` from now on; older entries stay `provider_issue`.
alter table provider_events drop constraint provider_events_subject_kind_check;
alter table provider_events add constraint provider_events_subject_kind_check
  check (subject_kind in ('provider_config', 'provider_issue', 'issue'));
create index provider_events_by_issue on provider_events (subject_id, event_id)
  where subject_kind in ('issue', 'provider_issue');

alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in ('station_command', 'credential_put', 'credential_delete',
  'session_put', 'session_delete', 'switch_set', 'robotics_event', 'issue_event'));

-- Notices to stations name the kind; a station distinguishes `late_money` alone.
update provider_tasks set detail = replace(detail::text, '"issue": "amount_mismatch"', '"issue": "amount_over"')::jsonb
  where kind = 'differ' and detail::text like '%"issue": "amount_mismatch"%';

-- The functions that read the table, as before, under its new name.
-- All match keys of the asserted payment that the seam is asked about: those of the payment that the intent has, and of
-- every issue that any of them leads to. Sorted.
create or replace function names_of_settlement(the_intent_id bigint, the_money_key text) returns text[]
stable language plpgsql as $$
declare
  the_config_id bigint;
  the_name text;
  names text[];
  more text[];
begin
  if the_money_key is null then
    return '{}';
  end if;
  if the_money_key !~ '^provider:[0-9]{1,18}:' then
    return array[the_money_key];
  end if;
  the_config_id := split_part(the_money_key, ':', 2)::bigint;
  the_name := regexp_replace(the_money_key, '^provider:[0-9]+:', '');
  select names_of_money(the_config_id, p, null, the_name) into names from provider_payments p
    where p.intent_id = the_intent_id and p.config_id = the_config_id;
  if not found then
    names := array['provider:' || the_config_id || ':' || coalesce(provider_money_name(the_name), the_name)];
    perform from issues where money_names && names;
    if not found then
      return names_of_money(the_config_id, null, null, the_name);
    end if;
  end if;
  loop
    select array_agg(distinct name order by name) into more from (
      select unnest(names) union all
      select unnest(i.money_names) from issues i where i.money_names && names) as known (name);
    exit when more = names;
    names := more;
  end loop;
  return names;
end
$$;
-- Whether the seam would refuse an asserted payment for the payment of this reference: it was accepted for another
-- payment, has paid another order, or was closed by a person, at whichever config of its account.
create or replace function is_money_taken_elsewhere(the_config_id bigint, the_reference text, the_money_key text) returns boolean
stable language plpgsql set enable_seqscan = off as $$
declare
  own_intent_id bigint;
  names text[];
begin
  select intent_id into own_intent_id from provider_payments
    where config_id = the_config_id and reference = the_reference;
  if not found then
    return false;
  end if;
  names := names_of_settlement(own_intent_id, the_money_key);
  return exists (select from provider_payments where paid_money_name = any (names) and intent_id <> own_intent_id)
    or exists (
      select from paid_money_names n join transactions t using (transaction_id)
        where n.name = any (names) and t.intent_id <> own_intent_id)
    or exists (
      select from issues where money_names && names and status = 'closed' and transaction_id is null);
end
$$;
-- The payment seam: the only statement of this product that writes `transactions` (I2), in one round trip and one
-- transaction. It locks the order, then the asserted payment, then the reference; every caller takes the locks in this
-- order. It is a function and not one statement with several CTEs, because each statement in it sees what was committed
-- while it waited for a lock; a CTE would still see the moment before.
--
-- It returns the transaction's id, or else why nothing was settled. It is idempotent by intent id: an intent that is paid
-- is reported as paid to whichever attestation asks. One that is not paid repeats the refusal of an attestation that was
-- refused, and only another attestation can pay it. An asserted payment that has paid another intent, or that a person
-- has closed as dealt with outside, pays nothing.
--
-- `the_reference_key` is null where a reference is not compared. `the_reference_window` is how far back it is compared;
-- null is without end. `the_confirmation` is true when the cashier knows of the earlier order. `reference_used_by` is the
-- transaction that has used the reference.
create or replace function settle_intent(
  in the_intent_id bigint,
  in the_attestation_id text,
  in the_station_id bigint,
  in the_order_id bigint,
  in the_route text,
  in the_amount_minor bigint,
  in the_currency text,
  in the_reference text,
  in the_cashier_id bigint,
  in the_money_key text default null,
  in the_reference_key text default null,
  in the_reference_window interval default null,
  in the_confirmation boolean default false,
  out settled_as bigint,
  out refusal text,
  out reference_used_by bigint
)
-- Plans are kept from when the tables were small; they must not read whole tables when these have grown.
language plpgsql set enable_seqscan = off as $$
declare
  found_order orders;
  found_filial_id bigint;
  names text[];
begin
  -- First, so that everything below sees what an earlier question has committed.
  select * into found_order from orders where order_id = the_order_id and station_id = the_station_id for update;

  -- Perhaps it was settled before: a host that crashed, or lost the answer, asks again.
  select paid.transaction_id into settled_as from transactions as paid
    where paid.intent_id = the_intent_id and paid.order_id = the_order_id;
  if found and found_order.order_id is not null then
    return;
  end if;
  settled_as := null;
  select earlier.refusal, earlier.used_by into refusal, reference_used_by from settlement_refusals as earlier
    where earlier.intent_id = the_intent_id and earlier.attestation_id = the_attestation_id;
  if found then
    return;
  end if;

  if found_order.order_id is null then
    refusal := 'order_unknown';
  else
    if the_money_key is not null then
      perform lock_settled_money(regexp_replace(the_money_key, '^provider:[0-9]+:', ''));
      names := names_of_settlement(the_intent_id, the_money_key);
      perform from paid_money_names where name = any (names)
        union all select from issues where money_names && names and status = 'closed' and transaction_id is null;
      if found then
        refusal := 'money_already_used';
      end if;
    end if;
    if refusal is null and found_order.status = 'open'
        and (found_order.total_minor, found_order.currency) = (the_amount_minor, the_currency) then
      if the_reference_key is not null then
        select s.filial_id into found_filial_id from stations as s where s.station_id = the_station_id;
        -- Two counters may use one slip at the same moment: the second one waits here and sees the first one's row. A
        -- confirmed attestation takes the lock too, because another one must see its row as well.
        perform pg_advisory_xact_lock(
          hashtextextended('settled reference ' || found_filial_id || ' ' || the_reference_key, 0));
        if not the_confirmation then
          select used.transaction_id into reference_used_by from settled_references as used
            where used.filial_id = found_filial_id and used.reference_key = the_reference_key
              and (the_reference_window is null or used.settled_at > clock_timestamp() - the_reference_window)
            order by used.transaction_id desc limit 1;
          if found then
            refusal := 'reference_already_used';
          end if;
        end if;
      end if;
      if refusal is null then
        insert into transactions
          (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference, attested_by, money_key)
        values (found_order.organization_id, the_order_id, the_station_id, the_intent_id, the_route, the_amount_minor,
          the_currency, the_reference, the_cashier_id, the_money_key)
        on conflict do nothing
        returning transaction_id into settled_as;
        if found then
          insert into paid_money_names (name, transaction_id) select name, settled_as from unnest(names) as name;
          if the_reference_key is not null then
            insert into settled_references (filial_id, reference_key, transaction_id)
              values (found_filial_id, the_reference_key, settled_as);
          end if;
          update orders set status = 'paid', revision = revision + 1 where order_id = the_order_id;
          return;
        end if;
      end if;
    end if;
    refusal := coalesce(refusal, case found_order.status
      when 'paid' then 'order_already_paid'
      when 'voided' then 'order_voided'
      else 'order_changed'
    end);
  end if;
  -- Two may ask at once for an order that is unknown, because there is nothing to lock.
  insert into settlement_refusals (intent_id, attestation_id, refusal, used_by)
    values (the_intent_id, the_attestation_id, settle_intent.refusal, reference_used_by)
    on conflict (intent_id, attestation_id) do nothing;
end
$$;
