-- The lines of a file are written while it is read, by COPY, in the one transaction that ends its import: nothing is staged.
drop table statement_staging;

-- The keys of lines and of their sources are not checked row by row: the transaction of an import (import-work.ts) has locked its
-- account and its import, writes both tables together, and is the only one that does; no account or import is ever deleted.
alter table statement_lines drop constraint statement_lines_organization_id_account_id_fkey;
alter table statement_line_sources drop constraint statement_line_sources_import_id_fkey,
  drop constraint statement_line_sources_line_id_fkey;

-- Whether the file has payouts, which arrive at a bank: known when it has been read.
alter table statement_imports add column has_payouts boolean not null default true;

create or replace function want_run_of_import() returns trigger language plpgsql as $$
declare
  wanted record;
begin
  if new.from_date is null or new.to_date is null then
    return null;
  end if;
  for wanted in
    select new.account_id as account_id, false as is_follower
    union
    select r.account_id, true from rival_accounts(new.account_id) r
    union
    select b.account_id, true from statement_accounts a join statement_accounts b on b.organization_id = a.organization_id
      and b.mode = a.mode and b.account_id <> a.account_id
      and (a.filial_id is null or b.filial_id is null or b.filial_id = a.filial_id)
      where a.account_id = new.account_id and new.has_payouts
        and exists (select from statement_lines l where l.account_id = b.account_id and l.kind = 'bank_credit')
    order by account_id
  loop
    perform want_run(wanted.account_id, new.from_date, new.to_date, wanted.is_follower);
  end loop;
  return null;
end
$$;
