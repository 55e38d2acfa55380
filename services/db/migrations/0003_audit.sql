-- The audit copy of the station log (design §2.1): what happened, what was answered, and what became of each intent.
-- No foreign keys: the copy must be able to take whatever the log says. Texts that came from devices stand here as JSON
-- text or in jsonb, whose escapes the copier makes safe.

-- How far the copy has come, and who makes it. Written in the same transaction as the rows, so that each commit is
-- copied exactly once whatever crashes, and so that a copier that lost its hold cannot write.
create table audit_position (
  stream text primary key,
  -- The stream sequence up to which everything is copied.
  sequence bigint not null default 0,
  holder text not null default '',
  held_until timestamptz not null default '-infinity'
);
insert into audit_position (stream) values ('STATION_LOG');

-- The newest version copied of each station; a commit that is not the next one shows a gap.
create table audit_heads (
  station_id bigint primary key,
  version bigint not null
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
  -- The name at that time; empty where the commit did not carry one.
  actor_name text not null,
  data jsonb not null,
  machine_version integer not null,
  stream_sequence bigint not null,
  primary key (station_id, version, ordinal)
);
create index station_events_by_intent on station_events (intent_id) where intent_id is not null;
create index station_events_by_time on station_events using brin (at);

-- The answer that each repeatable command got, for a repetition that comes after the station's own memory (I6).
create table station_commands (
  station_id bigint not null,
  -- Escaped as in a JSON string, because a command id may hold what a text cannot.
  command_id text not null,
  version bigint not null,
  at timestamptz not null,
  -- A StationResponse as JSON text, exactly as it was given.
  response text not null,
  primary key (station_id, command_id)
);
create index station_commands_by_time on station_commands using brin (at);

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

-- What happened does not change afterwards; rows only go when their retention is over.
create trigger station_events_never_change before update on station_events
  for each row execute function refuse_change();
