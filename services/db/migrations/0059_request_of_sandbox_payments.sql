-- The request that caused the payment of the sandbox, for the log lines of later work; null where no request did.
alter table sandbox_provider_payments add column request_id text;
