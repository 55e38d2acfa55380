-- Whether a log lost messages that the audit copy did not have: then PostgreSQL does not know all that stations knew.

alter table audit_position
  -- How far the log is read, messages included that are no commits.
  add column read_through bigint not null default 0,
  -- How far it was read when it lost its end for the last time, and when that was recorded.
  add column lost_through bigint,
  add column lost_at timestamptz;

-- Of a log: until its stations are announced, they ask before an open order is collected.
alter table bus_marks add column uncopied boolean not null default false;
