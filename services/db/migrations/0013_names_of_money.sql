-- Every match key of an asserted payment: within its config; within the account of the payment that it claims to pay, or
-- else the one that the config has now; and within the account that its provider has named. A third config, whose account
-- that is, may report it rightly later. Sorted.
create function names_of_money(
  the_config_id bigint, the_payment provider_payments, the_said_account text, the_name text
) returns text[] stable language plpgsql as $$
begin
  return (
    with config as (
      select organization_id, kind, mode,
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
