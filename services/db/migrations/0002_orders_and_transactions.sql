-- Orders and the payment seam (design §2.4, I2). Amounts are minor units: 1250 is EUR 12.50.

-- Each station numbers its own orders from one; a number that was drawn for an order that never came stays unused.
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
  version bigint not null default 1 check (version > 0),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  total_minor bigint not null check (total_minor >= 0),
  opened_by bigint not null,
  opened_at timestamptz not null default now(),
  unique (station_id, display_number),
  unique (organization_id, order_id),
  foreign key (organization_id, station_id) references stations (organization_id, station_id)
);
-- A cashier's list is that of one station, mostly of its open orders, newest first.
create index orders_by_status on orders (station_id, status, display_number);

create table order_lines (
  order_id bigint not null references orders,
  ordinal integer not null check (ordinal >= 0),
  name text not null,
  quantity integer not null check (quantity between 1 and 9999),
  unit_amount_minor bigint not null check (unit_amount_minor >= 0),
  primary key (order_id, ordinal)
);

-- The answer to each opening that came with an idempotency key, so that a repetition gets the same one (I6).
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

-- Intents live in the station log; their ids come from here, so that no two stations ever share one.
create sequence intent_ids as bigint;

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
  -- The device's own reference, or what the cashier typed; empty for cash.
  reference text not null,
  attested_by bigint not null,
  settled_at timestamptz not null default clock_timestamp(),
  foreign key (organization_id, order_id) references orders (organization_id, order_id)
);
create unique index transactions_one_sale_per_order on transactions (order_id) where kind = 'sale';

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % never change once written', tg_table_name using errcode = 'restrict_violation';
end
$$;
create trigger transactions_append_only before update or delete on transactions
  for each row execute function refuse_change();
create trigger transactions_not_truncated before truncate on transactions
  for each statement execute function refuse_change();
-- A paid or voided order is history as well. The condition is checked before the function is called.
create trigger orders_closed_for_good before update or delete on orders
  for each row when (old.status <> 'open') execute function refuse_change();

-- The payment seam: the only statement of this product that writes `transactions` (I2). It locks the order, looks, and
-- acts, in one round trip and one transaction. It is a function and not one statement with several CTEs because each
-- statement in it sees what was committed while it waited for the lock; a CTE would still see the moment before, and
-- tell the second of two equal requests that somebody else had paid.
--
-- Returns the transaction's id, or else why nothing was settled. Called again for the same intent it returns the same id.
create function settle_intent(
  in the_intent_id bigint,
  in the_station_id bigint,
  in the_order_id bigint,
  in the_route text,
  in the_amount_minor bigint,
  in the_currency text,
  in the_reference text,
  in the_cashier_id bigint,
  out settled_as bigint,
  out refusal text
) language plpgsql as $$
declare
  found_order orders;
  earlier transactions;
begin
  select * into found_order from orders where order_id = the_order_id and station_id = the_station_id for update;
  if not found then
    refusal := 'order_unknown';
    return;
  end if;

  if found_order.status = 'open' and (found_order.total_minor, found_order.currency) = (the_amount_minor, the_currency) then
    insert into transactions (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference, attested_by)
    values (found_order.organization_id, the_order_id, the_station_id, the_intent_id, the_route, the_amount_minor, the_currency, the_reference, the_cashier_id)
    on conflict (intent_id) do nothing
    returning transaction_id into settled_as;
    if found then
      update orders set status = 'paid', version = version + 1 where order_id = the_order_id;
      return;
    end if;
  end if;

  -- Not settled now. Perhaps it was before: a host that crashed, or lost the answer, asks again.
  select * into earlier from transactions where intent_id = the_intent_id and order_id = the_order_id;
  if found then
    settled_as := earlier.transaction_id;
    return;
  end if;
  refusal := case found_order.status
    when 'paid' then 'order_already_paid'
    when 'voided' then 'order_voided'
    else 'order_changed'
  end;
end
$$;
