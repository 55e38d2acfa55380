-- Closings of periods: what the statements of an account had on a day or in a month when a person closed it, signed. A period
-- itself is no row: what is not closed is open.

-- The keys that have signed. The private one is a setting; the public ones stay, so that every closing can be verified.
create table closing_keys (
  -- The first 16 hex digits of the SHA-256 of the public key.
  key_id text primary key check (key_id ~ '^[0-9a-f]{16}$'),
  public_key bytea not null check (octet_length(public_key) = 32),
  first_used_at timestamptz not null default now()
);

create table period_closings (
  closing_id bigint generated always as identity primary key,
  organization_id bigint not null,
  account_id bigint not null,
  kind text not null check (kind in ('day', 'month')),
  from_date date not null,
  to_date date not null,
  -- The newest line of the account at that moment; the closing covers the lines of its days up to it.
  through_line_id bigint not null,
  -- What is signed: canonical JSON (docs/reconciliation.md).
  statement text not null,
  statement_hash bytea not null check (octet_length(statement_hash) = 32),
  key_id text not null references closing_keys,
  signature bytea not null check (octet_length(signature) = 64),
  closed_by bigint not null,
  closed_by_name text not null,
  closed_at timestamptz not null,
  reason text not null,
  unique (account_id, kind, from_date),
  foreign key (organization_id, account_id) references statement_accounts (organization_id, account_id),
  constraint period_closings_days_check check (case kind when 'day' then to_date = from_date
    else from_date = date_trunc('month', from_date)::date and to_date = (from_date + interval '1 month' - interval '1 day')::date end)
);
create index period_closings_by_organization on period_closings (organization_id, closing_id);

-- The files that a closing rests on: none of them can be withdrawn any more.
create table closing_imports (
  closing_id bigint not null references period_closings,
  import_id bigint not null references statement_imports,
  primary key (closing_id, import_id)
);
create index closing_imports_by_import on closing_imports (import_id);

-- The issues of a closing as they were, each as canonical JSON.
create table closing_issues (
  closing_id bigint not null references period_closings,
  issue_id bigint not null references issues,
  evidence_hash bytea not null,
  item text not null,
  primary key (closing_id, issue_id)
);
create index closing_issues_by_issue on closing_issues (issue_id);

create trigger closing_keys_append_only before update or delete on closing_keys for each row execute function refuse_change();
create trigger closing_keys_not_truncated before truncate on closing_keys for each statement execute function refuse_change();
create trigger period_closings_append_only before update or delete on period_closings for each row execute function refuse_change();
create trigger period_closings_not_truncated before truncate on period_closings for each statement execute function refuse_change();
create trigger closing_imports_append_only before update or delete on closing_imports for each row execute function refuse_change();
create trigger closing_imports_not_truncated before truncate on closing_imports for each statement execute function refuse_change();
create trigger closing_issues_append_only before update or delete on closing_issues for each row execute function refuse_change();
create trigger closing_issues_not_truncated before truncate on closing_issues for each statement execute function refuse_change();

-- The lines of a closing stay as they were signed.
create function refuse_change_of_closed_line() returns trigger language plpgsql as $$
begin
  if exists (
    select from period_closings c where c.account_id = old.account_id and old.booked_on between c.from_date and c.to_date
      and old.line_id <= c.through_line_id) then
    raise exception 'line % belongs to a closed period', old.line_id using errcode = 'restrict_violation';
  end if;
  return case tg_op when 'DELETE' then old else new end;
end
$$;
create trigger statement_lines_closed before update or delete on statement_lines for each row
  execute function refuse_change_of_closed_line();

