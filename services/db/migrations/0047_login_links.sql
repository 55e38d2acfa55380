-- One-time links that log a person of this machine in to the sandbox: made at a start, spent by the first page that opens one.
create table login_links (
  link_hash bytea primary key check (octet_length(link_hash) = 32),
  organization_id bigint not null references organizations,
  station_id bigint not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  foreign key (organization_id, station_id) references stations (organization_id, station_id)
);
