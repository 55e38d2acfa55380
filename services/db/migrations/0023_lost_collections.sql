-- What a station's log knows of collections that may have moved money. When the log loses it, the relay gives it back.

alter table audit_heads
  -- As of the newest commit that is copied; null until the next one after a loss.
  add column collections jsonb,
  -- What losses took, oldest first, until the station has it again.
  add column lost_collections jsonb not null default '[]';
