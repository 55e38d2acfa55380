-- One money pays once under every name that it was ever given, also the account that its provider has said it went to:
-- a third config, whose account that is, may tell of it rightly later.

-- Every name of a money, as one list: within its config; within the account that was registered, or else the one that the
-- config has now; and within the account that its provider has said. Accounts are compared as references are.
create function names_of_money(the_config_id bigint, the_account text, the_said_account text, the_name text)
returns text[] stable language sql as $$
  select array_agg(distinct name order by name)
    -- As a reference is compared.
    from (select substr(provider_money_name('money:' || the_said_account), 7) as account) as said, lateral (values
      ('provider:' || the_config_id || ':' || coalesce(provider_money_name(the_name), the_name)),
      (money_of_account(the_config_id, the_account, the_name)),
      (case when said.account <> '' then money_of_account(the_config_id, said.account, the_name) end)
    ) as known (name) where name is not null
$$;

-- An issue knows its money by all of them, and gets further ones as its provider names further accounts.
alter table provider_issues add column money_names text[];
update provider_issues i set money_names = names_of_money(i.config_id,
  (select p.account from provider_payments p where p.intent_id = i.intent_id),
  i.evidence #>> '{asserted,account}', i.money_key);
-- Where the config's account was changed since, the name of before stays one.
update provider_issues set money_names = money_names || account_money_key
  where account_money_key is not null and not money_names @> array[account_money_key];
alter table provider_issues alter column money_names set not null;
-- Without a pending list, which every search would have to read through.
create index provider_issues_by_money_name on provider_issues using gin (money_names) with (fastupdate = off);
drop index provider_issues_by_account_money;
drop index provider_issues_by_money;
alter table provider_issues drop column account_money_key;

-- The fence: the names of the money that has paid, each once. Only the payment seam writes it, with the transaction itself.
create table paid_money_names (
  name text primary key,
  transaction_id bigint not null
);
create trigger paid_money_names_append_only before update or delete on paid_money_names
  for each row execute function refuse_change();
create trigger paid_money_names_not_truncated before truncate on paid_money_names
  for each statement execute function refuse_change();

-- What has paid before. Where the same money has paid twice, the first payment has its name.
insert into paid_money_names (name, transaction_id)
  select name, min(transaction_id) from (
    select t.transaction_id, unnest(names_of_money(substring(t.money_key from '^provider:([0-9]{1,18}):')::bigint,
        p.account, null, regexp_replace(t.money_key, '^provider:[0-9]+:', ''))) as name
      from transactions t left join provider_payments p on p.intent_id = t.intent_id
      where t.money_key ~ '^provider:[0-9]{1,18}:'
    union select t.transaction_id, t.account_money_key from transactions t where t.account_money_key is not null
    union select t.transaction_id, t.money_key from transactions t where t.money_key is not null
    union select i.transaction_id, unnest(i.money_names) from provider_issues i
      where i.transaction_id is not null and i.status = 'attributed'
  ) as paid group by name;

drop index transactions_money_pays_once;
drop index transactions_account_money_pays_once;
-- Its name is in the table above. `money_key` stays as what the seam was asked with.
alter table transactions drop column account_money_key;

-- All names of the money that the seam is asked about: those of the payment that the intent has, and of every issue that
-- any of them leads to. Sorted.
create function names_of_settlement(the_intent_id bigint, the_money_key text) returns text[] stable language plpgsql as $$
declare
  the_config_id bigint;
  the_name text;
  names text[];
  more text[];
begin
  if the_money_key is null then
    return '{}';
  end if;
  if the_money_key !~ '^provider:[0-9]{1,18}:' then
    return array[the_money_key];
  end if;
  the_config_id := split_part(the_money_key, ':', 2)::bigint;
  the_name := regexp_replace(the_money_key, '^provider:[0-9]+:', '');
  select names_of_money(the_config_id, p.account, null, the_name) into names from provider_payments p
    where p.intent_id = the_intent_id and p.config_id = the_config_id;
  if not found then
    names := array['provider:' || the_config_id || ':' || coalesce(provider_money_name(the_name), the_name)];
    perform from provider_issues where money_names && names;
    if not found then
      return names_of_money(the_config_id, null, null, the_name);
    end if;
  end if;
  loop
    select array_agg(distinct name order by name) into more from (
      select unnest(names) union all
      select unnest(i.money_names) from provider_issues i where i.money_names && names) as known (name);
    exit when more = names;
    names := more;
  end loop;
  return names;
end
$$;

drop function settle_intent(bigint, text, bigint, bigint, text, bigint, text, text, bigint, text);
drop function settle_against_order(bigint, bigint, bigint, text, bigint, text, text, bigint, text);
drop function money_of_settlement(bigint, text);

-- The payment seam (I2), as in migrations 0014 and 0018, in one piece and with every name of the money. Locks come in this
-- order for all who ask: the order, then the money.
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
declare
  found_order orders;
  the_name text;
  names text[];
begin
  -- First, so that everything below sees what whoever asked before has committed.
  select * into found_order from orders where order_id = the_order_id and station_id = the_station_id for update;

  -- Perhaps it was settled before: a host that crashed, or lost the answer, asks again.
  select paid.transaction_id into settled_as from transactions as paid
    where paid.intent_id = the_intent_id and paid.order_id = the_order_id;
  if found and found_order.order_id is not null then
    return;
  end if;
  settled_as := null;
  select earlier.refusal into refusal from settlement_refusals as earlier
    where earlier.intent_id = the_intent_id and earlier.attestation_id = the_attestation_id;
  if found then
    return;
  end if;

  if found_order.order_id is null then
    refusal := 'order_unknown';
  else
    if the_money_key is not null then
      -- Whoever asks with the same money, by whichever of its names, waits here: their common part is the reference.
      the_name := regexp_replace(the_money_key, '^provider:[0-9]+:', '');
      perform pg_advisory_xact_lock(
        hashtextextended('settled money ' || coalesce(provider_money_name(the_name), the_name), 0));
      names := names_of_settlement(the_intent_id, the_money_key);
      perform from paid_money_names where name = any (names);
      if found then
        refusal := 'money_already_used';
      end if;
    end if;
    if refusal is null and found_order.status = 'open'
        and (found_order.total_minor, found_order.currency) = (the_amount_minor, the_currency) then
      insert into transactions
        (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference, attested_by, money_key)
      values (found_order.organization_id, the_order_id, the_station_id, the_intent_id, the_route, the_amount_minor,
        the_currency, the_reference, the_cashier_id, the_money_key)
      on conflict do nothing
      returning transaction_id into settled_as;
      if found then
        insert into paid_money_names (name, transaction_id) select name, settled_as from unnest(names) as name;
        update orders set status = 'paid', revision = revision + 1 where order_id = the_order_id;
        return;
      end if;
    end if;
    refusal := coalesce(refusal, case found_order.status
      when 'paid' then 'order_already_paid'
      when 'voided' then 'order_voided'
      else 'order_changed'
    end);
  end if;
  -- Two may ask at once for an order that is unknown, because there is nothing to lock.
  insert into settlement_refusals (intent_id, attestation_id, refusal)
    values (the_intent_id, the_attestation_id, settle_intent.refusal)
    on conflict (intent_id, attestation_id) do nothing;
end
$$;
