-- A run writes its matches with their lines and payments in one transaction, and whoever removes a match removes both
-- (services/reconciliation/sql/match-removal.ts): keys that are checked row by row took as long as the rows. That of a line
-- stays, so that no line goes without its match being seen.
alter table statement_matches drop constraint statement_matches_account_id_fkey, drop constraint statement_matches_run_id_fkey;
alter table match_lines drop constraint match_lines_match_id_fkey;
alter table match_payments drop constraint match_payments_match_id_fkey;
