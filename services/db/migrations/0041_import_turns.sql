-- Imports are taken in turns of the organizations: of those with as many under way, the one that was served the longest ago is next.
alter table statement_imports add column taken_at timestamptz;
drop index statement_imports_waiting;
create index statement_imports_waiting on statement_imports (organization_id, import_id) where status in ('waiting', 'importing');
create index statement_imports_by_turn on statement_imports (organization_id, taken_at) where taken_at is not null;
