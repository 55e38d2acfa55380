-- Payment providers: whose they are, what was asked of them, what they said, and the money that did not fit.

-- A provider that an owner has set up for a filial. Secrets stand in a table of their own, encrypted.
create table provider_configs (
  config_id bigint generated always as identity primary key,
  organization_id bigint not null,
  filial_id bigint not null,
  kind text not null check (kind in ('sandbox', 'emvco_generic')),
  mode text not null check (mode in ('test', 'live')),
  name text not null,
  status text not null default 'active' check (status in ('active', 'disabled')),
  -- What the adapter needs and is no secret: merchant data, the account there.
  settings jsonb not null,
  created_at timestamptz not null default now(),
  unique (organization_id, config_id),
  foreign key (organization_id, filial_id) references filials (organization_id, filial_id)
);
create unique index provider_configs_one_active on provider_configs (filial_id, mode) where status = 'active';
create index provider_configs_by_organization on provider_configs (organization_id, config_id);

-- AES-256-GCM, bound to the config and the name, so that a row that was copied to another place does not open there.
create table provider_secrets (
  secret_id bigint generated always as identity primary key,
  config_id bigint not null references provider_configs,
  name text not null,
  -- Which key encrypted it: the beginning of that key's hash, so that the key can be changed.
  key_id text not null,
  nonce bytea not null check (octet_length(nonce) = 12),
  -- The ciphertext and, behind it, the tag of 16 bytes.
  sealed bytea not null check (octet_length(sealed) > 16),
  created_at timestamptz not null default now(),
  -- Set when a newer secret has taken its place; until then both are taken.
  expires_at timestamptz
);
create index provider_secrets_by_config on provider_secrets (config_id, secret_id);
create unique index provider_secrets_one_current on provider_secrets (config_id, name) where expires_at is null;

-- Which config the stations of a filial use, as they are told it. The row is locked by whoever changes it, so that
-- revisions grow in the order of the commits; a station ignores an older one.
create table provider_choices (
  filial_id bigint not null references filials,
  mode text not null check (mode in ('test', 'live')),
  config_id bigint references provider_configs,
  revision bigint not null default 1,
  primary key (filial_id, mode)
);
-- A station that was created since has not been told yet. There is no config at this moment, so nothing to tell the others.
alter table stations add column provider_told boolean not null default true;
alter table stations alter column provider_told set default false;
create index stations_without_provider on stations (station_id) where not provider_told;

-- A bus that has lost its newest data is told anew what stations are (bus_announcements); afterwards each is told its
-- provider again. How far that has come.
create table provider_recovery (
  one boolean primary key default true check (one),
  -- The end of the last announcement for which every station is marked.
  recovered_at timestamptz not null default '-infinity',
  -- The announcement for which stations are being marked; a later one starts over.
  announced_at timestamptz,
  marked_through bigint not null default 0
);
insert into provider_recovery default values;

-- The owner's and the operators' audit trail here: who did what, when. Written with the change, never changed.
create table provider_events (
  event_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  at timestamptz not null default now(),
  actor_role text not null,
  actor_id bigint not null,
  actor_name text not null,
  action text not null,
  subject_kind text not null check (subject_kind in ('provider_config', 'provider_issue')),
  subject_id bigint not null,
  -- What changed and why; never a secret.
  data jsonb not null default '{}'
);
create index provider_events_by_organization on provider_events (organization_id, event_id);
create trigger provider_events_append_only before update or delete on provider_events
  for each row execute function refuse_change();

