-- Money of statement accounts without a provider config, such as a terminal provider's or a bank's, can pay an order too: it has
-- match keys, by which the payment seam lets it pay once.

-- The match keys of a line: its account's, and those that a callback of the same provider account would have.
create function names_of_statement_money(the_account_id bigint, the_name text) returns text[] stable language sql as $$
  select array_agg(distinct name order by name) from (
    select 'statement:' || a.account_id || ':' || coalesce(provider_money_name(the_name), the_name) as name
      from statement_accounts a where a.account_id = the_account_id
    union all
    select money_name_of_account(a.organization_id, a.provider, a.mode, null, a.reference, the_name)
      from statement_accounts a where a.account_id = the_account_id
    union all
    select unnest(names_of_money(c.config_id, null, null, the_name))
      from statement_accounts a join provider_configs c on c.organization_id = a.organization_id and c.mode = a.mode
        and provider_account(c.kind, c.settings) = a.reference
      where a.account_id = the_account_id
  ) each where name is not null
$$;

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
  if the_money_key !~ '^(provider|statement):[0-9]{1,18}:' then
    return array[the_money_key];
  end if;
  the_name := regexp_replace(the_money_key, '^(provider|statement):[0-9]+:', '');
  if the_money_key like 'statement:%' then
    names := coalesce(names_of_statement_money(split_part(the_money_key, ':', 2)::bigint, the_name), array[the_money_key]);
  else
    the_config_id := split_part(the_money_key, ':', 2)::bigint;
    select names_of_money(the_config_id, p, null, the_name) into names from provider_payments p
      where p.intent_id = the_intent_id and p.config_id = the_config_id;
    if not found then
      names := array['provider:' || the_config_id || ':' || coalesce(provider_money_name(the_name), the_name)];
      perform from issues where money_names && names;
      if not found then
        return names_of_money(the_config_id, null, null, the_name);
      end if;
    end if;
  end if;
  loop
    select array_agg(distinct name order by name) into more from (
      select unnest(names) union all
      select unnest(i.money_names) from issues i where i.money_names && names) as known (name);
    exit when more = names;
    names := more;
  end loop;
  return names;
end
$$;

-- The seam passes the key of a statement's money as it is.
create or replace function lock_settled_money(the_name text) returns void language plpgsql as $$
declare
  name text := regexp_replace(the_name, '^statement:[0-9]{1,18}:', '');
begin
  perform pg_advisory_xact_lock(hashtextextended('settled money ' || coalesce(provider_money_name(name), name), 0));
end
$$;

update issues set money_names = coalesce(names_of_statement_money(statement_account_id, subject_key), '{}')
  where config_id is null and statement_account_id is not null and kind in ('unmatched_money', 'late_money')
    and provider_reference <> '' and money_names = '{}';

create unique index issues_statement_money_attributed_once on issues (account_key, subject_key)
  where config_id is null and money_names <> '{}' and (status = 'attributed' or attribution is not null);
