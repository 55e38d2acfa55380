-- How often an import was begun: one that fails each time is refused in the end, and does not keep its service busy.
alter table statement_imports add column attempts integer not null default 0;
create index statement_imports_files on statement_imports (object_name) where object_name is not null;
