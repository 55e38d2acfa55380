-- All match keys of the asserted payment that the seam is asked about: those of the payment that the intent has, and of
-- every issue that any of them leads to. Sorted.
create function names_of_settlement(the_intent_id bigint, the_money_key text) returns text[]
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
