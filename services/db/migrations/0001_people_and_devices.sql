-- People, places and devices (design §5). Every row below an organization names it, so that each query can be confined
-- to the caller's own; the composite foreign keys keep a row from pointing into another organization.

create table organizations (
  organization_id bigint generated always as identity primary key,
  name text not null,
  -- The seeded sandbox is found by this mark again; there is one at most.
  sandbox boolean not null default false,
  created_at timestamptz not null default now()
);
create unique index organizations_one_sandbox on organizations (sandbox) where sandbox;

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
  -- Which of the seeded sandbox stations this is, so that a second seeding finds it also when it was renamed.
  seed text,
  -- Grows with each change; the station's actor ignores an older description.
  revision bigint not null default 1,
  created_at timestamptz not null default now(),
  unique (organization_id, station_id),
  foreign key (organization_id, filial_id) references filials (organization_id, filial_id)
);
create unique index stations_seeded on stations (organization_id, seed) where seed is not null and status <> 'closed';
create index stations_by_filial on stations (organization_id, filial_id, station_id);

create table devices (
  device_id bigint generated always as identity primary key,
  organization_id bigint not null,
  station_id bigint not null,
  name text not null,
  kind text not null check (kind in ('smart_pos_companion', 'customer_display')),
  capabilities text[] not null,
  status text not null default 'pending' check (status in ('pending', 'active', 'suspended', 'revoked')),
  -- Opaque: stored and handed out, never looked into (contract, "Device snapshot").
  handoff_target text not null default '',
  revision bigint not null default 1,
  created_at timestamptz not null default now(),
  enrolled_at timestamptz,
  revoked_at timestamptz,
  unique (organization_id, device_id),
  foreign key (organization_id, station_id) references stations (organization_id, station_id)
);
create index devices_by_station on devices (organization_id, station_id, device_id);

-- One-time codes. Only a hash of the code is kept (I9).
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
-- A claim looks here only, so a spent or revoked code takes the very same index miss as an unknown one (I10).
create unique index enrollment_codes_claimable on enrollment_codes (code_hash)
  where spent_at is null and revoked_at is null;
-- A device has one code at most that could still be claimed.
create unique index enrollment_codes_one_open on enrollment_codes (device_id)
  where spent_at is null and revoked_at is null;
create index enrollment_codes_by_device on enrollment_codes (device_id, code_id);

-- SHA-256 of each device credential. The bucket CREDENTIALS is filled from here by way of the outbox.
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

create table users (
  user_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  -- Lower case; one person, one organization.
  email text not null unique check (email = lower(email)),
  name text not null,
  role text not null check (role in ('owner', 'cashier', 'reconciliation_operator')),
  password_hash text not null,
  created_at timestamptz not null default now(),
  unique (organization_id, user_id)
);

-- SHA-256 of each session token. The bucket SESSIONS is filled from here by way of the outbox.
create table sessions (
  session_id bigint generated always as identity primary key,
  organization_id bigint not null,
  user_id bigint not null,
  token_hash bytea not null unique check (octet_length(token_hash) = 32),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  ended_at timestamptz,
  foreign key (organization_id, user_id) references users (organization_id, user_id)
);
create index sessions_open_by_user on sessions (user_id, session_id) where ended_at is null;
create index sessions_by_expiry on sessions (expires_at);

-- The owner's audit trail of the registry: who did what to which thing, when. Written with the change, never changed.
create table registry_events (
  event_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  at timestamptz not null default now(),
  actor_kind text not null check (actor_kind in ('user', 'device', 'operator')),
  -- A user's or a device's id; zero for whoever operates the installation.
  actor_id bigint not null,
  actor_name text not null,
  action text not null,
  subject_kind text not null check (subject_kind in ('organization', 'filial', 'station', 'device', 'enrollment_code', 'user', 'session')),
  subject_id bigint not null,
  data jsonb not null default '{}'
);
create index registry_events_by_organization on registry_events (organization_id, event_id);
create index registry_events_by_subject on registry_events (organization_id, subject_kind, subject_id, event_id);

-- Log-in attempts, counted here so that the limit holds over every process (rate-limiter-flexible's own layout).
create table login_attempts (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);
create index login_attempts_by_expiry on login_attempts (expire);
