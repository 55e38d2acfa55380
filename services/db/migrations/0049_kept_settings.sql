-- A conformance run changes settings of a sandbox's devices. Its reset keeps them here, and the next reset restores them.
alter table sandboxes
  -- By `device_id`: `capabilities` and `handoff_target`. Null when the last reset did not keep them.
  add column kept_settings jsonb;
