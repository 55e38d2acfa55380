-- Robots that carry things: the consumers (fleets) that owners have let in, what was offered to them, and whether robotics
-- is paused at a filial. Serving tasks are stored here; consumers receive events about them through the outbox.

-- A fleet at one filial. Only the SHA-256 of its credential is stored.
create table robotics_consumers (
  consumer_id bigint generated always as identity primary key,
  organization_id bigint not null,
  filial_id bigint not null,
  name text not null,
  -- Only the webhooks of `test` consumers may go to a loopback address.
  mode text not null check (mode in ('test', 'live')),
  status text not null default 'active' check (status in ('active', 'suspended')),
  credential_hash bytea not null unique check (octet_length(credential_hash) = 32),
  credential_created_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  unique (organization_id, consumer_id),
  foreign key (organization_id, filial_id) references filials (organization_id, filial_id)
);
create index robotics_consumers_by_organization on robotics_consumers (organization_id, consumer_id);
create index robotics_consumers_by_filial on robotics_consumers (filial_id, consumer_id);

-- One row for each filial that has ever used robots. Whatever pauses, offers or accepts locks it, so that a pause that
-- was acknowledged holds for everything that is committed after it.
create table robotics_filials (
  filial_id bigint primary key references filials,
  organization_id bigint not null,
  is_paused boolean not null default false,
  -- Of the last change; null while there was none.
  reason text,
  changed_at timestamptz,
  changed_by_id bigint,
  changed_by_name text,
  last_display_number bigint not null default 0,
  foreign key (organization_id, filial_id) references filials (organization_id, filial_id)
);

create table serving_tasks (
  task_id bigint generated always as identity primary key,
  organization_id bigint not null,
  filial_id bigint not null,
  consumer_id bigint not null,
  display_number bigint not null,
  leg text not null check (leg in ('kitchen_to_table', 'kitchen_to_pickup', 'table_to_kitchen', 'courier')),
  status text not null default 'offered' check (status in ('offered', 'accepted', 'completed', 'cancelled', 'expired')),
  manifest jsonb not null,
  destination jsonb not null,
  offered_at timestamptz not null default now(),
  expires_at timestamptz not null,
  accepted_at timestamptz,
  ended_at timestamptz,
  cancel_reason text,
  -- Of the offer, with a hash of the request: a repetition finds the task, another request is refused.
  idempotency_key text,
  request_hash bytea,
  unique (filial_id, display_number),
  unique (organization_id, idempotency_key),
  foreign key (organization_id, consumer_id) references robotics_consumers (organization_id, consumer_id),
  foreign key (organization_id, filial_id) references filials (organization_id, filial_id),
  check ((idempotency_key is null) = (request_hash is null)),
  check ((ended_at is not null) = (status in ('completed', 'cancelled', 'expired')))
);
create index serving_tasks_current on serving_tasks (consumer_id, task_id) where status in ('offered', 'accepted');
create index serving_tasks_by_consumer on serving_tasks (consumer_id, status, task_id);
create index serving_tasks_by_organization on serving_tasks (organization_id, task_id);
create index serving_tasks_due on serving_tasks (expires_at) where status = 'offered';
-- For the retention job, which deletes those that ended long ago.
create index serving_tasks_ended on serving_tasks (ended_at) where ended_at is not null;

-- The audit log of robotics and its webhooks: who did what, when and why. Written with the change, never changed.
create table robotics_trail (
  event_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  at timestamptz not null default now(),
  actor_kind text not null,
  actor_id bigint not null,
  actor_name text not null,
  action text not null,
  subject_kind text not null check (subject_kind in ('robotics_consumer', 'serving_task', 'filial_robotics', 'webhook_endpoint')),
  subject_id bigint not null,
  -- What changed and why; never a credential.
  data jsonb not null default '{}'
);
create index robotics_trail_by_organization on robotics_trail (organization_id, event_id);
create trigger robotics_trail_append_only before update or delete on robotics_trail
  for each row execute function refuse_change();
create trigger robotics_trail_not_truncated before truncate on robotics_trail
  for each statement execute function refuse_change();
