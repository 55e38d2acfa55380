-- All who decide about the same asserted payment, by whichever of its keys, wait here until the transaction ends: the
-- common part of its keys is the reference.
create function lock_settled_money(the_name text) returns void volatile language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('settled money ' || coalesce(provider_money_name(the_name), the_name), 0));
end
$$;
