-- Kill switches: each that was ever thrown, and whether it is on. The bucket SWITCHES is filled from here by way of the
-- outbox, and told anew from here when the bus has lost it.

create table kill_switches (
  switch_id bigint generated always as identity primary key,
  subject_kind text not null check (subject_kind in ('platform', 'organization', 'station', 'device', 'provider')),
  -- Zero for the platform, of which there is one.
  subject_id bigint not null check ((subject_kind = 'platform') = (subject_id = 0)),
  -- Whose it is; null for the platform.
  organization_id bigint references organizations check ((subject_kind = 'platform') = (organization_id is null)),
  is_on boolean not null,
  -- Of the last change, as are the following.
  reason text not null,
  changed_by_kind text not null,
  changed_by_id bigint not null,
  changed_by_name text not null,
  changed_at timestamptz not null default clock_timestamp(),
  -- Grows with each change, and never falls behind the clock: a database that was restored from a backup goes on with
  -- higher revisions than the bus may have seen.
  revision bigint not null,
  unique (subject_kind, subject_id)
);
create index kill_switches_on on kill_switches (organization_id, switch_id) where is_on;

alter table outbox drop constraint outbox_kind_check;
alter table outbox add constraint outbox_kind_check check (kind in
  ('station_command', 'credential_put', 'credential_delete', 'session_put', 'session_delete', 'switch_set'));

alter table bus_announcements drop constraint bus_announcements_part_check;
alter table bus_announcements add constraint bus_announcements_part_check
  check (part in ('stations', 'credentials', 'sessions', 'switches'));

-- An event of the platform is in every organization's trail.
alter table registry_events alter column organization_id drop not null;
create index registry_events_of_platform on registry_events (event_id) where organization_id is null;
alter table registry_events drop constraint registry_events_subject_kind_check;
alter table registry_events add constraint registry_events_subject_kind_check check (subject_kind in
  ('platform', 'organization', 'filial', 'station', 'device', 'enrollment_code', 'user', 'session', 'provider_config'));
alter table registry_events add constraint registry_events_of_platform_only
  check ((subject_kind = 'platform') = (organization_id is null));
