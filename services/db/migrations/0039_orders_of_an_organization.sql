-- An owner lists the orders of all stations, newest first. Most orders are paid, so that list and the whole one are read from
-- the unique index of organization and order; the open and the voided ones are few among them.
create index orders_open_of_organization on orders (organization_id, order_id) where status = 'open';
create index orders_voided_of_organization on orders (organization_id, order_id) where status = 'voided';
