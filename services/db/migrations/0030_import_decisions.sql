-- What operators decide about imports. A withdrawal is stored first and carried out then, because a large file takes minutes; a
-- process that ends in between leaves it to the next one.
alter table statement_imports
  drop constraint statement_imports_status_check,
  drop constraint statement_imports_format_check,
  drop constraint statement_imports_withdrawal_check,
  add constraint statement_imports_status_check check (status in ('needs_format', 'waiting', 'importing', 'held', 'imported',
    'refused', 'withdrawing', 'withdrawn')),
  add constraint statement_imports_format_check check (status in ('needs_format', 'refused', 'withdrawing', 'withdrawn')
    or (format is not null and format_version is not null and encoding is not null)),
  add constraint statement_imports_withdrawal_check check ((status in ('withdrawing', 'withdrawn')) = (withdrawn_by is not null)
    and (withdrawn_by is null) = (withdrawn_at is null) and (withdrawn_by is null) = (withdrawal_reason is null));
create index statement_imports_withdrawing on statement_imports (import_id) where status = 'withdrawing';

-- Tests of mappings: a whole file read without storing a line.
create table mapping_tests (
  test_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  import_id bigint not null references statement_imports,
  -- Null for a definition that is not stored yet.
  mapping_id bigint references statement_mappings,
  status text not null default 'running' check (status in ('running', 'done', 'refused', 'failed')),
  -- Why the file is refused, or the test has failed.
  status_code text,
  status_detail text,
  read_bytes bigint not null default 0,
  lines bigint not null default 0,
  malformed bigint not null default 0,
  skipped bigint not null default 0,
  -- By currency, and by kind within it: lines, amounts and fees.
  totals jsonb not null default '[]',
  from_date date,
  to_date date,
  -- The first ones.
  malformed_rows jsonb not null default '[]',
  started_by bigint not null,
  started_at timestamptz not null default now(),
  -- When its process has last written how far it is.
  seen_at timestamptz not null default now(),
  ended_at timestamptz,
  constraint mapping_tests_ended_check check ((status = 'running') = (ended_at is null))
);
create index mapping_tests_by_age on mapping_tests (started_at);
