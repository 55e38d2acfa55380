-- What is known here about the bus, so that a loss of its newest data is found and made good (design §3): nats-server
-- writes its files through once a minute, and a power cut takes what it had acknowledged since.

-- The newest message of each stream and bucket that the relay has seen. A stream that no longer has it, or has another
-- one in its place, has lost its end.
create table bus_marks (
  stream text primary key,
  -- When the stream was made and when that message was stored, in the server's own words, for comparison only.
  created text not null,
  sequence bigint not null check (sequence >= 0),
  stored text not null,
  marked_at timestamptz not null default clock_timestamp()
);

-- What has to be told to the bus anew, and how far that has come; a relay that dies is succeeded from there.
create table bus_announcements (
  part text primary key check (part in ('stations', 'credentials', 'sessions')),
  -- The newest id that is told.
  told_through bigint not null default 0,
  requested_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz
);

-- The trail counts on when a station's log has lost its end and uses the lost versions again: what is in the trail as
-- `version` is the log's version and this offset. Null: the next commit continues the trail, whatever its version is.
alter table audit_heads add column version_offset bigint default 0;
-- Of the newest commit that is copied of the log as it is now.
alter table audit_heads add column stream_sequence bigint not null default 0;
update audit_heads h set
  version_offset = case when log_version < version then null else 0 end,
  stream_sequence = coalesce((select max(e.stream_sequence) from station_events e where e.station_id = h.station_id), 0);

-- The events that say which commits were lost; each covers a range of versions.
create index station_events_log_lost on station_events (station_id) where type = 'log_lost';

-- An answer that the log has lost is no answer any more: the command may be given again.
alter table station_commands add column is_lost boolean not null default false;
