-- The request that wrote the row, for the log lines of its delivery; null where no request did.
alter table outbox add column request_id text;
