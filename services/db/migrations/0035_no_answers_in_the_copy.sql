-- A repetition of a command is answered from its intent (0034_intent_records.sql): nothing reads these any more.
drop table station_commands;
alter table audit_heads drop column log_version;
