-- The outbox: what a transaction tells the bus, written with the change itself, delivered by the relay (design §3).
-- Rows of one key are delivered one after another in the order of their ids. They carry hashes, never a secret.

create table outbox (
  outbox_id bigint generated always as identity primary key,
  key text not null check (key ~ '^[a-z]+\.[0-9]+$'),
  kind text not null check (kind in ('station_command', 'credential_put', 'credential_delete', 'session_put', 'session_delete')),
  payload jsonb not null,
  created_at timestamptz not null default now(),
  -- Set when the row is done: delivered, or refused for good (then with the reason).
  delivered_at timestamptz,
  -- Where it was stored: the sequence in STATION_LOG or the revision in the bucket.
  sequence bigint,
  failed_reason text,
  check (failed_reason is null or delivered_at is not null)
)
-- Every row is updated once; the index of pending rows must not wade through the dead ones.
with (autovacuum_vacuum_scale_factor = 0.02);
create index outbox_pending on outbox (key, outbox_id) where delivered_at is null;
create index outbox_by_key on outbox (key, outbox_id);
create index outbox_done on outbox (delivered_at) where delivered_at is not null;
