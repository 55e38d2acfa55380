-- Counts up while a relay delivers, and is written on the bus after each step. A bus that has a much higher number has met a
-- newer state of this database: the database was restored from a backup.
alter table installation add column pulse bigint not null default 0;
