-- Orders and what the payment seam records (design §2.4, I2). Amounts are minor units: 1250 is EUR 12.50.

-- Each station numbers its orders from one; a number that was drawn for an order that was not stored stays unused.
create table order_counters (
  station_id bigint primary key references stations,
  last_number bigint not null check (last_number > 0)
);

create table orders (
  order_id bigint generated always as identity primary key,
  organization_id bigint not null,
  station_id bigint not null,
  display_number bigint not null check (display_number > 0),
  status text not null default 'open' check (status in ('open', 'paid', 'voided')),
  -- Grows with each change; the station's actor ignores an older description.
  revision bigint not null default 1 check (revision > 0),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  total_minor bigint not null check (total_minor >= 0),
  opened_by bigint not null,
  opened_at timestamptz not null default now(),
  unique (station_id, display_number),
  unique (organization_id, order_id),
  foreign key (organization_id, station_id) references stations (organization_id, station_id)
);
-- A cashier lists a station's orders newest first, all of them or those of one status. The ids of one station grow with
-- its order numbers, because the counter is locked until the order is committed.
create index orders_by_station on orders (station_id, order_id);
create index orders_of_status on orders (station_id, status, order_id);
-- An owner lists the orders of all stations, newest first. Most orders are paid, so that list and the whole one are read
-- from the unique index of organization and order; the open and the voided ones are few among them.
create index orders_open_of_organization on orders (organization_id, order_id) where status = 'open';
create index orders_voided_of_organization on orders (organization_id, order_id) where status = 'voided';
-- A paid or voided order does not change. PostgreSQL checks the condition before it calls the function.
create trigger orders_closed_for_good before update or delete on orders
  for each row when (old.status <> 'open') execute function refuse_change();

create table order_lines (
  order_id bigint not null references orders,
  ordinal integer not null check (ordinal >= 0),
  name text not null,
  quantity integer not null check (quantity between 1 and 9999),
  unit_amount_minor bigint not null check (unit_amount_minor >= 0),
  primary key (order_id, ordinal)
);

-- The answer to each opening that had an idempotency key, so that a repetition gets the same answer (I6).
create table order_openings (
  user_id bigint not null,
  idempotency_key text not null,
  order_id bigint not null references orders,
  -- The order as it was opened: the answer, and what a repetition's body is compared with.
  opened jsonb not null,
  created_at timestamptz not null default now(),
  primary key (user_id, idempotency_key)
);
create index order_openings_by_age on order_openings (created_at);

-- Intents live in the station log; their ids come from here, so that no two stations share one.
create sequence intent_ids as bigint;

-- Intents beyond a station's bounded state: which one an idempotency key has created, and how those ended that the state
-- has dropped. Written in the step that every creation needs anyway (I6).
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

create table transactions (
  transaction_id bigint generated always as identity primary key,
  organization_id bigint not null,
  order_id bigint not null,
  station_id bigint not null,
  intent_id bigint not null unique,
  kind text not null default 'sale' check (kind = 'sale'),
  route text not null check (route in ('smart_pos', 'dynamic_qr', 'attested_terminal', 'cash')),
  amount_minor bigint not null check (amount_minor >= 0),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  -- The device's reference, or what the cashier typed; empty for cash.
  reference text not null,
  attested_by bigint not null,
  -- The key of the provider payment that paid (services/bus/messages/intents.ts); null where no provider's did.
  money_key text check (money_key <> ''),
  settled_at timestamptz not null default clock_timestamp(),
  foreign key (organization_id, order_id) references orders (organization_id, order_id)
);
create unique index transactions_one_sale_per_order on transactions (order_id) where kind = 'sale';
create trigger transactions_append_only before update or delete on transactions
  for each row execute function refuse_change();
create trigger transactions_not_truncated before truncate on transactions
  for each statement execute function refuse_change();

-- The fence against paying twice: every match key of a provider payment that has paid, each once. Only the payment seam
-- writes it, together with the transaction.
create table paid_money_names (
  name text primary key,
  transaction_id bigint not null
);
create trigger paid_money_names_append_only before update or delete on paid_money_names
  for each row execute function refuse_change();
create trigger paid_money_names_not_truncated before truncate on paid_money_names
  for each statement execute function refuse_change();

-- Which references have settled an order, per filial: a slip is paper and does not leave the restaurant. A reference that
-- has settled an order settles another one only by the cashier's confirmation, because it is mostly a slip that was typed
-- for the wrong order. Several orders may be paid with one payment, so it is a question and no rule. The payment seam
-- writes a row together with the transaction. The key is the reference in the form in which references are compared.
create table settled_references (
  filial_id bigint not null,
  reference_key text not null check (reference_key <> ''),
  transaction_id bigint not null unique,
  settled_at timestamptz not null default clock_timestamp(),
  primary key (filial_id, reference_key, transaction_id)
);
create trigger settled_references_append_only before update or delete on settled_references
  for each row execute function refuse_change();
create trigger settled_references_not_truncated before truncate on settled_references
  for each statement execute function refuse_change();

-- The fence of the payment seam: what an attestation was refused, it stays refused. A host that was cut off may ask late,
-- when the order is as it was again, or when the cashier has cancelled because of the refusal; without the fence its late
-- request would pay.
create table settlement_refusals (
  intent_id bigint not null,
  -- The command that attested, escaped as in a JSON string, because a command id may hold what a text cannot.
  attestation_id text not null,
  refusal text not null check (refusal in ('order_changed', 'order_already_paid', 'order_voided', 'order_unknown',
    'money_already_used', 'reference_already_used')),
  -- The transaction that has used the reference.
  used_by bigint,
  refused_at timestamptz not null default clock_timestamp(),
  primary key (intent_id, attestation_id),
  constraint settlement_refusals_used_by_check check ((refusal = 'reference_already_used') = (used_by is not null))
);
create trigger settlement_refusals_append_only before update or delete on settlement_refusals
  for each row execute function refuse_change();
create trigger settlement_refusals_not_truncated before truncate on settlement_refusals
  for each statement execute function refuse_change();
