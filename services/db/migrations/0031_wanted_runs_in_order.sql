-- Imports of several accounts that end at once want runs of one another's accounts: all take the rows in one order.
drop function want_run(bigint, date, date);
-- `is_follower`: its run depends on another account's, which goes first.
create function want_run(the_account_id bigint, the_from date, the_to date, is_follower boolean) returns void language sql as $$
  insert into wanted_runs as known (account_id, organization_id, from_date, to_date, first_wanted_at)
    select account_id, organization_id, the_from, the_to,
      clock_timestamp() + case when is_follower then interval '1 second' else interval '0' end
    from statement_accounts where account_id = the_account_id
    on conflict (account_id) do update set from_date = least(known.from_date, excluded.from_date),
      to_date = greatest(known.to_date, excluded.to_date), last_wanted_at = clock_timestamp(), attempts = 0
$$;

create or replace function want_run_of_import() returns trigger language plpgsql as $$
declare
  has_payouts boolean;
  wanted record;
begin
  if new.from_date is null or new.to_date is null then
    return null;
  end if;
  has_payouts := new.status = 'withdrawn' or exists (
    select from statement_line_sources s join statement_lines l using (line_id)
    where s.import_id = new.import_id and (l.kind = 'payout' or l.payout_reference <> ''));
  for wanted in
    select new.account_id as account_id, false as is_follower
    union
    select r.account_id, true from rival_accounts(new.account_id) r
    union
    select b.account_id, true from statement_accounts a join statement_accounts b on b.organization_id = a.organization_id
      and b.mode = a.mode and b.account_id <> a.account_id
      and (a.filial_id is null or b.filial_id is null or b.filial_id = a.filial_id)
      where a.account_id = new.account_id and has_payouts
        and exists (select from statement_lines l where l.account_id = b.account_id and l.kind = 'bank_credit')
    order by account_id
  loop
    perform want_run(wanted.account_id, new.from_date, new.to_date, wanted.is_follower);
  end loop;
  return null;
end
$$;

-- Which accounts are a bank's is asked at the end of each import; those of providers have no such line among very many.
create index statement_lines_bank_credits on statement_lines (account_id) where kind = 'bank_credit';
