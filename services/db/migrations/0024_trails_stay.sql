-- Who did what and why is what an owner believes when people disagree: no row of a trail changes, goes, or goes with all others.
create trigger registry_events_append_only before update or delete on registry_events
  for each row execute function refuse_change();
create trigger registry_events_not_truncated before truncate on registry_events
  for each statement execute function refuse_change();
create trigger provider_events_not_truncated before truncate on provider_events
  for each statement execute function refuse_change();
create trigger robotics_trail_not_truncated before truncate on robotics_trail
  for each statement execute function refuse_change();
