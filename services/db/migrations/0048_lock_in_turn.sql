-- Locks every key of the class until the transaction ends, or none of them: false when that takes longer than a moment. The
-- caller asks again. So a process that hangs leaves the queue of those that wait, and never gets a lock that it would keep.
create function lock_in_turn(the_class integer, the_keys integer[]) returns boolean
language plpgsql set lock_timeout = '250ms' as $$
begin
  perform pg_advisory_xact_lock(the_class, key) from (select distinct unnest(the_keys) as key order by 1) keys;
  return true;
exception when lock_not_available then
  return false;
end;
$$;
