-- The request that caused the delivery, for the log lines of later work; null where no request did.
alter table webhook_deliveries add column request_id text;
