-- Intents beyond a station's bounded state: which one an idempotency key has created, and how those ended that the state
-- has dropped. Written in the step that every creation needs anyway, so that nothing else has to run for it (I6).
create table intent_records (
  intent_id bigint primary key,
  station_id bigint not null,
  -- The creation's command id, escaped as in a JSON string; null where the creation had no idempotency key.
  command_id text,
  order_id bigint,
  -- A PaymentIntent as JSON text. Null until the station's next creation, and for ever where none was created.
  ended text,
  created_at timestamptz not null default now()
);
create unique index intent_records_by_command on intent_records (station_id, command_id) where command_id is not null;
create index intent_records_by_time on intent_records using brin (created_at);
