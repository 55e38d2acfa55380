-- There may be several logs: each copier makes the row of its log when it takes its hold for the first time.
delete from audit_position where sequence = 0;