-- One line as canonical JSON: the fields by name, texts as they are stored. `null` is written as null, amounts as text.
create function closing_line(l statement_lines) returns text stable language sql as $$
  select '{"account":' || to_json(l.account)::text
    || ',"amount_minor":"' || l.amount_minor || '"'
    || ',"booked_on":"' || to_char(l.booked_on, 'YYYY-MM-DD') || '"'
    || ',"currency":' || to_json(l.currency)::text
    || ',"details":{' || (
      select coalesce(string_agg(to_json(key)::text || ':' || to_json(value)::text, ',' order by key collate "C"), '')
      from jsonb_each_text(l.details)) || '}'
    || ',"fee_minor":' || coalesce('"' || l.fee_minor || '"', 'null')
    || ',"fingerprint":"' || encode(l.fingerprint, 'hex') || '"'
    || ',"kind":' || to_json(l.kind)::text
    || ',"line_id":' || l.line_id
    || ',"merchant_reference":' || to_json(l.merchant_reference)::text
    || ',"net_minor":' || coalesce('"' || l.net_minor || '"', 'null')
    || ',"occurred_at":' || coalesce('"' || to_char(l.occurred_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"', 'null')
    || ',"payment_reference":' || to_json(l.payment_reference)::text
    || ',"payout_reference":' || to_json(l.payout_reference)::text
    || ',"provider_reference":' || to_json(l.provider_reference)::text
    || ',"provider_type":' || to_json(l.provider_type)::text
    || ',"terminal":' || to_json(l.terminal)::text
    || ',"text":' || to_json(l.text)::text
    || ',"tip_minor":' || coalesce('"' || l.tip_minor || '"', 'null')
    || ',"value_on":' || coalesce('"' || to_char(l.value_on, 'YYYY-MM-DD') || '"', 'null')
    || '}'
$$;

-- One issue in the same way, as it is at the closing.
create function closing_issue(i issues) returns text stable language sql as $$
  select '{"amount_minor":' || coalesce('"' || i.amount_minor || '"', 'null')
    || ',"currency":' || coalesce(to_json(i.currency)::text, 'null')
    || ',"evidence_hash":"' || encode(i.evidence_hash, 'hex') || '"'
    || ',"issue_id":' || i.issue_id
    || ',"kind":' || to_json(i.kind)::text
    || ',"opened_at":"' || to_char(i.opened_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"'
    || ',"order_id":' || coalesce(i.order_id::text, 'null')
    || ',"provider_reference":' || to_json(i.provider_reference)::text
    || ',"reason":' || coalesce(to_json(i.reason)::text, 'null')
    || ',"resolved_at":' || coalesce('"' || to_char(i.resolved_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"', 'null')
    || ',"resolved_by":' || coalesce(i.resolved_by::text, 'null')
    || ',"station_id":' || coalesce(i.station_id::text, 'null')
    || ',"status":' || to_json(i.status)::text
    || ',"subject_key":' || to_json(i.subject_key)::text
    || ',"supersedes_id":' || coalesce(i.supersedes_id::text, 'null')
    || ',"transaction_id":' || coalesce(i.transaction_id::text, 'null')
    || '}'
$$;

-- The day that an issue of an account is about: that of its line or payment, as the newest run has it; else that on which a
-- callback has raised it, where the account is.
create function issue_day(i issues, the_zone text) returns date stable language sql as $$
  select coalesce(
    (select d.on_date from run_differences d where d.issue_id = i.issue_id order by d.run_id desc limit 1),
    (i.opened_at at time zone coalesce(the_zone, 'UTC'))::date)
$$;

-- The issues of an account that are about these days, but those that have ended and those that a newer one supersedes.
create function issues_of_days(the_account_id bigint, the_from date, the_to date) returns setof issues stable language sql as $$
  select i from statement_accounts a join issues i
    on i.account_key = coalesce('provider:' || a.config_id, 'statement:' || a.account_id)
  where a.account_id = the_account_id and i.status <> 'ended' and i.superseded_by is null
    and issue_day(i, a.time_zone) between the_from and the_to
$$;

-- For the payments of a period that no statement has yet.
create index line_outcomes_by_payment on line_outcomes (payment_key) where payment_key is not null;
