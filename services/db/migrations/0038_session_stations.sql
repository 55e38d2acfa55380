-- The stations that a session may hold the lease of, written before the station is asked for it: whatever ends the session
-- finds here which stations must hear of it.
create table session_stations (
  session_id bigint not null references sessions on delete cascade,
  station_id bigint not null references stations,
  bound_at timestamptz not null default now(),
  primary key (session_id, station_id)
);
