-- The sandbox provider: an outside party that is part of the product. Nothing else reads or writes these tables.

create table sandbox_provider_accounts (
  account_id text primary key,
  name text not null,
  api_key_hash bytea not null unique check (octet_length(api_key_hash) = 32),
  -- The callback secret is derived from the provider's own key, the account and this number; it is not stored.
  secret_generation integer not null default 1,
  -- Until when callbacks carry a signature of the generation before as well.
  previous_secret_until timestamptz,
  -- Counts the lines of the statement. The row is locked while a line is drawn, so that there is no gap.
  statement_lines bigint not null default 0,
  created_at timestamptz not null default now()
);

create table sandbox_provider_payments (
  payment_id text primary key,
  account_id text not null references sandbox_provider_accounts,
  -- The merchant's reference: a repeated request with the same one gives the same payment.
  reference text not null,
  amount_minor bigint not null check (amount_minor >= 0),
  currency text not null,
  description text not null,
  callback_url text not null,
  status text not null default 'pending' check (status in ('pending', 'paid', 'declined', 'cancelled', 'expired')),
  -- What the amount selects (magic-amounts.ts).
  scenario text not null,
  -- When it decides by itself; null when it waits for the guest, or has decided.
  decides_at timestamptz,
  expires_at timestamptz not null,
  decided_at timestamptz,
  -- What it asserts once it is paid: reference, account, amount, currency. Some scenarios assert it wrongly.
  asserted jsonb,
  -- The line of the account's statement, once it is paid.
  statement_line bigint,
  created_at timestamptz not null default now(),
  unique (account_id, reference),
  unique (account_id, statement_line)
);
create index sandbox_provider_payments_deciding on sandbox_provider_payments (decides_at) where decides_at is not null;
create index sandbox_provider_payments_by_age on sandbox_provider_payments (created_at);

-- Callbacks to deliver. Written with the decision itself; the body never changes, so that retries are the same bytes.
create table sandbox_provider_callbacks (
  callback_id bigint generated always as identity primary key,
  payment_id text not null references sandbox_provider_payments,
  event_id text not null,
  body text not null,
  due_at timestamptz not null default now(),
  attempts integer not null default 0,
  done_at timestamptz,
  -- The last answer's status, or why there was none.
  last_answer text
);
create index sandbox_provider_callbacks_due on sandbox_provider_callbacks (due_at) where done_at is null;
create index sandbox_provider_callbacks_by_payment on sandbox_provider_callbacks (payment_id);
