-- Lines are searched by any of their references. The reference comes first: how many lines a new account has is not known to the
-- planner, which then prefers to read all of them.
drop index statement_lines_by_provider_reference;
create index statement_lines_by_provider_reference on statement_lines (provider_reference, account_id) where provider_reference <> '';
drop index statement_lines_by_payout;
create index statement_lines_by_payout on statement_lines (payout_reference, account_id) where payout_reference <> '';
create index statement_lines_by_merchant_reference on statement_lines (merchant_reference, account_id) where merchant_reference <> '';
create index statement_lines_by_payment_reference on statement_lines (payment_reference, account_id) where payment_reference <> '';
