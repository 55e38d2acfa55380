-- A station's orders are listed newest first from an order's id downwards, all of them or those of one status. Ids of one
-- station grow with its order numbers, because the counter is held until the order is committed.
create index orders_by_station on orders (station_id, order_id);
create index orders_of_status on orders (station_id, status, order_id);
drop index orders_by_status;

-- Devices are listed by id, of an organization or of a station; of one status too, so that those in use need not be
-- looked for among all that were ever revoked.
create index devices_of_status on devices (organization_id, status, device_id);
