-- Attributions by two people: how much one person may attribute alone, and what one has proposed to another.

-- By currency. A currency without a row has the default (services/providers/attribution-limits.ts).
create table attribution_limits (
  organization_id bigint not null references organizations,
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  alone_up_to_minor bigint not null check (alone_up_to_minor >= 0),
  changed_by bigint not null,
  changed_by_name text not null,
  changed_at timestamptz not null default now(),
  reason text not null,
  primary key (organization_id, currency)
);

create table attribution_proposals (
  proposal_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  issue_id bigint not null references issues,
  -- Without a foreign key: its lock would make a settlement of the order wait.
  order_id bigint not null,
  -- What the person has seen: the order's amount, which is the money's, and the evidence.
  amount_minor bigint not null,
  currency text not null,
  evidence_hash bytea not null check (octet_length(evidence_hash) = 32),
  reason text not null,
  proposed_by bigint not null,
  proposed_by_name text not null,
  proposed_at timestamptz not null default now(),
  status text not null default 'waiting' check (status in ('waiting', 'confirmed', 'rejected', 'withdrawn', 'ended')),
  -- Null where it has ended without a person.
  decided_by bigint,
  decided_at timestamptz,
  decision_reason text,
  constraint attribution_proposals_decided_check check ((status = 'waiting') = (decided_at is null)),
  constraint attribution_proposals_two_people_check check (
    status not in ('confirmed', 'rejected') or (decided_by is not null and decided_by <> proposed_by))
);
create unique index attribution_proposals_one_waits on attribution_proposals (issue_id) where status = 'waiting';
create index attribution_proposals_by_issue on attribution_proposals (issue_id, proposal_id);

-- Why a proposal that waits holds no more, or null.
create function why_proposal_ends(p attribution_proposals, i issues) returns text language sql stable as $$
  select case
    when i.status not in ('open', 'assigned') then 'The issue is ' || i.status || '.'
    when i.evidence_hash <> p.evidence_hash or i.said_differently then 'The evidence of the issue has changed.'
    when o.status <> 'open' then 'The order is ' || o.status || '.'
    when (o.total_minor, o.currency) <> (p.amount_minor, p.currency) then 'The order has another amount now.'
  end
  from orders o where o.order_id = p.order_id
$$;

-- The proposal that a second person can decide, as the bus has it.
create function waiting_proposal(i issues) returns jsonb language sql stable as $$
  select jsonb_build_object('proposalId', p.proposal_id, 'orderId', p.order_id, 'reason', p.reason,
    'proposedBy', p.proposed_by, 'proposedByName', p.proposed_by_name,
    'proposedAtMs', floor(extract(epoch from p.proposed_at) * 1000))
  from attribution_proposals p
  where p.issue_id = i.issue_id and p.status = 'waiting' and why_proposal_ends(p, i) is null
$$;

alter table provider_events drop constraint provider_events_subject_kind_check;
alter table provider_events add constraint provider_events_subject_kind_check
  check (subject_kind in ('provider_config', 'provider_issue', 'issue', 'statement_line', 'organization')) not valid;
alter table provider_events validate constraint provider_events_subject_kind_check;
