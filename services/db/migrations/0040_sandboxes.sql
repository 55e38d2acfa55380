-- Sandboxes: what belongs to one test set-up of an owner (contract, "Rules" 9). All of it are ordinary rows of their tables.

create table sandboxes (
  sandbox_id bigint generated always as identity primary key,
  organization_id bigint not null,
  station_id bigint not null unique,
  display_id bigint not null,
  companion_id bigint not null,
  cashier_id bigint not null references users,
  config_id bigint not null references provider_configs,
  -- Made with the sandbox: it is disabled with the last sandbox that has it.
  owns_config boolean not null,
  created_at timestamptz not null default now(),
  reset_at timestamptz,
  deleted_at timestamptz,
  foreign key (organization_id, station_id) references stations (organization_id, station_id),
  foreign key (organization_id, display_id) references devices (organization_id, device_id),
  foreign key (organization_id, companion_id) references devices (organization_id, device_id)
);
create index sandboxes_of_organization on sandboxes (organization_id, sandbox_id) where deleted_at is null;
