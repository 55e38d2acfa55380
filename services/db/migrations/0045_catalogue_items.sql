-- What an organization sells: names and prices that a till offers. An order's line has a name and a price of its own, so
-- nothing refers to an item, and a removed one is deleted.
create table catalogue_items (
  item_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  -- Null: every filial sells it.
  filial_id bigint,
  name text not null,
  -- A heading on the till; empty for none.
  category text not null default '',
  unit_amount_minor bigint not null check (unit_amount_minor >= 0),
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now(),
  foreign key (organization_id, filial_id) references filials (organization_id, filial_id)
);
create index catalogue_items_of_organization on catalogue_items (organization_id, item_id);

alter table registry_events drop constraint registry_events_subject_kind_check;
alter table registry_events add constraint registry_events_subject_kind_check
  check (subject_kind in ('platform', 'organization', 'filial', 'station', 'device', 'enrollment_code', 'user', 'session',
    'provider_config', 'catalogue_item')) not valid;
alter table registry_events validate constraint registry_events_subject_kind_check;

-- The lines as they were asked for, with the ids of items: a repetition is compared with them. Null where they are the
-- order's own lines.
alter table order_openings add column asked_lines jsonb;
