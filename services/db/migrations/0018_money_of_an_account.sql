-- One money pays once, whichever config of its account tells of it; what was said of it is never forgotten.

-- Where the money of a config goes, as its adapter reads it from the settings.
create function provider_account(the_kind text, the_settings jsonb) returns text immutable language sql as $$
  select case the_kind
    when 'emvco_generic' then the_settings #>> '{merchant_account,merchant_id}'
    else the_settings ->> 'account'
  end
$$;

-- The name of a money (services/bus/messages/money-key.ts) as two programs agree on it: older ones have neither trimmed
-- nor composed the provider's reference. Null where the provider gave it none.
create function provider_money_name(the_name text) returns text immutable language sql as $$
  select case when the_name like 'money:%' then
    'money:' || nullif(btrim(normalize(substr(the_name, 7), NFC),
      E' \t\n\u000B\f\r\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF'), '')
    when the_name like 'money-sha256:%' then the_name
  end
$$;

-- The money within its account: two configs of one merchant account hear of the same money, and give it this one name.
-- Without an account given it is the one that the config has now. Null where there is nothing to know it by.
create function money_of_account(the_config_id bigint, the_account text, the_name text) returns text
stable language sql as $$
  select jsonb_build_array(organization_id, kind, mode, coalesce(the_account, provider_account(kind, settings)),
      provider_money_name(the_name))::text
    from provider_configs
    where config_id = the_config_id and coalesce(the_account, provider_account(kind, settings)) is not null
      and provider_money_name(the_name) is not null
$$;

-- Words that contradict each other are remembered beside the evidence, which is bounded.
alter table provider_issues add column account_money_key text;
alter table provider_issues add column said_differently boolean not null default false;
update provider_issues i set
  said_differently = coalesce(i.evidence -> 'further', '[]') @> '[{"same_amount": false}]',
  account_money_key = money_of_account(i.config_id,
    (select p.account from provider_payments p where p.intent_id = i.intent_id), i.money_key);
create index provider_issues_by_account_money on provider_issues (account_money_key);

-- After an attribution the same money may raise the same difficulty once more: another amount of it is news.
alter table provider_issues drop constraint provider_issues_config_id_kind_money_key_key;
create unique index provider_issues_one_each on provider_issues (config_id, kind, money_key) where status <> 'attributed';

-- The second name of the money that paid; both stand in the way of a second payment, so that a config whose account was
-- changed keeps what it has. Where the same money has paid twice, the first payment has it.
alter table transactions add column account_money_key text;
alter table transactions disable trigger transactions_append_only;
with parts as (
  select t.transaction_id, t.intent_id, substring(t.money_key from '^provider:([0-9]+):')::bigint as config_id,
      regexp_replace(t.money_key, '^provider:[0-9]+:', '') as name
    from transactions t where t.money_key ~ '^provider:[0-9]{1,18}:'
), named as (
  select parts.transaction_id, coalesce(
      (select money_of_account(parts.config_id, p.account, parts.name) from provider_payments p
        where p.intent_id = parts.intent_id and p.config_id = parts.config_id),
      (select min(i.account_money_key) from provider_issues i
        where i.config_id = parts.config_id and i.money_key = parts.name and i.transaction_id = parts.transaction_id),
      money_of_account(parts.config_id, null, parts.name)) as account_money_key
    from parts
), first as (
  select distinct on (account_money_key) transaction_id, account_money_key from named
    where account_money_key is not null order by account_money_key, transaction_id
)
update transactions t set account_money_key = first.account_money_key from first
  where first.transaction_id = t.transaction_id;
alter table transactions enable trigger transactions_append_only;
create unique index transactions_account_money_pays_once on transactions (account_money_key)
  where account_money_key is not null;

-- The account's name of the money that the seam is asked about: of the payment that the intent has, or of the issue that
-- is being attributed with it.
create function money_of_settlement(the_intent_id bigint, the_money_key text) returns text stable language plpgsql as $$
declare
  the_config_id bigint;
  the_name text;
  found_key text;
begin
  if the_money_key is null or the_money_key !~ '^provider:[0-9]{1,18}:' then
    return null;
  end if;
  the_config_id := split_part(the_money_key, ':', 2)::bigint;
  the_name := regexp_replace(the_money_key, '^provider:[0-9]+:', '');
  select money_of_account(the_config_id, p.account, the_name) into found_key from provider_payments p
    where p.intent_id = the_intent_id and p.config_id = the_config_id;
  if found then
    return found_key;
  end if;
  select i.account_money_key into found_key from provider_issues i
    where i.config_id = the_config_id and i.money_key = the_name
      and i.attribution ->> 'intentId' = the_intent_id::text;
  if found then
    return found_key;
  end if;
  return money_of_account(the_config_id, null, the_name);
end
$$;

-- As in migration 0014, and now with both names of the money.
create or replace function settle_against_order(
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
  the_account_money_key text := money_of_settlement(the_intent_id, the_money_key);
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
      (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference, attested_by, money_key,
        account_money_key)
    values (found_order.organization_id, the_order_id, the_station_id, the_intent_id, the_route, the_amount_minor,
      the_currency, the_reference, the_cashier_id, the_money_key, the_account_money_key)
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
  perform from transactions where money_key = the_money_key or account_money_key = the_account_money_key;
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

-- Only the provider's own word clears a doubt now; what an issue's end was about to clear stays in doubt.
update provider_tasks set done_at = now(), outcome = 'superseded'
  where kind = 'clear' and done_at is null and detail ? 'issueId';

-- Stations that an older program has not told of an open issue are told now; what they were told already says nothing new.
insert into provider_tasks as t (intent_id, kind, detail)
  select i.intent_id, 'differ', jsonb_build_object('issues', jsonb_agg(
      jsonb_build_object('issue', i.kind, 'issueId', i.issue_id, 'nth', i.issue_id::text) order by i.issue_id))
    from provider_issues i join provider_payments p on p.intent_id = i.intent_id
    where i.status = 'open' group by i.intent_id
  on conflict (intent_id, kind) do update set detail = excluded.detail, due_at = now(), attempts = t.attempts + 1,
    created_at = now(), done_at = null, outcome = null;

-- Other bodies of one event: so many are kept, the others are counted.
alter table provider_callbacks add column variants_not_kept integer not null default 0;
create index provider_callback_variants_by_time on provider_callback_variants using brin (received_at);
