-- A proposal needs two people who may decide: one that is suspended after it was made ends it. A person who is not stored here is
-- no reason: only what is known to have changed ends a proposal.
create or replace function why_proposal_ends(p attribution_proposals, i issues) returns text language sql stable as $$
  select case
    when i.status not in ('open', 'assigned') then 'The issue is ' || i.status || '.'
    when i.evidence_hash <> p.evidence_hash or i.said_differently then 'The evidence of the issue has changed.'
    when o.status <> 'open' then 'The order is ' || o.status || '.'
    when (o.total_minor, o.currency) <> (p.amount_minor, p.currency) then 'The order has another amount now.'
    when exists (
      select from users u where u.organization_id = p.organization_id and u.user_id = p.proposed_by
        and (u.status <> 'active' or u.role <> 'reconciliation_operator'))
      then 'The person who has proposed it may not decide issues any more.'
  end
  from orders o where o.order_id = p.order_id
$$;
