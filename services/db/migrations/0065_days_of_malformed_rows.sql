-- A row that could not be read may be money of any day of its file. Its issue is about all of them, so that no closing depends on
-- the file before a person has decided the issue.

create function issue_days(i issues, the_zone text) returns daterange stable language sql as $$
  select coalesce(
    case when i.kind = 'malformed_line' then (
      select daterange(f.from_date, f.to_date, '[]') from statement_imports f
      where f.import_id = (i.evidence #>> '{statement,facts,import}')::bigint and f.from_date <= f.to_date) end,
    (select daterange(day, day, '[]') from (select issue_day(i, the_zone) as day offset 0) it))
$$;

create or replace function issues_of_days(the_account_id bigint, the_from date, the_to date) returns setof issues stable language sql as $$
  select i from statement_accounts a join issues i
    on i.account_key = coalesce('provider:' || a.config_id, 'statement:' || a.account_id)
  where a.account_id = the_account_id and i.status <> 'ended' and i.superseded_by is null
    and issue_days(i, a.time_zone) && daterange(the_from, the_to, '[]')
$$;
