-- Payment providers: their configs, what was asked of them, what they answered, and asserted payments that did not fit.

-- A provider that an owner has set up for a filial. Its secrets are in a table of their own, encrypted.
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

-- AES-256-GCM, bound to the config and the name, so that a row that was copied to another place cannot be decrypted there.
create table provider_secrets (
  secret_id bigint generated always as identity primary key,
  config_id bigint not null references provider_configs,
  name text not null,
  -- Which key encrypted it: the beginning of that key's hash, so that the key can be changed.
  key_id text not null,
  nonce bytea not null check (octet_length(nonce) = 12),
  -- The ciphertext, followed by the tag of 16 bytes.
  sealed bytea not null check (octet_length(sealed) > 16),
  created_at timestamptz not null default now(),
  -- Set when a newer secret has replaced it; until then both are accepted.
  expires_at timestamptz
);
create index provider_secrets_by_config on provider_secrets (config_id, secret_id);
create unique index provider_secrets_one_current on provider_secrets (config_id, name) where expires_at is null;

-- Which config the stations of a filial use. A change locks the row, so that revisions grow in the order of the commits;
-- a station ignores an older one.
create table provider_choices (
  filial_id bigint not null references filials,
  mode text not null check (mode in ('test', 'live')),
  config_id bigint references provider_configs,
  revision bigint not null default 1,
  primary key (filial_id, mode)
);

-- After the relay has announced stations to a bus that lost data (bus_announcements), each station is sent its provider
-- again. One row: how far that has come.
create table provider_recovery (
  one boolean primary key default true check (one),
  -- The end of the last announcement for which every station is marked.
  recovered_at timestamptz not null default '-infinity',
  -- The announcement for which stations are being marked; a later one starts over.
  announced_at timestamptz,
  marked_through bigint not null default 0
);
insert into provider_recovery default values;

-- The audit log of owners and reconciliation operators: who did what, when. Written with the change, never changed.
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
create trigger provider_events_not_truncated before truncate on provider_events
  for each statement execute function refuse_change();

-- One payment asked of a provider for one intent. Written before the provider is asked, so that a callback that
-- overtakes the answer finds it.
create table provider_payments (
  intent_id bigint primary key,
  config_id bigint not null,
  organization_id bigint not null,
  station_id bigint not null,
  order_display_number bigint not null,
  -- Ours: random, so that it cannot be guessed.
  reference text not null unique,
  -- What an asserted payment must match: the account, its scheme when the payment was asked for (provider_scheme), the
  -- amount and the currency.
  account text not null,
  account_scheme text,
  amount_minor bigint not null check (amount_minor >= 0),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  expires_at timestamptz not null,
  status text not null default 'asked' check (status in ('asked', 'ready', 'failed')),
  -- How long the process that asks may take; afterwards another may ask again, with the same reference.
  asked_until timestamptz not null,
  failure text,
  qr_payload text not null default '',
  -- The provider's, once it is known.
  provider_reference text not null default '',
  -- The provider's reference of the asserted payment that was accepted, its match key within the account, and when. Set
  -- once.
  paid_reference text,
  paid_money_name text,
  paid_at timestamptz,
  -- The intent has ended unpaid, as the station has reported.
  withdrawn_at timestamptz,
  -- The provider's last answer is that no money moved and none will. The station is notified once no issue of the intent
  -- is open. Null again when the provider asserts a payment since.
  ended_at timestamptz,
  -- How often the provider has asserted a payment that is evidence: an answer to a request from before the newest
  -- assertion is older than it, and ends nothing.
  assertions bigint not null default 0,
  created_at timestamptz not null default now(),
  foreign key (organization_id, config_id) references provider_configs (organization_id, config_id),
  check ((paid_reference is null) = (paid_at is null))
);
create index provider_payments_by_provider_reference on provider_payments (config_id, provider_reference)
  where provider_reference <> '';
create index provider_payments_by_paid_money on provider_payments (paid_money_name) where paid_money_name is not null;

-- An intent that has ended before its payment was asked for, so that no provider is asked any more.
create table provider_withdrawals (
  intent_id bigint primary key,
  asked_at timestamptz not null default now()
);
create index provider_withdrawals_by_age on provider_withdrawals (asked_at);

