-- The match key of an asserted payment within an account: all configs of that account give it this one key. Null where
-- the account or the provider's reference is unknown. This and the next functions are plpgsql where they could be plain
-- SQL, because plpgsql keeps plans and each callback calls them.
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
