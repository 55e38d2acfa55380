-- What the relay publishes to the bus, and what is known about the bus.

-- The outbox: what a transaction publishes, written with the change itself, delivered by the relay (design §3). Rows of
-- one key are delivered one after another in the order of their ids. They carry hashes, never a secret.
create table outbox (
  outbox_id bigint generated always as identity primary key,
  key text not null check (key ~ '^[a-z]+\.[0-9]+$'),
  kind text not null check (kind in ('station_command', 'credential_put', 'credential_delete', 'session_put',
    'session_delete', 'switch_set', 'robotics_event')),
  payload jsonb not null,
  created_at timestamptz not null default now(),
  -- Set when the row is done: delivered, or refused for good (then with the reason).
  delivered_at timestamptz,
  -- Where it was stored: the station log, where it went to one; the sequence there, or the revision in the bucket.
  stream text,
  sequence bigint,
  failed_reason text,
  check (failed_reason is null or delivered_at is not null)
)
-- Every row is updated once; the index of pending rows must not scan dead ones.
with (autovacuum_vacuum_scale_factor = 0.02);
create index outbox_pending on outbox (key, outbox_id) where delivered_at is null;
create index outbox_by_key on outbox (key, outbox_id);
create index outbox_done on outbox (delivered_at) where delivered_at is not null;
-- For the search of events that the bus has lost.
create index outbox_robotics on outbox (delivered_at) where kind = 'robotics_event' and failed_reason is null;

-- Which relay delivers, and until when, by this server's clock: one row. The relay that delivers renews it several times a
-- second; one whose process, machine or network is stalled lets it lapse, and another takes it with the next epoch. What
-- only one relay may write is written together with a check of the epoch.
create table relay_lease (
  is_only boolean primary key default true check (is_only),
  epoch bigint not null,
  -- Host name and process id, for operators.
  holder text not null,
  lapses_at timestamptz not null
)
-- It is updated all the time: updates stay in its page, and dead rows go as pages are read.
with (fillfactor = 20, autovacuum_vacuum_threshold = 1000);
insert into relay_lease (epoch, holder, lapses_at) values (0, '', '-infinity');

-- The newest message of each stream and bucket that the relay has seen, so that a loss is found and repaired (design §3).
-- A stream that no longer has this message, or has another one in its place, has lost its end.
create table bus_marks (
  stream text primary key,
  -- When the stream was made and when that message was stored, in the server's words, for comparison only.
  created text not null,
  sequence bigint not null check (sequence >= 0),
  stored text not null,
  marked_at timestamptz not null default clock_timestamp()
);

-- What has to be announced to the bus again, and how far that has come; the next relay continues from there.
create table bus_announcements (
  part text primary key check (part in ('stations', 'credentials', 'sessions', 'switches')),
  -- The newest id that is announced.
  told_through bigint not null default 0,
  requested_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);

-- Requests that one process has begun and no other may begin, by the inbox in which their callers wait. Rows are needed
-- for seconds, and a crash of PostgreSQL takes longer than any caller waits: so they are not written to the WAL.
create unlogged table request_claims (
  request_id text primary key,
  claimed_at timestamptz not null default now()
);
create index request_claims_claimed_at on request_claims (claimed_at);
