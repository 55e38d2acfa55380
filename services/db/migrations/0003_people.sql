-- Organizations, their people and sessions, and the owner's audit log (design §5). Every row below an organization names
-- it, so that each query can be confined to the caller's organization; composite foreign keys keep a row from pointing
-- into another organization.

create table organizations (
  organization_id bigint generated always as identity primary key,
  name text not null,
  -- Marks the seeded sandbox; there is at most one.
  sandbox boolean not null default false,
  created_at timestamptz not null default now()
);
create unique index organizations_one_sandbox on organizations (sandbox) where sandbox;

create table users (
  user_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  -- Lower case; one person, one organization.
  email text not null unique check (email = lower(email)),
  name text not null,
  role text not null check (role in ('owner', 'cashier', 'reconciliation_operator')),
  -- A person whom the owner has suspended has no session and gets none.
  status text not null default 'active' check (status in ('active', 'suspended')),
  password_hash text not null,
  created_at timestamptz not null default now(),
  unique (organization_id, user_id)
);

-- SHA-256 of each session token. The relay fills the bucket SESSIONS from here through the outbox.
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

-- Log-in attempts, counted here so that the limit holds over every process. The layout is rate-limiter-flexible's.
create table login_attempts (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);
create index login_attempts_by_expiry on login_attempts (expire);

-- Where each person has logged in from: guesses from other addresses cannot lock them out there. Only a keyed hash of
-- account and address is stored, so that a row names no place.
create table known_addresses (
  user_id bigint not null references users,
  address_hash bytea not null check (octet_length(address_hash) = 32),
  last_login_at timestamptz not null default now(),
  primary key (user_id, address_hash)
);
create index known_addresses_by_age on known_addresses (last_login_at);

-- The browsers in which each person has logged in, by the hash of a random text in a cookie: guesses from the same address
-- cannot lock the person out there. The text grants no access.
create table known_browsers (
  user_id bigint not null references users,
  token_hash bytea not null check (octet_length(token_hash) = 32),
  last_login_at timestamptz not null default now(),
  primary key (user_id, token_hash)
);
create index known_browsers_by_age on known_browsers (last_login_at);

-- The owner's audit log of the registry: who did what to which thing, when. Written with the change, never changed. An
-- entry about the platform has no organization: it is in every organization's log.
create table registry_events (
  event_id bigint generated always as identity primary key,
  organization_id bigint references organizations,
  at timestamptz not null default now(),
  actor_kind text not null check (actor_kind in ('owner', 'cashier', 'reconciliation_operator', 'device', 'registry')),
  -- A user's or a device's id; zero for the operator of the installation.
  actor_id bigint not null,
  actor_name text not null,
  action text not null,
  subject_kind text not null check (subject_kind in
    ('platform', 'organization', 'filial', 'station', 'device', 'enrollment_code', 'user', 'session', 'provider_config')),
  subject_id bigint not null,
  data jsonb not null default '{}',
  constraint registry_events_of_platform_only check ((subject_kind = 'platform') = (organization_id is null))
);
create index registry_events_by_organization on registry_events (organization_id, event_id);
create index registry_events_by_subject on registry_events (organization_id, subject_kind, subject_id, event_id);
create index registry_events_of_platform on registry_events (event_id) where organization_id is null;
create trigger registry_events_append_only before update or delete on registry_events
  for each row execute function refuse_change();
create trigger registry_events_not_truncated before truncate on registry_events
  for each statement execute function refuse_change();
