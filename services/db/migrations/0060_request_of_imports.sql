-- The request that made the import wait, for the log lines of the process that carries it out; null where no request did.
alter table statement_imports add column request_id text;