-- What is still to be done about a payment: notify the station, ask the provider. Due times are stored only here, so that
-- nothing due is lost with a process. A process that takes a task moves its due time on; if it dies, the task is due again.
create table provider_tasks (
  intent_id bigint not null references provider_payments,
  kind text not null check (kind in ('confirm', 'fail', 'clear', 'differ', 'poll', 'withdraw')),
  -- What the station is sent, where the kind needs it.
  detail jsonb not null default '{}',
  due_at timestamptz not null default now(),
  attempts integer not null default 0,
  created_at timestamptz not null default now(),
  done_at timestamptz,
  -- How it ended, for an engineer who examines a fault.
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
  -- A limited number of other bodies is stored (provider_callback_variants); the others are counted here.
  variants_not_kept integer not null default 0,
  unique (config_id, event_key)
);
create index provider_callbacks_by_time on provider_callbacks using brin (received_at);

-- The same event id with another body: stored beside the first, whose answer it gets.
create table provider_callback_variants (
  callback_id bigint not null references provider_callbacks on delete cascade,
  body_hash bytea not null check (octet_length(body_hash) = 32),
  body bytea not null,
  outcome text not null,
  received_at timestamptz not null default clock_timestamp(),
  primary key (callback_id, body_hash)
);
create index provider_callback_variants_by_time on provider_callback_variants using brin (received_at);

-- Callbacks that were not accepted: from where, and why. Bounded by the throttle, the retention and a number of rows.
create table provider_callback_refusals (
  refusal_id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  -- As in the request: there may be no such config.
  config_id bigint not null,
  address text not null,
  reason text not null
);

-- An asserted payment that does not fit, and what became of it.
create table provider_issues (
  issue_id bigint generated always as identity primary key,
  organization_id bigint not null,
  config_id bigint not null,
  kind text not null check (kind in ('unmatched_money', 'amount_mismatch', 'currency_mismatch', 'account_mismatch',
    'reference_mismatch', 'late_money', 'duplicate_money', 'settlement_refused')),
  status text not null default 'open' check (status in ('open', 'attributed', 'closed')),
  -- The asserted payment within its config (services/bus/messages/intents.ts): one payment with one difficulty is one
  -- issue, however often the provider asserts it.
  money_key text not null,
  -- All its match keys (names_of_money); they grow as the provider names further accounts.
  money_names text[] not null,
  -- The provider has asserted different amounts. Stored beside the evidence, which is bounded.
  said_differently boolean not null default false,
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
  -- An attribution under way: written before the payment seam is called, and repeated with the same intent until the
  -- seam has answered, so that no crash pays twice.
  attribution jsonb,
  attributed_since timestamptz,
  foreign key (organization_id, config_id) references provider_configs (organization_id, config_id),
  check ((status = 'open') = (resolved_at is null)),
  check ((attribution is null) = (attributed_since is null))
);
create index provider_issues_by_organization on provider_issues (organization_id, issue_id);
-- After an attribution the same payment may raise the same difficulty once more: another amount of it is news.
create unique index provider_issues_one_each on provider_issues (config_id, kind, money_key) where status <> 'attributed';
-- One asserted payment pays at most one order, whatever issues it has raised.
create unique index provider_issues_money_attributed_once on provider_issues (config_id, money_key)
  where status = 'attributed' or attribution is not null;
-- Without a pending list, which every search would have to read.
create index provider_issues_by_money_name on provider_issues using gin (money_names) with (fastupdate = off);
-- A payment's timeline shows its issues, open or not.
create index provider_issues_by_intent on provider_issues (intent_id) where intent_id is not null;
-- While an intent has an open issue, its station is not notified that no money moved.
create index provider_issues_open_by_intent on provider_issues (intent_id) where status = 'open';
-- A payment that the seam refused may still be settled by the cashier; these are polled.
create index provider_issues_refused on provider_issues (issue_id) where kind = 'settlement_refused' and status = 'open';
create index provider_issues_attribution_open on provider_issues (attributed_since) where attribution is not null;
