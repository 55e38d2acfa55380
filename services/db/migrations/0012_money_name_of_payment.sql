-- The match key, within the payment's account, of the asserted payment that it has accepted.
create function money_name_of_payment(the_payment provider_payments, the_name text) returns text
stable language plpgsql as $$
begin
  return (
    select money_name_of_account(organization_id, kind, mode, (the_payment).account_scheme, (the_payment).account, the_name)
      from provider_configs where config_id = (the_payment).config_id
  );
end
$$;
