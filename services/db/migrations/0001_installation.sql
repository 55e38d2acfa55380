-- Which installation this database belongs to: one row, made once. A dump carries it to wherever it is restored.
create table installation (
  is_only boolean primary key default true check (is_only),
  id uuid not null default gen_random_uuid(),
  created_at timestamptz not null default clock_timestamp()
);
insert into installation default values;
