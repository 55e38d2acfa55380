-- One name for one thing. What grows with each change of a described thing is its revision, of an order as of a station
-- and a device; a version is a commit of the log.
alter table orders rename column version to revision;
update order_openings set opened = (opened - 'version') || jsonb_build_object('revision', opened -> 'version')
  where opened ? 'version';

-- The inner half of the payment seam names the column. Its text stays the one of migration 0002, with the new name, so
-- that there still is one statement only that writes transactions (I2).
do $$
declare
  was text := pg_get_functiondef('settle_against_order'::regproc);
  now_is text := replace(was, 'version = version + 1', 'revision = revision + 1');
begin
  if now_is = was then
    raise exception 'settle_against_order is not the function that this migration knows';
  end if;
  execute now_is;
end
$$;

-- The trail of the registry names who acted as the trails of the stations do: a person by the role, and whoever operates
-- the installation by the registry that acts for them.
alter table registry_events drop constraint registry_events_actor_kind_check;
update registry_events e set actor_kind = coalesce((select u.role from users u where u.user_id = e.actor_id), 'owner')
  where actor_kind = 'user';
update registry_events set actor_kind = 'registry' where actor_kind = 'operator';
alter table registry_events add constraint registry_events_actor_kind_check
  check (actor_kind in ('owner', 'cashier', 'reconciliation_operator', 'device', 'registry'));
