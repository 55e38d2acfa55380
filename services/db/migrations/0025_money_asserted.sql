-- How often a provider has asserted money for a payment that is evidence: an answer to a question from before the newest of
-- them is older than that money, so that no end is kept by it.
alter table provider_payments add column assertions bigint not null default 0;
