-- A person whom the owner has suspended has no session and gets none.
alter table users add column status text not null default 'active' check (status in ('active', 'suspended'));
