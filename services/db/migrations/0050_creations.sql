-- What requests with an Idempotency-Key have made, so that a repetition makes nothing more. Written in the transaction that
-- makes it.
create table creations (
  -- From the person, the operation and the key.
  creation_id text primary key,
  request_digest text not null,
  -- Null until the transaction ends.
  made_id bigint,
  created_at timestamptz not null default now()
);
-- For its retention.
create index creations_by_age on creations (created_at);
