-- One row for each payment intent of the stations, for lists and counts over all of them. The audit copier writes it in the
-- transaction of its copy; what settled a payment is in `transactions`.
create table payments (
  intent_id bigint primary key,
  organization_id bigint not null,
  filial_id bigint not null,
  station_id bigint not null,
  sandbox boolean not null,
  -- Of the commit that it was last copied from; 0 for an attribution, which no station knows.
  version bigint not null,
  route text not null,
  status text not null,
  amount_minor bigint not null,
  currency text not null,
  order_id bigint not null,
  order_display_number bigint not null,
  -- Who began the collection; null for an attribution.
  cashier_id bigint,
  device_id bigint,
  -- The first characters of it.
  reference text not null default '',
  money_may_have_moved text not null default '',
  created_at timestamptz not null,
  ended_at timestamptz
);
-- The order of the list, for each filter that may name few of very many payments.
create index payments_of_organization on payments (organization_id, created_at, intent_id);
create index payments_of_sandbox on payments (organization_id, created_at, intent_id) where sandbox;
create index payments_of_filial on payments (organization_id, filial_id, created_at, intent_id);
create index payments_of_station on payments (organization_id, station_id, created_at, intent_id);
create index payments_of_cashier on payments (organization_id, cashier_id, created_at, intent_id);
create index payments_of_route on payments (organization_id, route, created_at, intent_id);
create index payments_of_status on payments (organization_id, status, created_at, intent_id);
create index payments_by_amount on payments (organization_id, currency, amount_minor);
create index payments_by_order_number on payments (organization_id, order_display_number);
-- An entry of an index is far shorter than a reference may be.
create index payments_by_reference on payments (organization_id, left(lower(reference), 100) text_pattern_ops)
  where reference <> '';
-- How many payments a reference's start names: without it the planner reads all of them to find the one of a whole reference.
create statistics payments_references on left(lower(reference), 100) from payments;
-- For its retention.
create index payments_by_time on payments using brin (created_at);

-- An operator has settled an order with a provider's payment: a payment of its own, under the transaction's intent id.
create function add_attributed_payment() returns trigger language plpgsql as $$
begin
  insert into payments (intent_id, organization_id, filial_id, station_id, sandbox, version, route, status, amount_minor,
                        currency, order_id, order_display_number, reference, created_at, ended_at)
  select t.intent_id, t.organization_id, s.filial_id, s.station_id, s.sandbox, 0, t.route, 'succeeded', t.amount_minor,
         t.currency, t.order_id, o.display_number, left(t.reference, 255), t.settled_at, t.settled_at
  from transactions t join orders o using (order_id) join stations s on s.station_id = t.station_id
  where t.transaction_id = new.transaction_id and t.organization_id = new.organization_id
  on conflict (intent_id) do nothing;
  return null;
end
$$;
create trigger issues_add_attributed_payment after update of status on issues for each row
  when (new.status = 'attributed' and old.status is distinct from new.status)
  execute function add_attributed_payment();

-- What the newest copied commit of a station has of its lease and its devices, for counts over all stations.
alter table audit_heads add column organization_id bigint;
alter table audit_heads add column leased_until timestamptz;
alter table audit_heads add column devices_online integer not null default 0;
alter table audit_heads add column devices_offline integer not null default 0;
create index audit_heads_of_organization on audit_heads (organization_id);
