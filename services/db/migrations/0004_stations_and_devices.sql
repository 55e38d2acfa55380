-- Filials, their stations, the stations' devices, and how a device gets its credential (design §5).

create table filials (
  filial_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  name text not null,
  created_at timestamptz not null default now(),
  unique (organization_id, filial_id)
);

create table stations (
  station_id bigint generated always as identity primary key,
  organization_id bigint not null,
  filial_id bigint not null,
  name text not null,
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  status text not null default 'active' check (status in ('active', 'suspended', 'closed')),
  sandbox boolean not null default false,
  -- Which of the seeded sandbox stations this is, so that a second seeding also finds it when it was renamed.
  seed text,
  -- Grows with each change; the station's actor ignores an older description.
  revision bigint not null default 1,
  -- False until the station's actor has been sent its filial's provider (provider_choices).
  provider_told boolean not null default false,
  created_at timestamptz not null default now(),
  unique (organization_id, station_id),
  foreign key (organization_id, filial_id) references filials (organization_id, filial_id)
);
create unique index stations_seeded on stations (organization_id, seed) where seed is not null and status <> 'closed';
create index stations_by_filial on stations (organization_id, filial_id, station_id);
create index stations_without_provider on stations (station_id) where not provider_told;

-- The stations whose lease a session may hold, written before the lease is asked for: whatever ends the session finds
-- here which stations must be notified.
create table session_stations (
  session_id bigint not null references sessions on delete cascade,
  station_id bigint not null references stations,
  bound_at timestamptz not null default now(),
  primary key (session_id, station_id)
);

create table devices (
  device_id bigint generated always as identity primary key,
  organization_id bigint not null,
  station_id bigint not null,
  name text not null,
  kind text not null check (kind in ('smart_pos_companion', 'customer_display')),
  capabilities text[] not null,
  status text not null default 'pending' check (status in ('pending', 'active', 'suspended', 'revoked')),
  -- Opaque: stored and handed out, never read (contract, "Device snapshot").
  handoff_target text not null default '',
  revision bigint not null default 1,
  created_at timestamptz not null default now(),
  enrolled_at timestamptz,
  revoked_at timestamptz,
  unique (organization_id, device_id),
  foreign key (organization_id, station_id) references stations (organization_id, station_id)
);
create index devices_by_station on devices (organization_id, station_id, device_id);
-- Devices are listed by id, also those of one status: an organization may have many revoked ones.
create index devices_of_status on devices (organization_id, status, device_id);

-- One-time codes. Only a hash of the code is stored (I9).
create table enrollment_codes (
  code_id bigint generated always as identity primary key,
  organization_id bigint not null,
  device_id bigint not null,
  code_hash bytea not null check (octet_length(code_hash) = 32),
  created_by bigint,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  spent_at timestamptz,
  revoked_at timestamptz,
  foreign key (organization_id, device_id) references devices (organization_id, device_id)
);
-- A claim reads this index only, so a spent or revoked code takes the same index miss as an unknown one (I10).
create unique index enrollment_codes_claimable on enrollment_codes (code_hash)
  where spent_at is null and revoked_at is null;
-- A device has at most one code that could still be claimed.
create unique index enrollment_codes_one_open on enrollment_codes (device_id)
  where spent_at is null and revoked_at is null;
create index enrollment_codes_by_device on enrollment_codes (device_id, code_id);

-- SHA-256 of each device credential. The relay fills the bucket CREDENTIALS from here through the outbox.
create table device_credentials (
  credential_id bigint generated always as identity primary key,
  organization_id bigint not null,
  device_id bigint not null,
  credential_hash bytea not null unique check (octet_length(credential_hash) = 32),
  scopes text[] not null,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  foreign key (organization_id, device_id) references devices (organization_id, device_id)
);
create unique index device_credentials_one_valid on device_credentials (device_id) where revoked_at is null;
create index device_credentials_by_device on device_credentials (device_id);