-- One payment asked of a provider for one intent. Written before the provider is asked, so that a callback that
-- overtakes the answer finds it.
create table provider_payments (
  intent_id bigint primary key,
  config_id bigint not null,
  organization_id bigint not null,
  station_id bigint not null,
  order_display_number bigint not null,
  -- Ours: random, so that nobody can name a payment that they were not told of.
  reference text not null unique,
  -- What the money must be: the account that it goes to, the amount and the currency.
  account text not null,
  amount_minor bigint not null check (amount_minor >= 0),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  expires_at timestamptz not null,
  status text not null default 'asked' check (status in ('asked', 'ready', 'failed')),
  -- Until when whoever asks may take; afterwards another may ask again, with the same reference.
  asked_until timestamptz not null,
  failure text,
  qr_payload text not null default '',
  -- The provider's, once it is known.
  provider_reference text not null default '',
  -- The provider's reference of the money that was taken for this payment, and when. Set once.
  paid_reference text,
  paid_at timestamptz,
  -- The intent has ended unpaid, as the station has said.
  withdrawn_at timestamptz,
  created_at timestamptz not null default now(),
  foreign key (organization_id, config_id) references provider_configs (organization_id, config_id),
  check ((paid_reference is null) = (paid_at is null))
);
create index provider_payments_by_provider_reference on provider_payments (config_id, provider_reference)
  where provider_reference <> '';

-- What is still to be done about a payment: telling the station, asking the provider. Due times stand here and nowhere
-- else, so that nothing due is lost with a process. Whoever takes one moves its due time on; if they die, it is due again.
create table provider_tasks (
  intent_id bigint not null references provider_payments,
  kind text not null check (kind in ('confirm', 'fail', 'clear', 'poll', 'withdraw')),
  -- What the station is told, where the kind needs it.
  detail jsonb not null default '{}',
  due_at timestamptz not null default now(),
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  done_at timestamptz,
  -- How it ended, for whoever looks into a fault.
  outcome text,
  primary key (intent_id, kind)
)
with (autovacuum_vacuum_scale_factor = 0.02);
create index provider_tasks_due on provider_tasks (due_at) where done_at is null;

-- Each callback that was accepted, with the exact answer that every duplicate gets.
create table provider_callbacks (
  callback_id bigint generated always as identity primary key,
  config_id bigint not null references provider_configs,
  -- The provider's event id, or the hash of the body where there is none.
  event_key text not null,
  event_type text not null,
  intent_id bigint,
  outcome text not null,
  body bytea not null,
  answer_status integer not null,
  answer_body text not null,
  received_at timestamptz not null default clock_timestamp(),
  unique (config_id, event_key)
);
create index provider_callbacks_by_time on provider_callbacks using brin (received_at);

-- Callbacks that were not accepted: from where, and why. Bounded by the throttle, the retention and a number of rows.
create table provider_callback_refusals (
  refusal_id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  -- As it was asked for: there may be no such config.
  config_id bigint not null,
  address text not null,
  reason text not null
);

-- Money that does not fit, and what became of it.
create table provider_issues (
  issue_id bigint generated always as identity primary key,
  organization_id bigint not null,
  config_id bigint not null,
  kind text not null check (kind in ('unmatched_money', 'amount_mismatch', 'currency_mismatch', 'account_mismatch',
    'reference_mismatch', 'late_money', 'duplicate_money', 'settlement_refused')),
  status text not null default 'open' check (status in ('open', 'attributed', 'closed')),
  -- The same money in the same difficulty is one issue, however often it is told.
  money_key text not null,
  station_id bigint,
  intent_id bigint,
  order_id bigint,
  amount_minor bigint,
  currency text,
  provider_reference text not null,
  evidence jsonb not null,
  opened_at timestamptz not null default now(),
  resolved_at timestamptz,
  resolved_by bigint,
  reason text,
  transaction_id bigint,
  -- An attribution under way: written before the payment seam is asked, and asked again with the same intent until the
  -- seam has spoken, so that no crash pays twice.
  attribution jsonb,
  attributed_since timestamptz,
  unique (config_id, kind, money_key),
  foreign key (organization_id, config_id) references provider_configs (organization_id, config_id),
  check ((status = 'open') = (resolved_at is null)),
  check ((attribution is null) = (attributed_since is null))
);
create index provider_issues_by_organization on provider_issues (organization_id, issue_id);
-- The same money pays one order at most, whatever issues it has raised.
create unique index provider_issues_money_attributed_once on provider_issues (config_id, money_key)
  where status = 'attributed' or attribution is not null;
-- Money that the seam refused may still be settled by the cashier; looked at now and then.
create index provider_issues_refused on provider_issues (issue_id) where kind = 'settlement_refused' and status = 'open';
create index provider_issues_attribution_open on provider_issues (attributed_since) where attribution is not null;
