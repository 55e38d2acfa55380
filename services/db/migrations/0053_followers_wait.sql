-- Of many accounts without a filial, each import starts runs of all the others. Those wait until the imports are over, and come
-- after the runs that a person waits for.
alter table wanted_runs add column is_follower boolean not null default false;

create or replace function want_run(the_account_id bigint, the_from date, the_to date, is_follower boolean) returns void
language sql as $$
  insert into wanted_runs as known (account_id, organization_id, from_date, to_date, is_follower)
    select account_id, organization_id, the_from, the_to, want_run.is_follower
    from statement_accounts where account_id = the_account_id
    on conflict (account_id) do update set from_date = least(known.from_date, excluded.from_date),
      to_date = greatest(known.to_date, excluded.to_date), last_wanted_at = clock_timestamp(), attempts = 0,
      is_follower = known.is_follower and excluded.is_follower,
      first_wanted_at = case when known.is_follower and not excluded.is_follower then excluded.first_wanted_at
        else known.first_wanted_at end
$$;
