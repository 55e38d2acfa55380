-- Which relay delivers, and until when, by this server's clock: one row. The relay that delivers renews it several times a
-- second; one whose process, machine or network is stalled lets it lapse, and another takes it with the next epoch. What
-- only one relay may write is written together with a check of the epoch.
create table relay_lease (
  is_only boolean primary key default true check (is_only),
  epoch bigint not null,
  -- Host name and process id, for operators.
  holder text not null,
  lapses_at timestamptz not null
)
-- It is updated for ever: updates stay in its page, and dead rows go as pages are read.
with (fillfactor = 20, autovacuum_vacuum_threshold = 1000);
insert into relay_lease (epoch, holder, lapses_at) values (0, '', '-infinity');
