-- Several station logs: whatever is known of a place in a log also says of which one.
alter table outbox add column stream text;
update audit_position set stream = 'STATION_LOG_0' where stream = 'STATION_LOG';
delete from bus_marks where stream = 'STATION_LOG';
