-- Requests that one process has begun and no other may begin, by the inbox in which their callers wait. Rows are needed
-- for seconds, and a crash of PostgreSQL takes longer than any caller waits: so they are not written to the log.
create unlogged table request_claims (
  request_id text primary key,
  claimed_at timestamptz not null default now()
);
create index request_claims_claimed_at on request_claims (claimed_at);
