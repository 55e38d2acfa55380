-- The fence by money: what a provider's money pays, it pays once, whatever it is said to be of and whoever asks.

-- The money that paid, by the name that all who ask the seam give it (services/bus/messages/money-key.ts); null where no
-- provider's money paid.
alter table transactions add column money_key text check (money_key <> '');

-- What was paid before there was a name for it. Where the same money has paid twice, the first payment has it.
alter table transactions disable trigger transactions_append_only;
with paid as (
  select t.transaction_id, 'provider:' || p.config_id || ':money:' || t.reference as money_key
    from transactions t join provider_payments p on p.intent_id = t.intent_id and p.paid_reference = t.reference
    where t.reference <> ''
  union
  select i.transaction_id, 'provider:' || i.config_id || ':' || i.money_key
    from provider_issues i where i.status = 'attributed' and i.transaction_id is not null
), first as (
  select distinct on (money_key) transaction_id, money_key from paid order by money_key, transaction_id
)
update transactions t set money_key = first.money_key from first where first.transaction_id = t.transaction_id;
alter table transactions enable trigger transactions_append_only;
create unique index transactions_money_pays_once on transactions (money_key) where money_key is not null;

alter table settlement_refusals drop constraint settlement_refusals_refusal_check;
alter table settlement_refusals add constraint settlement_refusals_refusal_check
  check (refusal in ('order_changed', 'order_already_paid', 'order_voided', 'order_unknown', 'money_already_used'));

drop function settle_intent(bigint, text, bigint, bigint, text, bigint, text, text, bigint);
drop function settle_against_order(bigint, bigint, bigint, text, bigint, text, text, bigint);

-- The inner half of the seam, as in migration 0002, and now with the money: it knows orders and transactions, and nothing
-- of attestations. Money that has paid another intent pays nothing, whatever the order is; that is said before anything
-- about the order, because it is true of every order.
create function settle_against_order(
  in the_intent_id bigint,
  in the_station_id bigint,
  in the_order_id bigint,
  in the_route text,
  in the_amount_minor bigint,
  in the_currency text,
  in the_reference text,
  in the_cashier_id bigint,
  in the_money_key text,
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
    -- Whichever of the rules about one row each stands against it: the intent has paid, or the money has. It waits for
    -- whoever is just writing such a row.
    insert into transactions
      (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference, attested_by, money_key)
    values (found_order.organization_id, the_order_id, the_station_id, the_intent_id, the_route, the_amount_minor,
      the_currency, the_reference, the_cashier_id, the_money_key)
    on conflict do nothing
    returning transaction_id into settled_as;
    if found then
      update orders set status = 'paid', revision = revision + 1 where order_id = the_order_id;
      return;
    end if;
  end if;

  -- Not settled now. Perhaps it was before: a host that crashed, or lost the answer, asks again.
  select * into earlier from transactions where intent_id = the_intent_id and order_id = the_order_id;
  if found then
    settled_as := earlier.transaction_id;
    return;
  end if;
  perform from transactions where money_key = the_money_key;
  if found then
    refusal := 'money_already_used';
    return;
  end if;
  refusal := case found_order.status
    when 'paid' then 'order_already_paid'
    when 'voided' then 'order_voided'
    else 'order_changed'
  end;
end
$$;

-- The payment seam, as in migration 0005, and now with the money.
create function settle_intent(
  in the_intent_id bigint,
  in the_attestation_id text,
  in the_station_id bigint,
  in the_order_id bigint,
  in the_route text,
  in the_amount_minor bigint,
  in the_currency text,
  in the_reference text,
  in the_cashier_id bigint,
  in the_money_key text default null,
  out settled_as bigint,
  out refusal text
) language plpgsql as $$
begin
  -- First, so that everything below sees what whoever asked before has committed.
  perform from orders where order_id = the_order_id and station_id = the_station_id for update;

  select earlier.refusal into refusal from settlement_refusals as earlier
    where earlier.intent_id = the_intent_id and earlier.attestation_id = the_attestation_id;
  if found then
    select paid.transaction_id into settled_as from transactions as paid
      where paid.intent_id = the_intent_id and paid.order_id = the_order_id;
    if found then
      refusal := null;
    end if;
    return;
  end if;

  select outcome.settled_as, outcome.refusal into settled_as, refusal from settle_against_order(
    the_intent_id, the_station_id, the_order_id, the_route, the_amount_minor, the_currency, the_reference,
    the_cashier_id, the_money_key
  ) as outcome;
  if refusal is not null then
    -- Two may ask at once for an order that is unknown, because there is nothing to lock.
    insert into settlement_refusals (intent_id, attestation_id, refusal)
      values (the_intent_id, the_attestation_id, settle_intent.refusal)
      on conflict (intent_id, attestation_id) do nothing;
  end if;
end
$$;

-- What is known of a money, whatever its issues are called.
create index provider_issues_by_money on provider_issues (config_id, money_key);
-- Whether an intent has an open issue decides whether its station may hear that no money moved.
create index provider_issues_open_by_intent on provider_issues (intent_id) where status = 'open';

-- The station hears of each issue that names one of its intents.
alter table provider_tasks drop constraint provider_tasks_kind_check;
alter table provider_tasks add constraint provider_tasks_kind_check
  check (kind in ('confirm', 'fail', 'clear', 'differ', 'poll', 'withdraw'));

-- The same event id with another body: kept beside the first, whose answer it gets.
create table provider_callback_variants (
  callback_id bigint not null references provider_callbacks on delete cascade,
  body_hash bytea not null check (octet_length(body_hash) = 32),
  body bytea not null,
  outcome text not null,
  received_at timestamptz not null default clock_timestamp(),
  primary key (callback_id, body_hash)
);
