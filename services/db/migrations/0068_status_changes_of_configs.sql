-- For the deletion of a sandbox, which asks whether its provider config has got another status since then.
create index provider_events_by_config on provider_events (subject_id, at) where subject_kind = 'provider_config';
