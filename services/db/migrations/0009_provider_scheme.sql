-- The scheme that issues the account numbers of a config: two schemes may issue the same number. Null where the kind of
-- provider is the scheme.
create function provider_scheme(the_kind text, the_settings jsonb) returns text immutable language sql as $$
  select case the_kind when 'emvco_generic' then lower(the_settings #>> '{merchant_account,guid}') end
$$;
