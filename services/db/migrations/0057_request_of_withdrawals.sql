-- The request that stored the work, for the log lines of the process that carries it out; null where no request did.
alter table statement_imports add column withdrawal_request_id text;
