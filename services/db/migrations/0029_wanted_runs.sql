-- What people decide about matches is in the audit log; and an import wants runs of the accounts that it changes things for.
alter table provider_events drop constraint provider_events_subject_kind_check;
alter table provider_events add constraint provider_events_subject_kind_check
  check (subject_kind in ('provider_config', 'provider_issue', 'issue', 'statement_line'));

-- In the transaction that ends or withdraws the import, so that no import stays without its run. Other accounts follow: those
-- that may show the same payments at terminals, and for payouts the banks, where they arrive.
create or replace function want_run_of_import() returns trigger language plpgsql as $$
declare
  has_payouts boolean;
begin
  if new.from_date is null or new.to_date is null then
    return null;
  end if;
  perform want_run(new.account_id, new.from_date, new.to_date);
  has_payouts := new.status = 'withdrawn' or exists (
    select from statement_line_sources s join statement_lines l using (line_id)
    where s.import_id = new.import_id and (l.kind = 'payout' or l.payout_reference <> ''));
  perform want_run(account_id, new.from_date, new.to_date) from (
    select r.account_id from rival_accounts(new.account_id) r
    union
    select b.account_id from statement_accounts a join statement_accounts b on b.organization_id = a.organization_id
      and b.mode = a.mode and b.account_id <> a.account_id
      and (a.filial_id is null or b.filial_id is null or b.filial_id = a.filial_id)
      where a.account_id = new.account_id and has_payouts
        and exists (select from statement_lines l where l.account_id = b.account_id and l.kind = 'bank_credit')
    order by account_id
  ) others;
  return null;
end
$$;
