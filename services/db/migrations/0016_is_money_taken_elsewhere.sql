-- Whether the seam would refuse an asserted payment for the payment of this reference: it was accepted for another
-- payment, has paid another order, or was closed by a person, at whichever config of its account.
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
