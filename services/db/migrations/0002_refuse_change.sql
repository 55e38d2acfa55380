-- The trigger of rows that never change or go: transactions, refusals, audit logs.
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % never change once written', tg_table_name using errcode = 'restrict_violation';
end
$$;
