-- The audit copier reads the records of one station after an outage.
create index intent_records_by_station on intent_records (station_id, created_at);
