-- Certification artifacts: what a device has passed, as signed statements in a transparency log (RFC 6962). Nothing here ever
-- changes: a revocation is another leaf.

-- The keys that have signed. The private one is a setting; the public ones stay, so that every artifact can be verified.
create table certification_keys (
  -- The first 16 hex digits of the SHA-256 of the public key.
  key_id text primary key check (key_id ~ '^[0-9a-f]{16}$'),
  public_key bytea not null check (octet_length(public_key) = 32),
  first_used_at timestamptz not null default now()
);

-- The leaves in their order, each with the checkpoint of the log that it completes.
create table certification_log (
  leaf_index bigint primary key check (leaf_index >= 0),
  -- The signed statement, byte for byte (DSSE).
  envelope text not null,
  leaf_hash bytea not null check (octet_length(leaf_hash) = 32),
  -- Of the tree that ends with this leaf, and the signed note about it.
  root_hash bytea not null check (octet_length(root_hash) = 32),
  key_id text not null references certification_keys,
  checkpoint text not null,
  logged_at timestamptz not null default now()
);

create table certification_artifacts (
  artifact_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  -- No reference: the check of one needs the right to update the log, which this role does not have.
  leaf_index bigint not null unique,
  -- The entry of the audit log that ends the run: the reset of the sandbox. A run is recorded once.
  run_event_id bigint not null references registry_events,
  sandbox_id bigint not null references sandboxes,
  device_id bigint not null references devices,
  provider text not null,
  capability text not null
    check (capability in ('handoff_present', 'outcome_report', 'display_total', 'qr_dynamic_present')),
  model text,
  software_version text not null,
  -- Of the build; null where none was named.
  software_sha256 bytea check (octet_length(software_sha256) = 32),
  suite_version text not null,
  contract_sha256 text not null,
  -- Of the run, by the audit log.
  started_at timestamptz not null,
  ended_at timestamptz not null,
  recorded_at timestamptz not null default now(),
  recorded_by bigint not null references users,
  recorded_by_name text not null,
  valid_until timestamptz not null,
  -- What came of each check, as the statement names it by its hash.
  evidence text not null,
  unique (run_event_id, capability),
  check (started_at < ended_at and ended_at <= recorded_at and recorded_at < valid_until)
);
create index certification_artifacts_of_organization on certification_artifacts (organization_id, artifact_id);

create table certification_revocations (
  artifact_id bigint primary key references certification_artifacts,
  leaf_index bigint not null unique,
  revoked_at timestamptz not null default now(),
  revoked_by bigint not null references users,
  revoked_by_name text not null,
  reason text not null
);

create trigger certification_keys_append_only before update or delete on certification_keys
  for each row execute function refuse_change();
create trigger certification_keys_not_truncated before truncate on certification_keys
  for each statement execute function refuse_change();
create trigger certification_log_append_only before update or delete on certification_log
  for each row execute function refuse_change();
create trigger certification_log_not_truncated before truncate on certification_log
  for each statement execute function refuse_change();
create trigger certification_artifacts_append_only before update or delete on certification_artifacts
  for each row execute function refuse_change();
create trigger certification_artifacts_not_truncated before truncate on certification_artifacts
  for each statement execute function refuse_change();
create trigger certification_revocations_append_only before update or delete on certification_revocations
  for each row execute function refuse_change();
create trigger certification_revocations_not_truncated before truncate on certification_revocations
  for each statement execute function refuse_change();

-- Beside the triggers: the role of this service, unless it is a superuser, may only read the log and add to it.
revoke update, delete, truncate on certification_log, certification_revocations from current_user;
