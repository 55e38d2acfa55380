-- The provider's last word about a payment is that no money moved and none will. Its station hears it once no issue of the
-- intent is open; until then nobody may believe it, and it must not be forgotten. Null again when money is asserted since.
alter table provider_payments add column ended_at timestamptz;
update provider_payments p set ended_at = t.done_at from provider_tasks t
  where t.intent_id = p.intent_id and t.kind in ('fail', 'withdraw') and t.done_at is not null
    and (t.kind = 'fail' or t.outcome = 'cancelled') and p.paid_reference is null
    and not exists (select from provider_issues i where i.intent_id = p.intent_id and i.opened_at >= t.created_at);
