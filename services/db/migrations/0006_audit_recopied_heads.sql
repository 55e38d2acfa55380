-- How far each station is copied of the log as it is now, so that a reader can wait for a part of one station only.
-- `version` is the newest that was ever copied, also of a log that was lost; `log_version` is of this log, and zero again
-- when the copier starts over.
alter table audit_heads add column log_version bigint not null default 0;
update audit_heads set log_version = version;
