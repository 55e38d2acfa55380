-- The account that a config's payments go to, as its adapter reads it from the settings.
create function provider_account(the_kind text, the_settings jsonb) returns text immutable language sql as $$
  select case the_kind
    when 'emvco_generic' then the_settings #>> '{merchant_account,merchant_id}'
    else the_settings ->> 'account'
  end
$$;
