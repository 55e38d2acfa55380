-- The request that stored the work, for the log lines of the process that carries it out; null where no request did.
alter table provider_tasks add column request_id text;
