-- The intent has ended before its payment was asked for: the wish is written down, so that no provider is asked any more.
create table provider_withdrawals (
  intent_id bigint primary key,
  asked_at timestamptz not null default now()
);
create index provider_withdrawals_by_age on provider_withdrawals (asked_at);
