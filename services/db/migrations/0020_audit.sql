-- The audit copy of the station log (design §2.1): what happened, and what became of each intent. No foreign keys: the
-- copy must be able to store whatever the log has. Texts from devices are stored as JSON text or in jsonb, and the copier
-- makes their escapes safe.

-- How far each log is copied, and by which process. Written in the transaction of the copied rows, so that each commit is
-- copied exactly once whatever crashes, and so that a copier that lost its hold cannot write. A copier makes the row of its
-- log when it takes its hold for the first time.
create table audit_position (
  stream text primary key,
  -- The stream sequence up to which everything is copied.
  sequence bigint not null default 0,
  holder text not null default '',
  held_until timestamptz not null default '-infinity'
);

-- How far each station is copied, so that a reader can wait for one station only.
create table audit_heads (
  station_id bigint primary key,
  -- The newest version copied, as the audit log counts; a commit that is not the next one shows a gap.
  version bigint not null,
  -- When a log has lost its end and uses the lost versions again, the audit log continues to count: its version is the
  -- log's plus this offset. Null: the next commit continues the audit log, whatever its version is.
  version_offset bigint default 0,
  -- Of the newest commit that is copied of the log as it is now.
  stream_sequence bigint not null default 0
);

create table station_events (
  station_id bigint not null,
  version bigint not null check (version > 0),
  -- The event's place in its commit.
  ordinal integer not null check (ordinal >= 0),
  organization_id bigint not null,
  intent_id bigint,
  at timestamptz not null,
  type text not null,
  actor_kind text not null,
  actor_id bigint not null,
  -- The name at that time; empty where the commit did not have one.
  actor_name text not null,
  data jsonb not null,
  machine_version integer not null,
  stream_sequence bigint not null,
  primary key (station_id, version, ordinal)
);
create index station_events_by_intent on station_events (intent_id) where intent_id is not null;
create index station_events_by_time on station_events using brin (at);
-- The events that report which commits were lost; each covers a range of versions.
create index station_events_log_lost on station_events (station_id) where type = 'log_lost';
-- What happened does not change afterwards; rows are only deleted after their retention.
create trigger station_events_never_change before update on station_events
  for each row execute function refuse_change();

-- Each intent as last committed.
create table intent_history (
  intent_id bigint primary key,
  station_id bigint not null,
  organization_id bigint not null,
  version bigint not null,
  at timestamptz not null,
  -- A PaymentIntent as JSON text.
  intent text not null
);
create index intent_history_by_time on intent_history using brin (at);
