-- A delivery is kept from its end, which may be days after its event. Null: it has ended with its event, or before this migration.
alter table webhook_deliveries add column ended_at timestamptz;
