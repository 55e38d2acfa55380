-- Every kill switch that was ever used, and whether it is on. The relay fills the bucket SWITCHES from here through the
-- outbox, and again when the bus has lost it.
create table kill_switches (
  switch_id bigint generated always as identity primary key,
  subject_kind text not null check (subject_kind in ('platform', 'organization', 'station', 'device', 'provider')),
  -- Zero for the platform, of which there is one.
  subject_id bigint not null check ((subject_kind = 'platform') = (subject_id = 0)),
  -- The subject's organization; null for the platform.
  organization_id bigint references organizations check ((subject_kind = 'platform') = (organization_id is null)),
  is_on boolean not null,
  -- Of the last change, like the following columns.
  reason text not null,
  changed_by_kind text not null,
  changed_by_id bigint not null,
  changed_by_name text not null,
  changed_at timestamptz not null default clock_timestamp(),
  -- Grows with each change and is never behind the clock: a database that was restored from a backup continues with
  -- higher revisions than the bus may have seen.
  revision bigint not null,
  unique (subject_kind, subject_id)
);
create index kill_switches_on on kill_switches (organization_id, switch_id) where is_on;
