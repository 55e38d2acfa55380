-- Two schemes may give out the same merchant id: an account is known by both. And two ways are never open to one money,
-- whichever config of its account tells of it: a payment that has taken it, and a person's decision about it.

-- Who gives out the account numbers of a config; null where the kind of provider is that already.
create function provider_scheme(the_kind text, the_settings jsonb) returns text immutable language sql as $$
  select case the_kind when 'emvco_generic' then lower(the_settings #>> '{merchant_account,guid}') end
$$;

-- What each config had before each of its changes, by index: both payments and trails are long. The first change after a moment,
-- by its number, is the first by the newest time so far, also where two were begun in another order.
create temporary table scheme_changes on commit drop as
  select c.config_id, e.event_id, provider_scheme(c.kind, e.data #> '{settings,from}') as scheme_before,
      max(e.at) over (partition by c.config_id order by e.event_id) as latest_at
    from provider_events e join provider_configs c on c.config_id = e.subject_id
    where e.subject_kind = 'provider_config' and c.kind = 'emvco_generic' and e.data #> '{settings,from}' is not null;
create index on scheme_changes (config_id, latest_at, event_id);
analyze scheme_changes;

-- As it was when the payment was asked for.
alter table provider_payments add column account_scheme text;
update provider_payments p set account_scheme = case
    -- What the config had before its first change since.
    when first_since.event_id is not null then first_since.scheme_before
    else provider_scheme(c.kind, c.settings)
  end
  from provider_payments asked join provider_configs c using (config_id)
    left join lateral (
      select e.event_id, e.scheme_before from scheme_changes e
        where e.config_id = asked.config_id and e.latest_at > asked.created_at
        order by e.latest_at, e.event_id limit 1
    ) first_since on true
  where p.intent_id = asked.intent_id and c.kind = 'emvco_generic';

-- The money within an account: all configs of that account give it this one name. Null where there is nothing to know it by.
-- These functions are plpgsql where they could be plain SQL, because its plans are kept: each callback calls them.
create function money_name_of_account(
  the_organization_id bigint, the_kind text, the_mode text, the_scheme text, the_account text, the_name text
) returns text stable language plpgsql as $$
declare
  money_name text := provider_money_name(the_name);
begin
  if the_account is null or money_name is null then
    return null;
  end if;
  return jsonb_build_array(the_organization_id, the_kind, the_mode,
    case when the_scheme is null then to_jsonb(the_account) else jsonb_build_array(the_scheme, the_account) end,
    money_name)::text;
end
$$;

drop function names_of_money(bigint, text, text, text);
drop function money_of_account(bigint, text, text);

-- Every name of a money, as in migration 0020: within its config; within the account of the payment that it is said to
-- pay, or else the one that the config has now; and within the account that its provider has said.
create function names_of_money(
  the_config_id bigint, the_payment provider_payments, the_said_account text, the_name text
) returns text[] stable language plpgsql as $$
begin
  return (
    with config as (
      select organization_id, kind, mode,
        -- A payment that an older program has registered does not say its own.
        coalesce((the_payment).account_scheme, provider_scheme(kind, settings)) as scheme,
        coalesce((the_payment).account, provider_account(kind, settings)) as account
      from provider_configs where config_id = the_config_id
    )
    select array_agg(distinct name order by name) from (
      select 'provider:' || the_config_id || ':' || coalesce(provider_money_name(the_name), the_name)
      union all
      select money_name_of_account(organization_id, kind, mode, scheme, each.account, the_name)
        -- As a reference is compared.
        from config, lateral (values (config.account), (nullif(substr(provider_money_name('money:' || the_said_account), 7), '')))
          as each (account)
    ) as known (name) where name is not null
  );
end
$$;

-- The money that a payment has taken, by its name within the account.
create function money_name_of_payment(the_payment provider_payments, the_name text) returns text
stable language plpgsql as $$
begin
  return (
    select money_name_of_account(c.organization_id, c.kind, c.mode,
        coalesce((the_payment).account_scheme, provider_scheme(c.kind, c.settings)), (the_payment).account, the_name)
      from provider_configs c where c.config_id = (the_payment).config_id
  );
end
$$;

alter table provider_payments add column paid_money_name text;
update provider_payments p set paid_money_name = money_name_of_payment(p, 'money:' || p.paid_reference)
  where p.paid_reference is not null;
create index provider_payments_by_paid_money on provider_payments (paid_money_name) where paid_money_name is not null;

-- What names of before become: those of the scheme that the config has, and of each that it had.
create temporary table scheme_of_config on commit drop as
  select config_id, provider_scheme(kind, settings) as scheme from provider_configs where kind = 'emvco_generic'
  union
  select config_id, scheme_before from scheme_changes;
delete from scheme_of_config where scheme is null;
create index on scheme_of_config (config_id);
analyze scheme_of_config;

create function pg_temp.names_with_schemes(the_config_id bigint, the_name text) returns setof text
stable language sql as $$
  select jsonb_set(known.name, '{3}', jsonb_build_array(s.scheme, known.name -> 3))::text
    from (select case when the_name ~ '^\[\d+, "emvco_generic", "(test|live)", "' then the_name::jsonb end as name) as known
      join scheme_of_config s on s.config_id = the_config_id
    where known.name is not null
$$;

-- What has paid keeps its names of before as well; nothing asks for them any more.
insert into paid_money_names (name, transaction_id)
  select name, min(transaction_id) from (
    select t.transaction_id, pg_temp.names_with_schemes(substring(t.money_key from '^provider:([0-9]{1,18}):')::bigint, n.name)
      from paid_money_names n join transactions t using (transaction_id) where t.money_key ~ '^provider:[0-9]{1,18}:'
    union all
    -- Also the second one of two schemes, which the first has kept from the name that they had in common.
    select t.transaction_id, unnest(names_of_money(p.config_id, p, null, regexp_replace(t.money_key, '^provider:[0-9]+:', '')))
      from transactions t join provider_payments p on p.intent_id = t.intent_id
      where t.money_key ~ ('^provider:' || p.config_id || ':')
  ) as paid (transaction_id, name) group by name
  on conflict (name) do nothing;

update provider_issues i set money_names = array(
    select name from unnest(i.money_names) as name
      where not exists (select from pg_temp.names_with_schemes(i.config_id, name))
    union
    select pg_temp.names_with_schemes(i.config_id, name) from unnest(i.money_names) as name)
  where i.config_id in (select config_id from scheme_of_config);

-- As in migration 0020.
create or replace function names_of_settlement(the_intent_id bigint, the_money_key text) returns text[]
stable language plpgsql as $$
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
  select names_of_money(the_config_id, p, null, the_name) into names from provider_payments p
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

-- Whether the seam would refuse a money for the payment of this reference: it was taken for another payment, has paid another
-- order, or was closed by a person, at whichever config of its account.
create function is_money_taken_elsewhere(the_config_id bigint, the_reference text, the_money_key text) returns boolean
stable language plpgsql set enable_seqscan = off as $$
declare
  own_intent_id bigint;
  names text[];
begin
  select intent_id into own_intent_id from provider_payments
    where config_id = the_config_id and reference = the_reference;
  if not found then
    return false;
  end if;
  names := names_of_settlement(own_intent_id, the_money_key);
  return exists (select from provider_payments where paid_money_name = any (names) and intent_id <> own_intent_id)
    or exists (
      select from paid_money_names n join transactions t using (transaction_id)
        where n.name = any (names) and t.intent_id <> own_intent_id)
    or exists (
      select from provider_issues where money_names && names and status = 'closed' and transaction_id is null);
end
$$;

-- Whoever decides about the same money, by whichever of its names, waits here: their common part is the reference.
create function lock_settled_money(the_name text) returns void volatile language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('settled money ' || coalesce(provider_money_name(the_name), the_name), 0));
end
$$;

-- The payment seam, as in migration 0020, and now money of which a person has said that it was dealt with outside pays
-- nothing any more.
create or replace function settle_intent(
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
)
-- Plans are kept from when the tables were small; they must not read whole tables when these have grown.
language plpgsql set enable_seqscan = off as $$
declare
  found_order orders;
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
      perform lock_settled_money(regexp_replace(the_money_key, '^provider:[0-9]+:', ''));
      names := names_of_settlement(the_intent_id, the_money_key);
      perform from paid_money_names where name = any (names)
        union all select from provider_issues where money_names && names and status = 'closed' and transaction_id is null;
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
