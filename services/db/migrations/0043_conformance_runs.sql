-- Runs of the conformance suite that an owner has started at a sandbox. The newest of each organization are kept.

create table conformance_runs (
  run_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  sandbox_id bigint not null references sandboxes,
  -- The owner who started it, and the session that it acts with.
  user_id bigint not null references users,
  session_id bigint not null,
  status text not null default 'running'
    check (status in ('running', 'passed', 'failed', 'left_behind', 'could_not_run', 'ended', 'interrupted')),
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  -- The process that runs it renews this; a run whose process is gone is interrupted.
  leased_until timestamptz not null,
  end_asked_at timestamptz,
  -- What came of each check so far, in their order.
  checks jsonb not null default '[]',
  left_behind text[] not null default '{}',
  suite_version text,
  contract_sha256 text,
  -- Why it could not run or was interrupted, for a person.
  problem text,
  check ((status = 'running') = (ended_at is null))
);
create index conformance_runs_of_organization on conformance_runs (organization_id, run_id);
create unique index conformance_runs_running on conformance_runs (sandbox_id) where status = 'running';
