-- What the database is after all migrations. Written by `npm run schema`; the reasons are in the comments of
-- services/db/migrations/.

create sequence intent_ids as bigint start with 1 increment by 1 minvalue 1 maxvalue 9223372036854775807;

create table attribution_limits (
  organization_id bigint not null,
  currency text not null,
  alone_up_to_minor bigint not null,
  changed_by bigint not null,
  changed_by_name text not null,
  changed_at timestamp with time zone default now() not null,
  reason text not null,
  constraint attribution_limits_pkey PRIMARY KEY (organization_id, currency),
  constraint attribution_limits_alone_up_to_minor_check CHECK (alone_up_to_minor >= 0),
  constraint attribution_limits_currency_check CHECK (currency ~ '^[A-Z]{3}$'::text),
  constraint attribution_limits_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);

create table attribution_proposals (
  proposal_id bigint generated always as identity not null,
  organization_id bigint not null,
  issue_id bigint not null,
  order_id bigint not null,
  amount_minor bigint not null,
  currency text not null,
  evidence_hash bytea not null,
  reason text not null,
  proposed_by bigint not null,
  proposed_by_name text not null,
  proposed_at timestamp with time zone default now() not null,
  status text default 'waiting'::text not null,
  decided_by bigint,
  decided_at timestamp with time zone,
  decision_reason text,
  constraint attribution_proposals_pkey PRIMARY KEY (proposal_id),
  constraint attribution_proposals_decided_check CHECK ((status = 'waiting'::text) = (decided_at IS NULL)),
  constraint attribution_proposals_evidence_hash_check CHECK (octet_length(evidence_hash) = 32),
  constraint attribution_proposals_status_check CHECK (status = ANY (ARRAY['waiting'::text, 'confirmed'::text, 'rejected'::text, 'withdrawn'::text, 'ended'::text])),
  constraint attribution_proposals_two_people_check CHECK ((status <> ALL (ARRAY['confirmed'::text, 'rejected'::text])) OR decided_by IS NOT NULL AND decided_by <> proposed_by),
  constraint attribution_proposals_issue_id_fkey FOREIGN KEY (issue_id) REFERENCES issues(issue_id),
  constraint attribution_proposals_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);
CREATE INDEX attribution_proposals_by_issue ON attribution_proposals USING btree (issue_id, proposal_id);
CREATE UNIQUE INDEX attribution_proposals_one_waits ON attribution_proposals USING btree (issue_id) WHERE status = 'waiting'::text;

create table audit_heads (
  station_id bigint not null,
  version bigint not null,
  version_offset bigint default 0,
  stream_sequence bigint default 0 not null,
  collections jsonb,
  lost_collections jsonb default '[]'::jsonb not null,
  organization_id bigint,
  leased_until timestamp with time zone,
  devices_online integer default 0 not null,
  devices_offline integer default 0 not null,
  constraint audit_heads_pkey PRIMARY KEY (station_id)
);
CREATE INDEX audit_heads_of_organization ON audit_heads USING btree (organization_id);

create table audit_position (
  stream text not null,
  sequence bigint default 0 not null,
  holder text default ''::text not null,
  held_until timestamp with time zone default '-infinity'::timestamp with time zone not null,
  read_through bigint default 0 not null,
  lost_through bigint,
  lost_at timestamp with time zone,
  constraint audit_position_pkey PRIMARY KEY (stream)
);

create table bus_announcements (
  part text not null,
  told_through bigint default 0 not null,
  requested_at timestamp with time zone default clock_timestamp() not null,
  finished_at timestamp with time zone,
  constraint bus_announcements_pkey PRIMARY KEY (part),
  constraint bus_announcements_part_check CHECK (part = ANY (ARRAY['stations'::text, 'credentials'::text, 'sessions'::text, 'switches'::text]))
);

create table bus_marks (
  stream text not null,
  created text not null,
  sequence bigint not null,
  stored text not null,
  marked_at timestamp with time zone default clock_timestamp() not null,
  uncopied boolean default false not null,
  constraint bus_marks_pkey PRIMARY KEY (stream),
  constraint bus_marks_sequence_check CHECK (sequence >= 0)
);

create table catalogue_items (
  item_id bigint generated always as identity not null,
  organization_id bigint not null,
  filial_id bigint,
  name text not null,
  category text default ''::text not null,
  unit_amount_minor bigint not null,
  currency text not null,
  created_at timestamp with time zone default now() not null,
  changed_at timestamp with time zone default now() not null,
  constraint catalogue_items_pkey PRIMARY KEY (item_id),
  constraint catalogue_items_currency_check CHECK (currency ~ '^[A-Z]{3}$'::text),
  constraint catalogue_items_unit_amount_minor_check CHECK (unit_amount_minor >= 0),
  constraint catalogue_items_organization_id_filial_id_fkey FOREIGN KEY (organization_id, filial_id) REFERENCES filials(organization_id, filial_id),
  constraint catalogue_items_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);
CREATE INDEX catalogue_items_of_organization ON catalogue_items USING btree (organization_id, item_id);

create table certification_artifacts (
  artifact_id bigint generated always as identity not null,
  organization_id bigint not null,
  leaf_index bigint not null,
  run_event_id bigint not null,
  sandbox_id bigint not null,
  device_id bigint not null,
  provider text not null,
  capability text not null,
  model text,
  software_version text not null,
  software_sha256 bytea,
  suite_version text not null,
  contract_sha256 text not null,
  started_at timestamp with time zone not null,
  ended_at timestamp with time zone not null,
  recorded_at timestamp with time zone default now() not null,
  recorded_by bigint not null,
  recorded_by_name text not null,
  valid_until timestamp with time zone not null,
  evidence text not null,
  constraint certification_artifacts_pkey PRIMARY KEY (artifact_id),
  constraint certification_artifacts_capability_check CHECK (capability = ANY (ARRAY['handoff_present'::text, 'outcome_report'::text, 'display_total'::text, 'qr_dynamic_present'::text])),
  constraint certification_artifacts_check CHECK (started_at < ended_at AND ended_at <= recorded_at AND recorded_at < valid_until),
  constraint certification_artifacts_software_sha256_check CHECK (octet_length(software_sha256) = 32),
  constraint certification_artifacts_device_id_fkey FOREIGN KEY (device_id) REFERENCES devices(device_id),
  constraint certification_artifacts_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint certification_artifacts_recorded_by_fkey FOREIGN KEY (recorded_by) REFERENCES users(user_id),
  constraint certification_artifacts_run_event_id_fkey FOREIGN KEY (run_event_id) REFERENCES registry_events(event_id),
  constraint certification_artifacts_sandbox_id_fkey FOREIGN KEY (sandbox_id) REFERENCES sandboxes(sandbox_id),
  constraint certification_artifacts_leaf_index_key UNIQUE (leaf_index),
  constraint certification_artifacts_run_event_id_capability_key UNIQUE (run_event_id, capability)
);
CREATE INDEX certification_artifacts_of_organization ON certification_artifacts USING btree (organization_id, artifact_id);
CREATE TRIGGER certification_artifacts_append_only BEFORE DELETE OR UPDATE ON certification_artifacts FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER certification_artifacts_not_truncated BEFORE TRUNCATE ON certification_artifacts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table certification_keys (
  key_id text not null,
  public_key bytea not null,
  first_used_at timestamp with time zone default now() not null,
  constraint certification_keys_pkey PRIMARY KEY (key_id),
  constraint certification_keys_key_id_check CHECK (key_id ~ '^[0-9a-f]{16}$'::text),
  constraint certification_keys_public_key_check CHECK (octet_length(public_key) = 32)
);
CREATE TRIGGER certification_keys_append_only BEFORE DELETE OR UPDATE ON certification_keys FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER certification_keys_not_truncated BEFORE TRUNCATE ON certification_keys FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table certification_log (
  leaf_index bigint not null,
  envelope text not null,
  leaf_hash bytea not null,
  root_hash bytea not null,
  key_id text not null,
  checkpoint text not null,
  logged_at timestamp with time zone default now() not null,
  constraint certification_log_pkey PRIMARY KEY (leaf_index),
  constraint certification_log_leaf_hash_check CHECK (octet_length(leaf_hash) = 32),
  constraint certification_log_leaf_index_check CHECK (leaf_index >= 0),
  constraint certification_log_root_hash_check CHECK (octet_length(root_hash) = 32),
  constraint certification_log_key_id_fkey FOREIGN KEY (key_id) REFERENCES certification_keys(key_id)
);
CREATE TRIGGER certification_log_append_only BEFORE DELETE OR UPDATE ON certification_log FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER certification_log_not_truncated BEFORE TRUNCATE ON certification_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
revoke update, delete, truncate on certification_log from current_user;

create table certification_revocations (
  artifact_id bigint not null,
  leaf_index bigint not null,
  revoked_at timestamp with time zone default now() not null,
  revoked_by bigint not null,
  revoked_by_name text not null,
  reason text not null,
  constraint certification_revocations_pkey PRIMARY KEY (artifact_id),
  constraint certification_revocations_artifact_id_fkey FOREIGN KEY (artifact_id) REFERENCES certification_artifacts(artifact_id),
  constraint certification_revocations_revoked_by_fkey FOREIGN KEY (revoked_by) REFERENCES users(user_id),
  constraint certification_revocations_leaf_index_key UNIQUE (leaf_index)
);
CREATE TRIGGER certification_revocations_append_only BEFORE DELETE OR UPDATE ON certification_revocations FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER certification_revocations_not_truncated BEFORE TRUNCATE ON certification_revocations FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
revoke update, delete, truncate on certification_revocations from current_user;

create table closing_imports (
  closing_id bigint not null,
  import_id bigint not null,
  constraint closing_imports_pkey PRIMARY KEY (closing_id, import_id),
  constraint closing_imports_closing_id_fkey FOREIGN KEY (closing_id) REFERENCES period_closings(closing_id),
  constraint closing_imports_import_id_fkey FOREIGN KEY (import_id) REFERENCES statement_imports(import_id)
);
CREATE INDEX closing_imports_by_import ON closing_imports USING btree (import_id);
CREATE TRIGGER closing_imports_append_only BEFORE DELETE OR UPDATE ON closing_imports FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER closing_imports_not_truncated BEFORE TRUNCATE ON closing_imports FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table closing_issues (
  closing_id bigint not null,
  issue_id bigint not null,
  evidence_hash bytea not null,
  item text not null,
  constraint closing_issues_pkey PRIMARY KEY (closing_id, issue_id),
  constraint closing_issues_closing_id_fkey FOREIGN KEY (closing_id) REFERENCES period_closings(closing_id),
  constraint closing_issues_issue_id_fkey FOREIGN KEY (issue_id) REFERENCES issues(issue_id)
);
CREATE INDEX closing_issues_by_issue ON closing_issues USING btree (issue_id);
CREATE TRIGGER closing_issues_append_only BEFORE DELETE OR UPDATE ON closing_issues FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER closing_issues_not_truncated BEFORE TRUNCATE ON closing_issues FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table closing_keys (
  key_id text not null,
  public_key bytea not null,
  first_used_at timestamp with time zone default now() not null,
  constraint closing_keys_pkey PRIMARY KEY (key_id),
  constraint closing_keys_key_id_check CHECK (key_id ~ '^[0-9a-f]{16}$'::text),
  constraint closing_keys_public_key_check CHECK (octet_length(public_key) = 32)
);
CREATE TRIGGER closing_keys_append_only BEFORE DELETE OR UPDATE ON closing_keys FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER closing_keys_not_truncated BEFORE TRUNCATE ON closing_keys FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table conformance_runs (
  run_id bigint generated always as identity not null,
  organization_id bigint not null,
  sandbox_id bigint not null,
  user_id bigint not null,
  session_id bigint not null,
  status text default 'running'::text not null,
  started_at timestamp with time zone default now() not null,
  ended_at timestamp with time zone,
  leased_until timestamp with time zone not null,
  end_asked_at timestamp with time zone,
  checks jsonb default '[]'::jsonb not null,
  left_behind text[] default '{}'::text[] not null,
  suite_version text,
  contract_sha256 text,
  problem text,
  constraint conformance_runs_pkey PRIMARY KEY (run_id),
  constraint conformance_runs_check CHECK ((status = 'running'::text) = (ended_at IS NULL)),
  constraint conformance_runs_status_check CHECK (status = ANY (ARRAY['running'::text, 'passed'::text, 'failed'::text, 'left_behind'::text, 'could_not_run'::text, 'ended'::text, 'interrupted'::text])),
  constraint conformance_runs_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint conformance_runs_sandbox_id_fkey FOREIGN KEY (sandbox_id) REFERENCES sandboxes(sandbox_id),
  constraint conformance_runs_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
);
CREATE INDEX conformance_runs_of_organization ON conformance_runs USING btree (organization_id, run_id);
CREATE UNIQUE INDEX conformance_runs_running ON conformance_runs USING btree (sandbox_id) WHERE status = 'running'::text;

create table creations (
  creation_id text not null,
  request_digest text not null,
  made_id bigint,
  created_at timestamp with time zone default now() not null,
  constraint creations_pkey PRIMARY KEY (creation_id)
);
CREATE INDEX creations_by_age ON creations USING btree (created_at);

create table device_credentials (
  credential_id bigint generated always as identity not null,
  organization_id bigint not null,
  device_id bigint not null,
  credential_hash bytea not null,
  scopes text[] not null,
  created_at timestamp with time zone default now() not null,
  revoked_at timestamp with time zone,
  constraint device_credentials_pkey PRIMARY KEY (credential_id),
  constraint device_credentials_credential_hash_check CHECK (octet_length(credential_hash) = 32),
  constraint device_credentials_organization_id_device_id_fkey FOREIGN KEY (organization_id, device_id) REFERENCES devices(organization_id, device_id),
  constraint device_credentials_credential_hash_key UNIQUE (credential_hash)
);
CREATE INDEX device_credentials_by_device ON device_credentials USING btree (device_id);
CREATE UNIQUE INDEX device_credentials_one_valid ON device_credentials USING btree (device_id) WHERE revoked_at IS NULL;

create table devices (
  device_id bigint generated always as identity not null,
  organization_id bigint not null,
  station_id bigint not null,
  name text not null,
  kind text not null,
  capabilities text[] not null,
  status text default 'pending'::text not null,
  handoff_target text default ''::text not null,
  revision bigint default 1 not null,
  created_at timestamp with time zone default now() not null,
  enrolled_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint devices_pkey PRIMARY KEY (device_id),
  constraint devices_kind_check CHECK (kind = ANY (ARRAY['smart_pos_companion'::text, 'customer_display'::text])),
  constraint devices_status_check CHECK (status = ANY (ARRAY['pending'::text, 'active'::text, 'suspended'::text, 'revoked'::text])),
  constraint devices_organization_id_station_id_fkey FOREIGN KEY (organization_id, station_id) REFERENCES stations(organization_id, station_id),
  constraint devices_organization_id_device_id_key UNIQUE (organization_id, device_id)
);
CREATE INDEX devices_by_station ON devices USING btree (organization_id, station_id, device_id);
CREATE INDEX devices_of_status ON devices USING btree (organization_id, status, device_id);

create table enrollment_codes (
  code_id bigint generated always as identity not null,
  organization_id bigint not null,
  device_id bigint not null,
  code_hash bytea not null,
  created_by bigint,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  spent_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint enrollment_codes_pkey PRIMARY KEY (code_id),
  constraint enrollment_codes_code_hash_check CHECK (octet_length(code_hash) = 32),
  constraint enrollment_codes_organization_id_device_id_fkey FOREIGN KEY (organization_id, device_id) REFERENCES devices(organization_id, device_id)
);
CREATE INDEX enrollment_codes_by_device ON enrollment_codes USING btree (device_id, code_id);
CREATE UNIQUE INDEX enrollment_codes_claimable ON enrollment_codes USING btree (code_hash) WHERE spent_at IS NULL AND revoked_at IS NULL;
CREATE UNIQUE INDEX enrollment_codes_one_open ON enrollment_codes USING btree (device_id) WHERE spent_at IS NULL AND revoked_at IS NULL;

create table filials (
  filial_id bigint generated always as identity not null,
  organization_id bigint not null,
  name text not null,
  created_at timestamp with time zone default now() not null,
  constraint filials_pkey PRIMARY KEY (filial_id),
  constraint filials_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint filials_organization_id_filial_id_key UNIQUE (organization_id, filial_id)
);

create table installation (
  is_only boolean default true not null,
  id uuid default gen_random_uuid() not null,
  created_at timestamp with time zone default clock_timestamp() not null,
  pulse bigint default 0 not null,
  enrollment_code_key_id text,
  constraint installation_pkey PRIMARY KEY (is_only),
  constraint installation_is_only_check CHECK (is_only)
);

create table intent_history (
  intent_id bigint not null,
  station_id bigint not null,
  organization_id bigint not null,
  version bigint not null,
  at timestamp with time zone not null,
  intent text not null,
  constraint intent_history_pkey PRIMARY KEY (intent_id)
);
CREATE INDEX intent_history_by_time ON intent_history USING brin (at);

create table intent_records (
  intent_id bigint not null,
  station_id bigint not null,
  command_id text,
  order_id bigint,
  ended text,
  created_at timestamp with time zone default now() not null,
  constraint intent_records_pkey PRIMARY KEY (intent_id)
);
CREATE UNIQUE INDEX intent_records_by_command ON intent_records USING btree (station_id, command_id) WHERE command_id IS NOT NULL;
CREATE INDEX intent_records_by_station ON intent_records USING btree (station_id, created_at);
CREATE INDEX intent_records_by_time ON intent_records USING brin (created_at);

create table issue_comments (
  comment_id bigint generated always as identity not null,
  organization_id bigint not null,
  issue_id bigint not null,
  author_id bigint not null,
  author_name text not null,
  text text not null,
  created_at timestamp with time zone default now() not null,
  constraint issue_comments_pkey PRIMARY KEY (comment_id),
  constraint issue_comments_issue_id_fkey FOREIGN KEY (issue_id) REFERENCES issues(issue_id)
);
CREATE INDEX issue_comments_by_issue ON issue_comments USING btree (issue_id, comment_id);

create table issues (
  issue_id bigint generated always as identity not null,
  organization_id bigint not null,
  config_id bigint,
  kind text not null,
  status text default 'open'::text not null,
  subject_key text not null,
  money_names text[] default '{}'::text[] not null,
  said_differently boolean default false not null,
  station_id bigint,
  intent_id bigint,
  order_id bigint,
  amount_minor bigint,
  currency text,
  provider_reference text default ''::text not null,
  evidence jsonb not null,
  opened_at timestamp with time zone default now() not null,
  resolved_at timestamp with time zone,
  resolved_by bigint,
  reason text,
  transaction_id bigint,
  attribution jsonb,
  attributed_since timestamp with time zone,
  account_key text not null,
  generation integer default 1 not null,
  supersedes_id bigint,
  superseded_by bigint,
  source text default 'provider'::text not null,
  statement_account_id bigint,
  evidence_hash bytea not null,
  prior_evidence jsonb default '[]'::jsonb not null,
  last_seen_at timestamp with time zone default now() not null,
  assignee_id bigint,
  constraint issues_pkey PRIMARY KEY (issue_id),
  constraint issues_assigned_check CHECK (
CASE status
    WHEN 'open'::text THEN assignee_id IS NULL
    WHEN 'assigned'::text THEN assignee_id IS NOT NULL
    ELSE true
END),
  constraint issues_attribution_check CHECK ((attribution IS NULL) = (attributed_since IS NULL)),
  constraint issues_evidence_hash_check CHECK (octet_length(evidence_hash) = 32),
  constraint issues_generation_check CHECK (generation > 0),
  constraint issues_kind_check CHECK (kind = ANY (ARRAY['unmatched_money'::text, 'amount_over'::text, 'amount_under'::text, 'amount_unknown'::text, 'currency_mismatch'::text, 'account_mismatch'::text, 'reference_mismatch'::text, 'late_money'::text, 'duplicate_money'::text, 'settlement_refused'::text, 'missing_in_statement'::text, 'direction_mismatch'::text, 'status_mismatch'::text, 'ambiguous_match'::text, 'duplicate_in_statement'::text, 'possible_duplicate'::text, 'date_out_of_window'::text, 'fee_mismatch'::text, 'refund_not_registered'::text, 'chargeback_not_registered'::text, 'wrong_station'::text, 'rounding'::text, 'tip'::text, 'batch_total_mismatch'::text, 'malformed_line'::text, 'after_closing'::text])),
  constraint issues_resolved_check CHECK ((status = ANY (ARRAY['open'::text, 'assigned'::text])) = (resolved_at IS NULL)),
  constraint issues_source_check CHECK (source = ANY (ARRAY['provider'::text, 'statement'::text])),
  constraint issues_status_check CHECK (status = ANY (ARRAY['open'::text, 'assigned'::text, 'attributed'::text, 'closed'::text, 'ended'::text])),
  constraint issues_organization_id_config_id_fkey FOREIGN KEY (organization_id, config_id) REFERENCES provider_configs(organization_id, config_id),
  constraint issues_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint issues_superseded_by_fkey FOREIGN KEY (superseded_by) REFERENCES issues(issue_id),
  constraint issues_supersedes_id_fkey FOREIGN KEY (supersedes_id) REFERENCES issues(issue_id)
);
CREATE INDEX issues_attribution_open ON issues USING btree (attributed_since) WHERE attribution IS NOT NULL;
CREATE INDEX issues_by_intent ON issues USING btree (intent_id) WHERE intent_id IS NOT NULL;
CREATE INDEX issues_by_money_name ON issues USING gin (money_names) WITH (fastupdate=off);
CREATE INDEX issues_by_organization ON issues USING btree (organization_id, issue_id);
CREATE UNIQUE INDEX issues_money_attributed_once ON issues USING btree (config_id, subject_key) WHERE status = 'attributed'::text OR attribution IS NOT NULL;
CREATE UNIQUE INDEX issues_one_each ON issues USING btree (account_key, kind, subject_key, COALESCE(station_id, 0::bigint), generation);
CREATE INDEX issues_open_by_intent ON issues USING btree (intent_id) WHERE status = ANY (ARRAY['open'::text, 'assigned'::text]);
CREATE INDEX issues_refused ON issues USING btree (issue_id) WHERE kind = 'settlement_refused'::text AND (status = ANY (ARRAY['open'::text, 'assigned'::text]));
CREATE UNIQUE INDEX issues_statement_money_attributed_once ON issues USING btree (account_key, subject_key) WHERE config_id IS NULL AND money_names <> '{}'::text[] AND (status = 'attributed'::text OR attribution IS NOT NULL);
CREATE INDEX issues_unresolved ON issues USING btree (organization_id, issue_id) WHERE status = ANY (ARRAY['open'::text, 'assigned'::text]);
CREATE INDEX issues_unresolved_by_age ON issues USING btree (opened_at, kind) WHERE status = ANY (ARRAY['open'::text, 'assigned'::text]);
CREATE TRIGGER issues_add_attributed_payment AFTER UPDATE OF status ON issues FOR EACH ROW WHEN (new.status = 'attributed'::text AND old.status IS DISTINCT FROM new.status) EXECUTE FUNCTION add_attributed_payment();

create table kill_switches (
  switch_id bigint generated always as identity not null,
  subject_kind text not null,
  subject_id bigint not null,
  organization_id bigint,
  is_on boolean not null,
  reason text not null,
  changed_by_kind text not null,
  changed_by_id bigint not null,
  changed_by_name text not null,
  changed_at timestamp with time zone default clock_timestamp() not null,
  revision bigint not null,
  constraint kill_switches_pkey PRIMARY KEY (switch_id),
  constraint kill_switches_check CHECK ((subject_kind = 'platform'::text) = (subject_id = 0)),
  constraint kill_switches_check1 CHECK ((subject_kind = 'platform'::text) = (organization_id IS NULL)),
  constraint kill_switches_subject_kind_check CHECK (subject_kind = ANY (ARRAY['platform'::text, 'organization'::text, 'station'::text, 'device'::text, 'provider'::text])),
  constraint kill_switches_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint kill_switches_subject_kind_subject_id_key UNIQUE (subject_kind, subject_id)
);
CREATE INDEX kill_switches_on ON kill_switches USING btree (organization_id, switch_id) WHERE is_on;

create table known_addresses (
  user_id bigint not null,
  address_hash bytea not null,
  last_login_at timestamp with time zone default now() not null,
  constraint known_addresses_pkey PRIMARY KEY (user_id, address_hash),
  constraint known_addresses_address_hash_check CHECK (octet_length(address_hash) = 32),
  constraint known_addresses_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
);
CREATE INDEX known_addresses_by_age ON known_addresses USING btree (last_login_at);

create table known_browsers (
  user_id bigint not null,
  token_hash bytea not null,
  last_login_at timestamp with time zone default now() not null,
  constraint known_browsers_pkey PRIMARY KEY (user_id, token_hash),
  constraint known_browsers_token_hash_check CHECK (octet_length(token_hash) = 32),
  constraint known_browsers_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(user_id)
);
CREATE INDEX known_browsers_by_age ON known_browsers USING btree (last_login_at);

create table line_candidates (
  line_id bigint not null,
  payment_key text not null,
  account_id bigint not null,
  score integer not null,
  explanation jsonb not null,
  constraint line_candidates_pkey PRIMARY KEY (line_id, payment_key),
  constraint line_candidates_score_check CHECK (score >= 0 AND score <= 100),
  constraint line_candidates_line_id_fkey FOREIGN KEY (line_id) REFERENCES statement_lines(line_id) ON DELETE CASCADE
);
CREATE INDEX line_candidates_by_account ON line_candidates USING btree (account_id, line_id);

create table line_outcomes (
  line_id bigint not null,
  account_id bigint not null,
  outcome text not null,
  reason text not null,
  issue_id bigint,
  payment_key text,
  score integer,
  constraint line_outcomes_pkey PRIMARY KEY (line_id),
  constraint line_outcomes_issue_check CHECK (outcome = 'differs'::text OR issue_id IS NULL),
  constraint line_outcomes_outcome_check CHECK (outcome = ANY (ARRAY['differs'::text, 'rejected'::text])),
  constraint line_outcomes_issue_id_fkey FOREIGN KEY (issue_id) REFERENCES issues(issue_id),
  constraint line_outcomes_line_id_fkey FOREIGN KEY (line_id) REFERENCES statement_lines(line_id) ON DELETE CASCADE
);
CREATE INDEX line_outcomes_by_payment ON line_outcomes USING btree (payment_key) WHERE payment_key IS NOT NULL;

create table login_attempts (
  key character varying(255) not null,
  points integer default 0 not null,
  expire bigint,
  constraint login_attempts_pkey PRIMARY KEY (key)
);
CREATE INDEX login_attempts_by_expiry ON login_attempts USING btree (expire);

create table login_links (
  link_hash bytea not null,
  organization_id bigint not null,
  station_id bigint not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  constraint login_links_pkey PRIMARY KEY (link_hash),
  constraint login_links_link_hash_check CHECK (octet_length(link_hash) = 32),
  constraint login_links_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint login_links_organization_id_station_id_fkey FOREIGN KEY (organization_id, station_id) REFERENCES stations(organization_id, station_id)
);

create table mapping_tests (
  test_id bigint generated always as identity not null,
  organization_id bigint not null,
  import_id bigint not null,
  mapping_id bigint,
  status text default 'running'::text not null,
  status_code text,
  status_detail text,
  read_bytes bigint default 0 not null,
  lines bigint default 0 not null,
  malformed bigint default 0 not null,
  skipped bigint default 0 not null,
  totals jsonb default '[]'::jsonb not null,
  from_date date,
  to_date date,
  malformed_rows jsonb default '[]'::jsonb not null,
  started_by bigint not null,
  started_at timestamp with time zone default now() not null,
  seen_at timestamp with time zone default now() not null,
  ended_at timestamp with time zone,
  constraint mapping_tests_pkey PRIMARY KEY (test_id),
  constraint mapping_tests_ended_check CHECK ((status = 'running'::text) = (ended_at IS NULL)),
  constraint mapping_tests_status_check CHECK (status = ANY (ARRAY['running'::text, 'done'::text, 'refused'::text, 'failed'::text])),
  constraint mapping_tests_import_id_fkey FOREIGN KEY (import_id) REFERENCES statement_imports(import_id),
  constraint mapping_tests_mapping_id_fkey FOREIGN KEY (mapping_id) REFERENCES statement_mappings(mapping_id),
  constraint mapping_tests_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);
CREATE INDEX mapping_tests_by_age ON mapping_tests USING btree (started_at);

create table match_decisions (
  account_id bigint not null,
  fingerprint bytea not null,
  payment_key text not null,
  decision text not null,
  decided_by bigint not null,
  decided_at timestamp with time zone default now() not null,
  reason text not null,
  constraint match_decisions_pkey PRIMARY KEY (account_id, fingerprint, payment_key),
  constraint match_decisions_decision_check CHECK (decision = ANY (ARRAY['confirmed'::text, 'rejected'::text])),
  constraint match_decisions_account_id_fkey FOREIGN KEY (account_id) REFERENCES statement_accounts(account_id)
);
CREATE INDEX match_decisions_by_payment ON match_decisions USING btree (payment_key);

create table match_lines (
  line_id bigint not null,
  match_id bigint not null,
  constraint match_lines_pkey PRIMARY KEY (line_id),
  constraint match_lines_line_id_fkey FOREIGN KEY (line_id) REFERENCES statement_lines(line_id) ON DELETE CASCADE
);
CREATE INDEX match_lines_by_match ON match_lines USING btree (match_id);

create table match_payments (
  payment_key text not null,
  match_id bigint not null,
  constraint match_payments_pkey PRIMARY KEY (payment_key)
);
CREATE INDEX match_payments_by_match ON match_payments USING btree (match_id);

create table order_counters (
  station_id bigint not null,
  last_number bigint not null,
  constraint order_counters_pkey PRIMARY KEY (station_id),
  constraint order_counters_last_number_check CHECK (last_number > 0),
  constraint order_counters_station_id_fkey FOREIGN KEY (station_id) REFERENCES stations(station_id)
);

create table order_lines (
  order_id bigint not null,
  ordinal integer not null,
  name text not null,
  quantity integer not null,
  unit_amount_minor bigint not null,
  constraint order_lines_pkey PRIMARY KEY (order_id, ordinal),
  constraint order_lines_ordinal_check CHECK (ordinal >= 0),
  constraint order_lines_quantity_check CHECK (quantity >= 1 AND quantity <= 9999),
  constraint order_lines_unit_amount_minor_check CHECK (unit_amount_minor >= 0),
  constraint order_lines_order_id_fkey FOREIGN KEY (order_id) REFERENCES orders(order_id)
);

create table order_openings (
  user_id bigint not null,
  idempotency_key text not null,
  order_id bigint not null,
  opened jsonb not null,
  created_at timestamp with time zone default now() not null,
  asked_lines jsonb,
  constraint order_openings_pkey PRIMARY KEY (user_id, idempotency_key),
  constraint order_openings_order_id_fkey FOREIGN KEY (order_id) REFERENCES orders(order_id)
);
CREATE INDEX order_openings_by_age ON order_openings USING btree (created_at);

create table orders (
  order_id bigint generated always as identity not null,
  organization_id bigint not null,
  station_id bigint not null,
  display_number bigint not null,
  status text default 'open'::text not null,
  revision bigint default 1 not null,
  currency text not null,
  total_minor bigint not null,
  opened_by bigint not null,
  opened_at timestamp with time zone default now() not null,
  constraint orders_pkey PRIMARY KEY (order_id),
  constraint orders_currency_check CHECK (currency ~ '^[A-Z]{3}$'::text),
  constraint orders_display_number_check CHECK (display_number > 0),
  constraint orders_revision_check CHECK (revision > 0),
  constraint orders_status_check CHECK (status = ANY (ARRAY['open'::text, 'paid'::text, 'voided'::text])),
  constraint orders_total_minor_check CHECK (total_minor >= 0),
  constraint orders_organization_id_station_id_fkey FOREIGN KEY (organization_id, station_id) REFERENCES stations(organization_id, station_id),
  constraint orders_organization_id_order_id_key UNIQUE (organization_id, order_id),
  constraint orders_station_id_display_number_key UNIQUE (station_id, display_number)
);
CREATE INDEX orders_by_station ON orders USING btree (station_id, order_id);
CREATE INDEX orders_of_status ON orders USING btree (station_id, status, order_id);
CREATE INDEX orders_open_of_organization ON orders USING btree (organization_id, order_id) WHERE status = 'open'::text;
CREATE INDEX orders_voided_of_organization ON orders USING btree (organization_id, order_id) WHERE status = 'voided'::text;
CREATE TRIGGER orders_closed_for_good BEFORE DELETE OR UPDATE ON orders FOR EACH ROW WHEN (old.status <> 'open'::text) EXECUTE FUNCTION refuse_change();

create table organizations (
  organization_id bigint generated always as identity not null,
  name text not null,
  sandbox boolean default false not null,
  created_at timestamp with time zone default now() not null,
  constraint organizations_pkey PRIMARY KEY (organization_id)
);
CREATE UNIQUE INDEX organizations_one_sandbox ON organizations USING btree (sandbox) WHERE sandbox;

create table outbox (
  outbox_id bigint generated always as identity not null,
  key text not null,
  kind text not null,
  payload jsonb not null,
  created_at timestamp with time zone default now() not null,
  delivered_at timestamp with time zone,
  stream text,
  sequence bigint,
  failed_reason text,
  request_id text,
  constraint outbox_pkey PRIMARY KEY (outbox_id),
  constraint outbox_check CHECK (failed_reason IS NULL OR delivered_at IS NOT NULL),
  constraint outbox_key_check CHECK (key ~ '^[a-z]+\.[0-9]+$'::text),
  constraint outbox_kind_check CHECK (kind = ANY (ARRAY['station_command'::text, 'credential_put'::text, 'credential_delete'::text, 'session_put'::text, 'session_delete'::text, 'switch_set'::text, 'robotics_event'::text, 'issue_event'::text]))
) with (autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX outbox_by_key ON outbox USING btree (key, outbox_id);
CREATE INDEX outbox_done ON outbox USING btree (delivered_at) WHERE delivered_at IS NOT NULL;
CREATE INDEX outbox_pending ON outbox USING btree (key, outbox_id) WHERE delivered_at IS NULL;
CREATE INDEX outbox_robotics ON outbox USING btree (delivered_at) WHERE kind = 'robotics_event'::text AND failed_reason IS NULL;

create table paid_money_names (
  name text not null,
  transaction_id bigint not null,
  constraint paid_money_names_pkey PRIMARY KEY (name)
);
CREATE TRIGGER paid_money_names_append_only BEFORE DELETE OR UPDATE ON paid_money_names FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER paid_money_names_not_truncated BEFORE TRUNCATE ON paid_money_names FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table payments (
  intent_id bigint not null,
  organization_id bigint not null,
  filial_id bigint not null,
  station_id bigint not null,
  sandbox boolean not null,
  version bigint not null,
  route text not null,
  status text not null,
  amount_minor bigint not null,
  currency text not null,
  order_id bigint not null,
  order_display_number bigint not null,
  cashier_id bigint,
  device_id bigint,
  reference text default ''::text not null,
  money_may_have_moved text default ''::text not null,
  created_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint payments_pkey PRIMARY KEY (intent_id)
);
CREATE INDEX payments_by_amount ON payments USING btree (organization_id, currency, amount_minor);
CREATE INDEX payments_by_order_number ON payments USING btree (organization_id, order_display_number);
CREATE INDEX payments_by_reference ON payments USING btree (organization_id, "left"(lower(reference), 100) text_pattern_ops) WHERE reference <> ''::text;
CREATE INDEX payments_by_time ON payments USING brin (created_at);
CREATE INDEX payments_of_cashier ON payments USING btree (organization_id, cashier_id, created_at, intent_id);
CREATE INDEX payments_of_filial ON payments USING btree (organization_id, filial_id, created_at, intent_id);
CREATE INDEX payments_of_organization ON payments USING btree (organization_id, created_at, intent_id);
CREATE INDEX payments_of_route ON payments USING btree (organization_id, route, created_at, intent_id);
CREATE INDEX payments_of_sandbox ON payments USING btree (organization_id, created_at, intent_id) WHERE sandbox;
CREATE INDEX payments_of_station ON payments USING btree (organization_id, station_id, created_at, intent_id);
CREATE INDEX payments_of_status ON payments USING btree (organization_id, status, created_at, intent_id);

create table payout_names (
  account_id bigint not null,
  payout_reference text not null,
  day date not null,
  use_day date not null,
  constraint payout_names_pkey PRIMARY KEY (account_id, payout_reference, day),
  constraint payout_names_account_id_fkey FOREIGN KEY (account_id) REFERENCES statement_accounts(account_id)
);

create table period_closings (
  closing_id bigint generated always as identity not null,
  organization_id bigint not null,
  account_id bigint not null,
  kind text not null,
  from_date date not null,
  to_date date not null,
  through_line_id bigint not null,
  statement text not null,
  statement_hash bytea not null,
  key_id text not null,
  signature bytea not null,
  closed_by bigint not null,
  closed_by_name text not null,
  closed_at timestamp with time zone not null,
  reason text not null,
  constraint period_closings_pkey PRIMARY KEY (closing_id),
  constraint period_closings_days_check CHECK (
CASE kind
    WHEN 'day'::text THEN to_date = from_date
    ELSE from_date = date_trunc('month'::text, from_date::timestamp with time zone)::date AND to_date = (from_date + '1 mon'::interval - '1 day'::interval)::date
END),
  constraint period_closings_kind_check CHECK (kind = ANY (ARRAY['day'::text, 'month'::text])),
  constraint period_closings_signature_check CHECK (octet_length(signature) = 64),
  constraint period_closings_statement_hash_check CHECK (octet_length(statement_hash) = 32),
  constraint period_closings_key_id_fkey FOREIGN KEY (key_id) REFERENCES closing_keys(key_id),
  constraint period_closings_organization_id_account_id_fkey FOREIGN KEY (organization_id, account_id) REFERENCES statement_accounts(organization_id, account_id),
  constraint period_closings_account_id_kind_from_date_key UNIQUE (account_id, kind, from_date)
);
CREATE INDEX period_closings_by_organization ON period_closings USING btree (organization_id, closing_id);
CREATE TRIGGER period_closings_append_only BEFORE DELETE OR UPDATE ON period_closings FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER period_closings_not_truncated BEFORE TRUNCATE ON period_closings FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table provider_callback_refusals (
  refusal_id bigint generated always as identity not null,
  at timestamp with time zone default clock_timestamp() not null,
  config_id bigint not null,
  address text not null,
  reason text not null,
  constraint provider_callback_refusals_pkey PRIMARY KEY (refusal_id)
);

create table provider_callback_variants (
  callback_id bigint not null,
  body_hash bytea not null,
  body bytea not null,
  outcome text not null,
  received_at timestamp with time zone default clock_timestamp() not null,
  constraint provider_callback_variants_pkey PRIMARY KEY (callback_id, body_hash),
  constraint provider_callback_variants_body_hash_check CHECK (octet_length(body_hash) = 32),
  constraint provider_callback_variants_callback_id_fkey FOREIGN KEY (callback_id) REFERENCES provider_callbacks(callback_id) ON DELETE CASCADE
);
CREATE INDEX provider_callback_variants_by_time ON provider_callback_variants USING brin (received_at);

create table provider_callbacks (
  callback_id bigint generated always as identity not null,
  config_id bigint not null,
  event_key text not null,
  event_type text not null,
  intent_id bigint,
  outcome text not null,
  body bytea not null,
  answer_status integer not null,
  answer_body text not null,
  received_at timestamp with time zone default clock_timestamp() not null,
  variants_not_kept integer default 0 not null,
  constraint provider_callbacks_pkey PRIMARY KEY (callback_id),
  constraint provider_callbacks_config_id_fkey FOREIGN KEY (config_id) REFERENCES provider_configs(config_id),
  constraint provider_callbacks_config_id_event_key_key UNIQUE (config_id, event_key)
);
CREATE INDEX provider_callbacks_by_time ON provider_callbacks USING brin (received_at);

create table provider_choices (
  filial_id bigint not null,
  mode text not null,
  config_id bigint,
  revision bigint default 1 not null,
  constraint provider_choices_pkey PRIMARY KEY (filial_id, mode),
  constraint provider_choices_mode_check CHECK (mode = ANY (ARRAY['test'::text, 'live'::text])),
  constraint provider_choices_config_id_fkey FOREIGN KEY (config_id) REFERENCES provider_configs(config_id),
  constraint provider_choices_filial_id_fkey FOREIGN KEY (filial_id) REFERENCES filials(filial_id)
);

create table provider_configs (
  config_id bigint generated always as identity not null,
  organization_id bigint not null,
  filial_id bigint not null,
  kind text not null,
  mode text not null,
  name text not null,
  status text default 'active'::text not null,
  settings jsonb not null,
  created_at timestamp with time zone default now() not null,
  constraint provider_configs_pkey PRIMARY KEY (config_id),
  constraint provider_configs_kind_check CHECK (kind = ANY (ARRAY['sandbox'::text, 'emvco_generic'::text])),
  constraint provider_configs_mode_check CHECK (mode = ANY (ARRAY['test'::text, 'live'::text])),
  constraint provider_configs_status_check CHECK (status = ANY (ARRAY['active'::text, 'disabled'::text])),
  constraint provider_configs_organization_id_filial_id_fkey FOREIGN KEY (organization_id, filial_id) REFERENCES filials(organization_id, filial_id),
  constraint provider_configs_organization_id_config_id_key UNIQUE (organization_id, config_id)
);
CREATE INDEX provider_configs_by_organization ON provider_configs USING btree (organization_id, config_id);
CREATE UNIQUE INDEX provider_configs_one_active ON provider_configs USING btree (filial_id, mode) WHERE status = 'active'::text;

create table provider_events (
  event_id bigint generated always as identity not null,
  organization_id bigint not null,
  at timestamp with time zone default now() not null,
  actor_role text not null,
  actor_id bigint not null,
  actor_name text not null,
  action text not null,
  subject_kind text not null,
  subject_id bigint not null,
  data jsonb default '{}'::jsonb not null,
  constraint provider_events_pkey PRIMARY KEY (event_id),
  constraint provider_events_subject_kind_check CHECK (subject_kind = ANY (ARRAY['provider_config'::text, 'provider_issue'::text, 'issue'::text, 'statement_line'::text, 'organization'::text])),
  constraint provider_events_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);
CREATE INDEX provider_events_by_config ON provider_events USING btree (subject_id, at) WHERE subject_kind = 'provider_config'::text;
CREATE INDEX provider_events_by_issue ON provider_events USING btree (subject_id, event_id) WHERE subject_kind = ANY (ARRAY['issue'::text, 'provider_issue'::text]);
CREATE INDEX provider_events_by_organization ON provider_events USING btree (organization_id, event_id);
CREATE TRIGGER provider_events_append_only BEFORE DELETE OR UPDATE ON provider_events FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER provider_events_not_truncated BEFORE TRUNCATE ON provider_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table provider_payments (
  intent_id bigint not null,
  config_id bigint not null,
  organization_id bigint not null,
  station_id bigint not null,
  order_display_number bigint not null,
  reference text not null,
  account text not null,
  account_scheme text,
  amount_minor bigint not null,
  currency text not null,
  expires_at timestamp with time zone not null,
  status text default 'asked'::text not null,
  asked_until timestamp with time zone not null,
  failure text,
  qr_payload text default ''::text not null,
  provider_reference text default ''::text not null,
  paid_reference text,
  paid_money_name text,
  paid_at timestamp with time zone,
  withdrawn_at timestamp with time zone,
  ended_at timestamp with time zone,
  assertions bigint default 0 not null,
  created_at timestamp with time zone default now() not null,
  constraint provider_payments_pkey PRIMARY KEY (intent_id),
  constraint provider_payments_amount_minor_check CHECK (amount_minor >= 0),
  constraint provider_payments_check CHECK ((paid_reference IS NULL) = (paid_at IS NULL)),
  constraint provider_payments_currency_check CHECK (currency ~ '^[A-Z]{3}$'::text),
  constraint provider_payments_status_check CHECK (status = ANY (ARRAY['asked'::text, 'ready'::text, 'failed'::text])),
  constraint provider_payments_organization_id_config_id_fkey FOREIGN KEY (organization_id, config_id) REFERENCES provider_configs(organization_id, config_id),
  constraint provider_payments_reference_key UNIQUE (reference)
);
CREATE INDEX provider_payments_by_paid_money ON provider_payments USING btree (paid_money_name) WHERE paid_money_name IS NOT NULL;
CREATE INDEX provider_payments_by_provider_reference ON provider_payments USING btree (config_id, provider_reference) WHERE provider_reference <> ''::text;

create table provider_recovery (
  one boolean default true not null,
  recovered_at timestamp with time zone default '-infinity'::timestamp with time zone not null,
  announced_at timestamp with time zone,
  marked_through bigint default 0 not null,
  constraint provider_recovery_pkey PRIMARY KEY (one),
  constraint provider_recovery_one_check CHECK (one)
);

create table provider_secrets (
  secret_id bigint generated always as identity not null,
  config_id bigint not null,
  name text not null,
  key_id text not null,
  nonce bytea not null,
  sealed bytea not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  constraint provider_secrets_pkey PRIMARY KEY (secret_id),
  constraint provider_secrets_nonce_check CHECK (octet_length(nonce) = 12),
  constraint provider_secrets_sealed_check CHECK (octet_length(sealed) > 16),
  constraint provider_secrets_config_id_fkey FOREIGN KEY (config_id) REFERENCES provider_configs(config_id)
);
CREATE INDEX provider_secrets_by_config ON provider_secrets USING btree (config_id, secret_id);
CREATE UNIQUE INDEX provider_secrets_one_current ON provider_secrets USING btree (config_id, name) WHERE expires_at IS NULL;

create table provider_tasks (
  intent_id bigint not null,
  kind text not null,
  detail jsonb default '{}'::jsonb not null,
  due_at timestamp with time zone default now() not null,
  attempts integer default 0 not null,
  created_at timestamp with time zone default now() not null,
  done_at timestamp with time zone,
  outcome text,
  request_id text,
  constraint provider_tasks_pkey PRIMARY KEY (intent_id, kind),
  constraint provider_tasks_kind_check CHECK (kind = ANY (ARRAY['confirm'::text, 'fail'::text, 'clear'::text, 'differ'::text, 'poll'::text, 'withdraw'::text])),
  constraint provider_tasks_intent_id_fkey FOREIGN KEY (intent_id) REFERENCES provider_payments(intent_id)
) with (autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX provider_tasks_due ON provider_tasks USING btree (due_at) WHERE done_at IS NULL;

create table provider_withdrawals (
  intent_id bigint not null,
  asked_at timestamp with time zone default now() not null,
  constraint provider_withdrawals_pkey PRIMARY KEY (intent_id)
);
CREATE INDEX provider_withdrawals_by_age ON provider_withdrawals USING btree (asked_at);

create table reconciliation_runs (
  run_id bigint generated always as identity not null,
  organization_id bigint not null,
  account_id bigint not null,
  from_date date not null,
  to_date date not null,
  status text default 'running'::text not null,
  step text default 'lines'::text not null,
  started_by bigint,
  started_at timestamp with time zone default clock_timestamp() not null,
  ended_at timestamp with time zone,
  failure text,
  previous_run_id bigint,
  through_import_id bigint,
  covered_from date,
  covered_to date,
  lines bigint default 0 not null,
  payments bigint default 0 not null,
  matched bigint default 0 not null,
  differing bigint default 0 not null,
  rejected bigint default 0 not null,
  differences bigint default 0 not null,
  totals jsonb default '[]'::jsonb not null,
  input_hash bytea,
  result_hash bytea,
  covered datemultirange default '{}'::datemultirange not null,
  constraint reconciliation_runs_pkey PRIMARY KEY (run_id),
  constraint reconciliation_runs_check CHECK (to_date >= from_date),
  constraint reconciliation_runs_ended_check CHECK ((status = 'running'::text) = (ended_at IS NULL)),
  constraint reconciliation_runs_failure_check CHECK ((status = 'failed'::text) = (failure IS NOT NULL)),
  constraint reconciliation_runs_status_check CHECK (status = ANY (ARRAY['running'::text, 'done'::text, 'failed'::text])),
  constraint reconciliation_runs_account_id_fkey FOREIGN KEY (account_id) REFERENCES statement_accounts(account_id),
  constraint reconciliation_runs_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint reconciliation_runs_previous_run_id_fkey FOREIGN KEY (previous_run_id) REFERENCES reconciliation_runs(run_id)
);
CREATE INDEX reconciliation_runs_by_account ON reconciliation_runs USING btree (organization_id, account_id, run_id);
CREATE UNIQUE INDEX reconciliation_runs_one_running ON reconciliation_runs USING btree (account_id) WHERE status = 'running'::text;

create table registry_events (
  event_id bigint generated always as identity not null,
  organization_id bigint,
  at timestamp with time zone default now() not null,
  actor_kind text not null,
  actor_id bigint not null,
  actor_name text not null,
  action text not null,
  subject_kind text not null,
  subject_id bigint not null,
  data jsonb default '{}'::jsonb not null,
  constraint registry_events_pkey PRIMARY KEY (event_id),
  constraint registry_events_actor_kind_check CHECK (actor_kind = ANY (ARRAY['owner'::text, 'cashier'::text, 'reconciliation_operator'::text, 'device'::text, 'registry'::text])),
  constraint registry_events_of_platform_only CHECK ((subject_kind = 'platform'::text) = (organization_id IS NULL)),
  constraint registry_events_subject_kind_check CHECK (subject_kind = ANY (ARRAY['platform'::text, 'organization'::text, 'filial'::text, 'station'::text, 'device'::text, 'enrollment_code'::text, 'user'::text, 'session'::text, 'provider_config'::text, 'catalogue_item'::text])),
  constraint registry_events_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);
CREATE INDEX registry_events_by_organization ON registry_events USING btree (organization_id, event_id);
CREATE INDEX registry_events_by_subject ON registry_events USING btree (organization_id, subject_kind, subject_id, event_id);
CREATE INDEX registry_events_of_platform ON registry_events USING btree (event_id) WHERE organization_id IS NULL;
CREATE TRIGGER registry_events_append_only BEFORE DELETE OR UPDATE ON registry_events FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER registry_events_not_truncated BEFORE TRUNCATE ON registry_events FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table relay_lease (
  is_only boolean default true not null,
  epoch bigint not null,
  holder text not null,
  lapses_at timestamp with time zone not null,
  constraint relay_lease_pkey PRIMARY KEY (is_only),
  constraint relay_lease_is_only_check CHECK (is_only)
) with (fillfactor=20, autovacuum_vacuum_threshold=1000);

create unlogged table request_claims (
  request_id text not null,
  claimed_at timestamp with time zone default now() not null,
  constraint request_claims_pkey PRIMARY KEY (request_id)
);
CREATE INDEX request_claims_claimed_at ON request_claims USING btree (claimed_at);

create table robotics_consumers (
  consumer_id bigint generated always as identity not null,
  organization_id bigint not null,
  filial_id bigint not null,
  name text not null,
  mode text not null,
  status text default 'active'::text not null,
  credential_hash bytea not null,
  credential_created_at timestamp with time zone default now() not null,
  created_at timestamp with time zone default now() not null,
  constraint robotics_consumers_pkey PRIMARY KEY (consumer_id),
  constraint robotics_consumers_credential_hash_check CHECK (octet_length(credential_hash) = 32),
  constraint robotics_consumers_mode_check CHECK (mode = ANY (ARRAY['test'::text, 'live'::text])),
  constraint robotics_consumers_status_check CHECK (status = ANY (ARRAY['active'::text, 'suspended'::text])),
  constraint robotics_consumers_organization_id_filial_id_fkey FOREIGN KEY (organization_id, filial_id) REFERENCES filials(organization_id, filial_id),
  constraint robotics_consumers_credential_hash_key UNIQUE (credential_hash),
  constraint robotics_consumers_organization_id_consumer_id_key UNIQUE (organization_id, consumer_id)
);
CREATE INDEX robotics_consumers_by_filial ON robotics_consumers USING btree (filial_id, consumer_id);
CREATE INDEX robotics_consumers_by_organization ON robotics_consumers USING btree (organization_id, consumer_id);

create table robotics_filials (
  filial_id bigint not null,
  organization_id bigint not null,
  is_paused boolean default false not null,
  reason text,
  changed_at timestamp with time zone,
  changed_by_id bigint,
  changed_by_name text,
  last_display_number bigint default 0 not null,
  constraint robotics_filials_pkey PRIMARY KEY (filial_id),
  constraint robotics_filials_filial_id_fkey FOREIGN KEY (filial_id) REFERENCES filials(filial_id),
  constraint robotics_filials_organization_id_filial_id_fkey FOREIGN KEY (organization_id, filial_id) REFERENCES filials(organization_id, filial_id)
);

create table robotics_trail (
  event_id bigint generated always as identity not null,
  organization_id bigint not null,
  at timestamp with time zone default now() not null,
  actor_kind text not null,
  actor_id bigint not null,
  actor_name text not null,
  action text not null,
  subject_kind text not null,
  subject_id bigint not null,
  data jsonb default '{}'::jsonb not null,
  constraint robotics_trail_pkey PRIMARY KEY (event_id),
  constraint robotics_trail_subject_kind_check CHECK (subject_kind = ANY (ARRAY['robotics_consumer'::text, 'serving_task'::text, 'filial_robotics'::text, 'webhook_endpoint'::text])),
  constraint robotics_trail_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);
CREATE INDEX robotics_trail_by_organization ON robotics_trail USING btree (organization_id, event_id);
CREATE TRIGGER robotics_trail_append_only BEFORE DELETE OR UPDATE ON robotics_trail FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER robotics_trail_not_truncated BEFORE TRUNCATE ON robotics_trail FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table run_differences (
  run_id bigint not null,
  kind text not null,
  subject_key text not null,
  station_id bigint not null,
  evidence_hash bytea not null,
  issue_id bigint not null,
  on_date date not null,
  amount_minor bigint,
  currency text,
  constraint run_differences_pkey PRIMARY KEY (run_id, kind, subject_key, station_id),
  constraint run_differences_run_id_fkey FOREIGN KEY (run_id) REFERENCES reconciliation_runs(run_id) ON DELETE CASCADE
);
CREATE INDEX run_differences_by_issue ON run_differences USING btree (issue_id, run_id);

create table sandbox_provider_accounts (
  account_id text not null,
  name text not null,
  api_key_hash bytea not null,
  secret_generation integer default 1 not null,
  previous_secret_until timestamp with time zone,
  statement_lines bigint default 0 not null,
  created_at timestamp with time zone default now() not null,
  constraint sandbox_provider_accounts_pkey PRIMARY KEY (account_id),
  constraint sandbox_provider_accounts_api_key_hash_check CHECK (octet_length(api_key_hash) = 32),
  constraint sandbox_provider_accounts_api_key_hash_key UNIQUE (api_key_hash)
);

create table sandbox_provider_callbacks (
  callback_id bigint generated always as identity not null,
  payment_id text not null,
  event_id text not null,
  body text not null,
  due_at timestamp with time zone default now() not null,
  attempts integer default 0 not null,
  done_at timestamp with time zone,
  last_answer text,
  constraint sandbox_provider_callbacks_pkey PRIMARY KEY (callback_id),
  constraint sandbox_provider_callbacks_payment_id_fkey FOREIGN KEY (payment_id) REFERENCES sandbox_provider_payments(payment_id)
);
CREATE INDEX sandbox_provider_callbacks_by_payment ON sandbox_provider_callbacks USING btree (payment_id);
CREATE INDEX sandbox_provider_callbacks_due ON sandbox_provider_callbacks USING btree (due_at) WHERE done_at IS NULL;

create table sandbox_provider_payments (
  payment_id text not null,
  account_id text not null,
  reference text not null,
  amount_minor bigint not null,
  currency text not null,
  description text not null,
  callback_url text not null,
  status text default 'pending'::text not null,
  scenario text not null,
  decides_at timestamp with time zone,
  expires_at timestamp with time zone not null,
  decided_at timestamp with time zone,
  asserted jsonb,
  statement_line bigint,
  created_at timestamp with time zone default now() not null,
  request_id text,
  constraint sandbox_provider_payments_pkey PRIMARY KEY (payment_id),
  constraint sandbox_provider_payments_amount_minor_check CHECK (amount_minor >= 0),
  constraint sandbox_provider_payments_status_check CHECK (status = ANY (ARRAY['pending'::text, 'paid'::text, 'declined'::text, 'cancelled'::text, 'expired'::text])),
  constraint sandbox_provider_payments_account_id_fkey FOREIGN KEY (account_id) REFERENCES sandbox_provider_accounts(account_id),
  constraint sandbox_provider_payments_account_id_reference_key UNIQUE (account_id, reference),
  constraint sandbox_provider_payments_account_id_statement_line_key UNIQUE (account_id, statement_line)
);
CREATE INDEX sandbox_provider_payments_by_age ON sandbox_provider_payments USING btree (created_at);
CREATE INDEX sandbox_provider_payments_deciding ON sandbox_provider_payments USING btree (decides_at) WHERE decides_at IS NOT NULL;

create table sandboxes (
  sandbox_id bigint generated always as identity not null,
  organization_id bigint not null,
  station_id bigint not null,
  display_id bigint not null,
  companion_id bigint not null,
  cashier_id bigint not null,
  config_id bigint not null,
  owns_config boolean not null,
  created_at timestamp with time zone default now() not null,
  reset_at timestamp with time zone,
  deleted_at timestamp with time zone,
  kept_settings jsonb,
  constraint sandboxes_pkey PRIMARY KEY (sandbox_id),
  constraint sandboxes_cashier_id_fkey FOREIGN KEY (cashier_id) REFERENCES users(user_id),
  constraint sandboxes_config_id_fkey FOREIGN KEY (config_id) REFERENCES provider_configs(config_id),
  constraint sandboxes_organization_id_companion_id_fkey FOREIGN KEY (organization_id, companion_id) REFERENCES devices(organization_id, device_id),
  constraint sandboxes_organization_id_display_id_fkey FOREIGN KEY (organization_id, display_id) REFERENCES devices(organization_id, device_id),
  constraint sandboxes_organization_id_station_id_fkey FOREIGN KEY (organization_id, station_id) REFERENCES stations(organization_id, station_id),
  constraint sandboxes_station_id_key UNIQUE (station_id)
);
CREATE INDEX sandboxes_of_organization ON sandboxes USING btree (organization_id, sandbox_id) WHERE deleted_at IS NULL;

create table serving_tasks (
  task_id bigint generated always as identity not null,
  organization_id bigint not null,
  filial_id bigint not null,
  consumer_id bigint not null,
  display_number bigint not null,
  leg text not null,
  status text default 'offered'::text not null,
  manifest jsonb not null,
  destination jsonb not null,
  offered_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  accepted_at timestamp with time zone,
  ended_at timestamp with time zone,
  cancel_reason text,
  idempotency_key text,
  request_hash bytea,
  constraint serving_tasks_pkey PRIMARY KEY (task_id),
  constraint serving_tasks_check CHECK ((idempotency_key IS NULL) = (request_hash IS NULL)),
  constraint serving_tasks_check1 CHECK ((ended_at IS NOT NULL) = (status = ANY (ARRAY['completed'::text, 'cancelled'::text, 'expired'::text]))),
  constraint serving_tasks_leg_check CHECK (leg = ANY (ARRAY['kitchen_to_table'::text, 'kitchen_to_pickup'::text, 'table_to_kitchen'::text, 'courier'::text])),
  constraint serving_tasks_status_check CHECK (status = ANY (ARRAY['offered'::text, 'accepted'::text, 'completed'::text, 'cancelled'::text, 'expired'::text])),
  constraint serving_tasks_organization_id_consumer_id_fkey FOREIGN KEY (organization_id, consumer_id) REFERENCES robotics_consumers(organization_id, consumer_id),
  constraint serving_tasks_organization_id_filial_id_fkey FOREIGN KEY (organization_id, filial_id) REFERENCES filials(organization_id, filial_id),
  constraint serving_tasks_filial_id_display_number_key UNIQUE (filial_id, display_number),
  constraint serving_tasks_organization_id_idempotency_key_key UNIQUE (organization_id, idempotency_key)
);
CREATE INDEX serving_tasks_by_consumer ON serving_tasks USING btree (consumer_id, status, task_id);
CREATE INDEX serving_tasks_by_organization ON serving_tasks USING btree (organization_id, task_id);
CREATE INDEX serving_tasks_current ON serving_tasks USING btree (consumer_id, task_id) WHERE status = ANY (ARRAY['offered'::text, 'accepted'::text]);
CREATE INDEX serving_tasks_due ON serving_tasks USING btree (expires_at) WHERE status = 'offered'::text;
CREATE INDEX serving_tasks_ended ON serving_tasks USING btree (ended_at) WHERE ended_at IS NOT NULL;

create table session_stations (
  session_id bigint not null,
  station_id bigint not null,
  bound_at timestamp with time zone default now() not null,
  constraint session_stations_pkey PRIMARY KEY (session_id, station_id),
  constraint session_stations_session_id_fkey FOREIGN KEY (session_id) REFERENCES sessions(session_id) ON DELETE CASCADE,
  constraint session_stations_station_id_fkey FOREIGN KEY (station_id) REFERENCES stations(station_id)
);

create table sessions (
  session_id bigint generated always as identity not null,
  organization_id bigint not null,
  user_id bigint not null,
  token_hash bytea not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  constraint sessions_pkey PRIMARY KEY (session_id),
  constraint sessions_token_hash_check CHECK (octet_length(token_hash) = 32),
  constraint sessions_organization_id_user_id_fkey FOREIGN KEY (organization_id, user_id) REFERENCES users(organization_id, user_id),
  constraint sessions_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX sessions_by_expiry ON sessions USING btree (expires_at);
CREATE INDEX sessions_open_by_user ON sessions USING btree (user_id, session_id) WHERE ended_at IS NULL;

create table settled_references (
  filial_id bigint not null,
  reference_key text not null,
  transaction_id bigint not null,
  settled_at timestamp with time zone default clock_timestamp() not null,
  constraint settled_references_pkey PRIMARY KEY (filial_id, reference_key, transaction_id),
  constraint settled_references_reference_key_check CHECK (reference_key <> ''::text),
  constraint settled_references_transaction_id_key UNIQUE (transaction_id)
);
CREATE TRIGGER settled_references_append_only BEFORE DELETE OR UPDATE ON settled_references FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER settled_references_not_truncated BEFORE TRUNCATE ON settled_references FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table settlement_refusals (
  intent_id bigint not null,
  attestation_id text not null,
  refusal text not null,
  used_by bigint,
  refused_at timestamp with time zone default clock_timestamp() not null,
  constraint settlement_refusals_pkey PRIMARY KEY (intent_id, attestation_id),
  constraint settlement_refusals_refusal_check CHECK (refusal = ANY (ARRAY['order_changed'::text, 'order_already_paid'::text, 'order_voided'::text, 'order_unknown'::text, 'money_already_used'::text, 'reference_already_used'::text])),
  constraint settlement_refusals_used_by_check CHECK ((refusal = 'reference_already_used'::text) = (used_by IS NOT NULL))
);
CREATE TRIGGER settlement_refusals_append_only BEFORE DELETE OR UPDATE ON settlement_refusals FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER settlement_refusals_not_truncated BEFORE TRUNCATE ON settlement_refusals FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table statement_accounts (
  account_id bigint generated always as identity not null,
  organization_id bigint not null,
  filial_id bigint,
  provider text not null,
  reference text not null,
  name text not null,
  currency text,
  mode text not null,
  config_id bigint,
  settlement_delay_days integer default 3 not null,
  time_zone text,
  created_at timestamp with time zone default now() not null,
  last_day date,
  constraint statement_accounts_pkey PRIMARY KEY (account_id),
  constraint statement_accounts_currency_check CHECK (currency ~ '^[A-Z]{3}$'::text),
  constraint statement_accounts_mode_check CHECK (mode = ANY (ARRAY['test'::text, 'live'::text])),
  constraint statement_accounts_name_check CHECK (name <> ''::text),
  constraint statement_accounts_provider_check CHECK (provider <> ''::text),
  constraint statement_accounts_reference_check CHECK (reference <> ''::text),
  constraint statement_accounts_settlement_delay_days_check CHECK (settlement_delay_days >= 0 AND settlement_delay_days <= 90),
  constraint statement_accounts_organization_id_config_id_fkey FOREIGN KEY (organization_id, config_id) REFERENCES provider_configs(organization_id, config_id),
  constraint statement_accounts_organization_id_filial_id_fkey FOREIGN KEY (organization_id, filial_id) REFERENCES filials(organization_id, filial_id),
  constraint statement_accounts_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint statement_accounts_organization_id_account_id_key UNIQUE (organization_id, account_id),
  constraint statement_accounts_organization_id_mode_provider_reference_key UNIQUE (organization_id, mode, provider, reference)
);
CREATE UNIQUE INDEX statement_accounts_by_config ON statement_accounts USING btree (config_id) WHERE config_id IS NOT NULL;

create table statement_imports (
  import_id bigint generated always as identity not null,
  organization_id bigint not null,
  account_id bigint not null,
  sha256 bytea not null,
  file_name text not null,
  size_bytes bigint not null,
  object_name text,
  format text,
  format_version integer,
  encoding text,
  mapping_id bigint,
  status text default 'needs_format'::text not null,
  status_code text,
  status_detail text,
  uploaded_by bigint not null,
  uploaded_at timestamp with time zone default now() not null,
  leased_by uuid,
  leased_until timestamp with time zone,
  read_bytes bigint default 0 not null,
  records bigint default 0 not null,
  lines_new bigint default 0 not null,
  lines_known bigint default 0 not null,
  malformed bigint default 0 not null,
  totals jsonb default '[]'::jsonb not null,
  from_date date,
  to_date date,
  ended_at timestamp with time zone,
  released_by bigint,
  released_at timestamp with time zone,
  release_reason text,
  withdrawn_by bigint,
  withdrawn_at timestamp with time zone,
  withdrawal_reason text,
  attempts integer default 0 not null,
  has_payouts boolean default true not null,
  taken_at timestamp with time zone,
  withdrawal_request_id text,
  request_id text,
  constraint statement_imports_pkey PRIMARY KEY (import_id),
  constraint statement_imports_code_check CHECK ((status <> ALL (ARRAY['held'::text, 'refused'::text])) OR status_code IS NOT NULL),
  constraint statement_imports_format_check CHECK ((status = ANY (ARRAY['needs_format'::text, 'refused'::text, 'withdrawing'::text, 'withdrawn'::text])) OR format IS NOT NULL AND format_version IS NOT NULL AND encoding IS NOT NULL),
  constraint statement_imports_release_check CHECK ((released_by IS NULL) = (released_at IS NULL) AND (released_by IS NULL) = (release_reason IS NULL)),
  constraint statement_imports_sha256_check CHECK (octet_length(sha256) = 32),
  constraint statement_imports_size_bytes_check CHECK (size_bytes >= 0),
  constraint statement_imports_status_check CHECK (status = ANY (ARRAY['needs_format'::text, 'waiting'::text, 'importing'::text, 'held'::text, 'imported'::text, 'refused'::text, 'withdrawing'::text, 'withdrawn'::text])),
  constraint statement_imports_withdrawal_check CHECK ((status = ANY (ARRAY['withdrawing'::text, 'withdrawn'::text])) = (withdrawn_by IS NOT NULL) AND (withdrawn_by IS NULL) = (withdrawn_at IS NULL) AND (withdrawn_by IS NULL) = (withdrawal_reason IS NULL)),
  constraint statement_imports_organization_id_account_id_fkey FOREIGN KEY (organization_id, account_id) REFERENCES statement_accounts(organization_id, account_id),
  constraint statement_imports_organization_id_mapping_id_fkey FOREIGN KEY (organization_id, mapping_id) REFERENCES statement_mappings(organization_id, mapping_id),
  constraint statement_imports_organization_id_import_id_key UNIQUE (organization_id, import_id)
);
CREATE INDEX statement_imports_by_account ON statement_imports USING btree (organization_id, account_id, import_id);
CREATE INDEX statement_imports_by_turn ON statement_imports USING btree (organization_id, taken_at) WHERE taken_at IS NOT NULL;
CREATE INDEX statement_imports_files ON statement_imports USING btree (object_name) WHERE object_name IS NOT NULL;
CREATE UNIQUE INDEX statement_imports_one_of_file ON statement_imports USING btree (account_id, sha256) WHERE status <> ALL (ARRAY['refused'::text, 'withdrawn'::text]);
CREATE INDEX statement_imports_waiting ON statement_imports USING btree (organization_id, import_id) WHERE status = ANY (ARRAY['waiting'::text, 'importing'::text]);
CREATE INDEX statement_imports_withdrawing ON statement_imports USING btree (import_id) WHERE status = 'withdrawing'::text;
CREATE TRIGGER statement_imports_want_run AFTER UPDATE OF status ON statement_imports FOR EACH ROW WHEN (new.status IS DISTINCT FROM old.status AND (new.status = ANY (ARRAY['imported'::text, 'withdrawn'::text]))) EXECUTE FUNCTION want_run_of_import();

create table statement_line_sources (
  import_id bigint not null,
  "position" bigint not null,
  line_id bigint not null,
  constraint statement_line_sources_pkey PRIMARY KEY (import_id, "position"),
  constraint statement_line_sources_position_check CHECK ("position" > 0)
);
CREATE INDEX statement_line_sources_by_line ON statement_line_sources USING btree (line_id);

create table statement_lines (
  line_id bigint generated always as identity not null,
  organization_id bigint not null,
  account_id bigint not null,
  fingerprint bytea not null,
  fingerprint_version smallint not null,
  ordinal integer default 0 not null,
  kind text not null,
  provider_type text not null,
  amount_minor bigint not null,
  currency text not null,
  fee_minor bigint,
  net_minor bigint,
  tip_minor bigint,
  booked_on date not null,
  value_on date,
  occurred_at timestamp with time zone,
  provider_reference text not null,
  payment_reference text not null,
  merchant_reference text not null,
  payout_reference text not null,
  terminal text not null,
  account text not null,
  text text not null,
  details jsonb default '{}'::jsonb not null,
  created_at timestamp with time zone default now() not null,
  payout_import_id bigint,
  constraint statement_lines_pkey PRIMARY KEY (line_id),
  constraint statement_lines_currency_check CHECK (currency ~ '^[A-Z]{3}$'::text),
  constraint statement_lines_fingerprint_check CHECK (octet_length(fingerprint) = 32),
  constraint statement_lines_kind_check CHECK (kind = ANY (ARRAY['payment'::text, 'refund'::text, 'refund_reversal'::text, 'chargeback'::text, 'chargeback_reversal'::text, 'fee'::text, 'payout'::text, 'planned_payout'::text, 'payout_reversal'::text, 'adjustment'::text, 'conversion'::text, 'bank_credit'::text, 'bank_debit'::text, 'cash_payment'::text, 'not_money'::text])),
  constraint statement_lines_ordinal_check CHECK (ordinal >= 0),
  constraint statement_lines_account_id_fingerprint_key UNIQUE (account_id, fingerprint)
);
CREATE INDEX statement_lines_bank_credits ON statement_lines USING btree (account_id) WHERE kind = 'bank_credit'::text;
CREATE INDEX statement_lines_by_day ON statement_lines USING btree (account_id, booked_on, line_id);
CREATE INDEX statement_lines_by_merchant_reference ON statement_lines USING btree (merchant_reference, account_id) WHERE merchant_reference <> ''::text;
CREATE INDEX statement_lines_by_payment_reference ON statement_lines USING btree (payment_reference, account_id) WHERE payment_reference <> ''::text;
CREATE INDEX statement_lines_by_payout ON statement_lines USING btree (payout_reference, account_id) WHERE payout_reference <> ''::text;
CREATE INDEX statement_lines_by_provider_reference ON statement_lines USING btree (provider_reference, account_id) WHERE provider_reference <> ''::text;
CREATE TRIGGER statement_lines_closed BEFORE DELETE OR UPDATE ON statement_lines FOR EACH ROW EXECUTE FUNCTION refuse_change_of_closed_line();

create table statement_malformed (
  import_id bigint not null,
  "position" bigint not null,
  column_name text not null,
  reason text not null,
  raw text not null,
  constraint statement_malformed_pkey PRIMARY KEY (import_id, "position"),
  constraint statement_malformed_position_check CHECK ("position" > 0),
  constraint statement_malformed_import_id_fkey FOREIGN KEY (import_id) REFERENCES statement_imports(import_id)
);

create table statement_mappings (
  mapping_id bigint generated always as identity not null,
  organization_id bigint not null,
  name text not null,
  version integer not null,
  definition jsonb not null,
  created_by bigint not null,
  created_at timestamp with time zone default now() not null,
  constraint statement_mappings_pkey PRIMARY KEY (mapping_id),
  constraint statement_mappings_name_check CHECK (name <> ''::text),
  constraint statement_mappings_version_check CHECK (version > 0),
  constraint statement_mappings_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint statement_mappings_organization_id_mapping_id_key UNIQUE (organization_id, mapping_id),
  constraint statement_mappings_organization_id_name_version_key UNIQUE (organization_id, name, version)
);

create table statement_matches (
  match_id bigint generated always as identity not null,
  account_id bigint not null,
  run_id bigint not null,
  tier text not null,
  score integer not null,
  explanation jsonb not null,
  created_at timestamp with time zone default now() not null,
  constraint statement_matches_pkey PRIMARY KEY (match_id),
  constraint statement_matches_score_check CHECK (score >= 0 AND score <= 100),
  constraint statement_matches_tier_check CHECK (tier = ANY (ARRAY['exact'::text, 'confirmed'::text]))
);
CREATE INDEX statement_matches_by_account ON statement_matches USING btree (account_id, match_id);

create table station_events (
  station_id bigint not null,
  version bigint not null,
  ordinal integer not null,
  organization_id bigint not null,
  intent_id bigint,
  at timestamp with time zone not null,
  type text not null,
  actor_kind text not null,
  actor_id bigint not null,
  actor_name text not null,
  data jsonb not null,
  machine_version integer not null,
  stream_sequence bigint not null,
  constraint station_events_pkey PRIMARY KEY (station_id, version, ordinal),
  constraint station_events_ordinal_check CHECK (ordinal >= 0),
  constraint station_events_version_check CHECK (version > 0)
);
CREATE INDEX station_events_by_intent ON station_events USING btree (intent_id) WHERE intent_id IS NOT NULL;
CREATE INDEX station_events_by_time ON station_events USING brin (at);
CREATE INDEX station_events_late ON station_events USING btree (organization_id, at) WHERE type = 'late_evidence_kept'::text;
CREATE INDEX station_events_log_lost ON station_events USING btree (station_id) WHERE type = 'log_lost'::text;
CREATE TRIGGER station_events_never_change BEFORE UPDATE ON station_events FOR EACH ROW EXECUTE FUNCTION refuse_change();

create table stations (
  station_id bigint generated always as identity not null,
  organization_id bigint not null,
  filial_id bigint not null,
  name text not null,
  currency text not null,
  status text default 'active'::text not null,
  sandbox boolean default false not null,
  seed text,
  revision bigint default 1 not null,
  provider_told boolean default false not null,
  created_at timestamp with time zone default now() not null,
  constraint stations_pkey PRIMARY KEY (station_id),
  constraint stations_currency_check CHECK (currency ~ '^[A-Z]{3}$'::text),
  constraint stations_status_check CHECK (status = ANY (ARRAY['active'::text, 'suspended'::text, 'closed'::text])),
  constraint stations_organization_id_filial_id_fkey FOREIGN KEY (organization_id, filial_id) REFERENCES filials(organization_id, filial_id),
  constraint stations_organization_id_station_id_key UNIQUE (organization_id, station_id)
);
CREATE INDEX stations_by_filial ON stations USING btree (organization_id, filial_id, station_id);
CREATE UNIQUE INDEX stations_seeded ON stations USING btree (organization_id, seed) WHERE seed IS NOT NULL AND status <> 'closed'::text;
CREATE INDEX stations_without_provider ON stations USING btree (station_id) WHERE NOT provider_told;

create table transactions (
  transaction_id bigint generated always as identity not null,
  organization_id bigint not null,
  order_id bigint not null,
  station_id bigint not null,
  intent_id bigint not null,
  kind text default 'sale'::text not null,
  route text not null,
  amount_minor bigint not null,
  currency text not null,
  reference text not null,
  attested_by bigint not null,
  money_key text,
  settled_at timestamp with time zone default clock_timestamp() not null,
  constraint transactions_pkey PRIMARY KEY (transaction_id),
  constraint transactions_amount_minor_check CHECK (amount_minor >= 0),
  constraint transactions_currency_check CHECK (currency ~ '^[A-Z]{3}$'::text),
  constraint transactions_kind_check CHECK (kind = 'sale'::text),
  constraint transactions_money_key_check CHECK (money_key <> ''::text),
  constraint transactions_route_check CHECK (route = ANY (ARRAY['smart_pos'::text, 'dynamic_qr'::text, 'attested_terminal'::text, 'cash'::text])),
  constraint transactions_organization_id_order_id_fkey FOREIGN KEY (organization_id, order_id) REFERENCES orders(organization_id, order_id),
  constraint transactions_intent_id_key UNIQUE (intent_id)
);
CREATE INDEX transactions_by_settlement ON transactions USING btree (organization_id, settled_at);
CREATE UNIQUE INDEX transactions_one_sale_per_order ON transactions USING btree (order_id) WHERE kind = 'sale'::text;
CREATE TRIGGER transactions_append_only BEFORE DELETE OR UPDATE ON transactions FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER transactions_not_truncated BEFORE TRUNCATE ON transactions FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

create table users (
  user_id bigint generated always as identity not null,
  organization_id bigint not null,
  email text not null,
  name text not null,
  role text not null,
  status text default 'active'::text not null,
  password_hash text not null,
  created_at timestamp with time zone default now() not null,
  constraint users_pkey PRIMARY KEY (user_id),
  constraint users_email_check CHECK (email = lower(email)),
  constraint users_role_check CHECK (role = ANY (ARRAY['owner'::text, 'cashier'::text, 'reconciliation_operator'::text])),
  constraint users_status_check CHECK (status = ANY (ARRAY['active'::text, 'suspended'::text])),
  constraint users_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id),
  constraint users_email_key UNIQUE (email),
  constraint users_organization_id_user_id_key UNIQUE (organization_id, user_id)
);

create table wanted_runs (
  account_id bigint not null,
  organization_id bigint not null,
  from_date date not null,
  to_date date not null,
  first_wanted_at timestamp with time zone default clock_timestamp() not null,
  last_wanted_at timestamp with time zone default clock_timestamp() not null,
  attempts integer default 0 not null,
  is_follower boolean default false not null,
  constraint wanted_runs_pkey PRIMARY KEY (account_id),
  constraint wanted_runs_check CHECK (to_date >= from_date),
  constraint wanted_runs_account_id_fkey FOREIGN KEY (account_id) REFERENCES statement_accounts(account_id)
);
CREATE INDEX wanted_runs_by_age ON wanted_runs USING btree (last_wanted_at);

create table webhook_attempts (
  attempt_id bigint not null,
  delivery_id bigint not null,
  started_at timestamp with time zone not null,
  address text,
  dns_ms real,
  connect_ms real,
  tls_ms real,
  first_byte_ms real,
  total_ms real,
  status smallint,
  error text,
  response_body text default ''::text not null,
  is_truncated boolean default false not null,
  is_manual boolean default false not null,
  constraint webhook_attempts_pkey PRIMARY KEY (delivery_id, attempt_id)
);

create table webhook_deliveries (
  delivery_id bigint generated by default as identity not null,
  organization_id bigint not null,
  consumer_id bigint not null,
  endpoint_id bigint,
  event_id bigint,
  event_type text not null,
  body text not null,
  status text not null,
  attempts integer default 0 not null,
  due_at timestamp with time zone,
  manual_of text,
  asked integer default 0 not null,
  manual_attempts integer default 0 not null,
  planned_at timestamp with time zone,
  lapses_at timestamp with time zone,
  created_at timestamp with time zone default clock_timestamp() not null,
  delivered_at timestamp with time zone,
  request_id text,
  ended_at timestamp with time zone,
  constraint webhook_deliveries_pkey PRIMARY KEY (delivery_id),
  constraint webhook_deliveries_check CHECK ((due_at IS NOT NULL) = (status = 'pending'::text)),
  constraint webhook_deliveries_check1 CHECK (endpoint_id IS NOT NULL OR status = 'unsent'::text),
  constraint webhook_deliveries_manual_of_check CHECK (manual_of = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'lapsed'::text, 'unsent'::text])),
  constraint webhook_deliveries_status_check CHECK (status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'lapsed'::text, 'unsent'::text])),
  constraint webhook_deliveries_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(endpoint_id)
) with (fillfactor=75, autovacuum_vacuum_scale_factor=0.02);
CREATE INDEX webhook_deliveries_by_consumer ON webhook_deliveries USING btree (consumer_id, delivery_id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries USING btree (endpoint_id, due_at, delivery_id) WHERE status = 'pending'::text;
CREATE INDEX webhook_deliveries_due_owners ON webhook_deliveries USING btree (organization_id, due_at) WHERE status = 'pending'::text;
CREATE INDEX webhook_deliveries_lapsing ON webhook_deliveries USING btree (lapses_at) WHERE status = 'pending'::text AND lapses_at IS NOT NULL;
CREATE INDEX webhook_deliveries_old ON webhook_deliveries USING brin (created_at) WITH (autosummarize='true');

create table webhook_endpoints (
  endpoint_id bigint generated always as identity not null,
  organization_id bigint not null,
  consumer_id bigint not null,
  filial_id bigint not null,
  url text not null,
  status text default 'active'::text not null,
  disabled_reason text,
  created_at timestamp with time zone default now() not null,
  deleted_at timestamp with time zone,
  consecutive_failures integer default 0 not null,
  times_opened integer default 0 not null,
  open_until timestamp with time zone,
  failing_since timestamp with time zone,
  failures_since_success integer default 0 not null,
  last_success_at timestamp with time zone,
  last_failure_at timestamp with time zone,
  generation integer default 1 not null,
  constraint webhook_endpoints_pkey PRIMARY KEY (endpoint_id),
  constraint webhook_endpoints_check CHECK ((disabled_reason IS NOT NULL) = (status = 'disabled'::text)),
  constraint webhook_endpoints_status_check CHECK (status = ANY (ARRAY['active'::text, 'paused'::text, 'disabled'::text])),
  constraint webhook_endpoints_filial_id_fkey FOREIGN KEY (filial_id) REFERENCES filials(filial_id),
  constraint webhook_endpoints_organization_id_consumer_id_fkey FOREIGN KEY (organization_id, consumer_id) REFERENCES robotics_consumers(organization_id, consumer_id),
  constraint webhook_endpoints_organization_id_endpoint_id_key UNIQUE (organization_id, endpoint_id)
);
CREATE INDEX webhook_endpoints_by_consumer ON webhook_endpoints USING btree (consumer_id, endpoint_id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_by_organization ON webhook_endpoints USING btree (organization_id, endpoint_id) WHERE deleted_at IS NULL;

create table webhook_events (
  event_id bigint not null,
  organization_id bigint not null,
  filial_id bigint not null,
  event_type text not null,
  taken_at timestamp with time zone default now() not null,
  constraint webhook_events_pkey PRIMARY KEY (event_id)
);
CREATE INDEX webhook_events_by_time ON webhook_events USING btree (taken_at);

create table webhook_owners (
  organization_id bigint not null,
  leased_by uuid,
  leased_until timestamp with time zone default '-infinity'::timestamp with time zone not null,
  constraint webhook_owners_pkey PRIMARY KEY (organization_id),
  constraint webhook_owners_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(organization_id)
);

create table webhook_redeliveries (
  delivery_id bigint not null,
  idempotency_key text not null,
  asked_at timestamp with time zone default now() not null,
  constraint webhook_redeliveries_pkey PRIMARY KEY (delivery_id, idempotency_key),
  constraint webhook_redeliveries_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES webhook_deliveries(delivery_id) ON DELETE CASCADE
);

create table webhook_secrets (
  secret_id bigint generated always as identity not null,
  endpoint_id bigint not null,
  key_id text not null,
  nonce bytea not null,
  sealed bytea not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  constraint webhook_secrets_pkey PRIMARY KEY (secret_id),
  constraint webhook_secrets_nonce_check CHECK (octet_length(nonce) = 12),
  constraint webhook_secrets_sealed_check CHECK (octet_length(sealed) > 16),
  constraint webhook_secrets_endpoint_id_fkey FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoints(endpoint_id)
);
CREATE INDEX webhook_secrets_by_endpoint ON webhook_secrets USING btree (endpoint_id, secret_id);
CREATE UNIQUE INDEX webhook_secrets_one_current ON webhook_secrets USING btree (endpoint_id) WHERE expires_at IS NULL;

create table webhook_signers (
  signer_id uuid not null,
  seen_at timestamp with time zone default now() not null,
  constraint webhook_signers_pkey PRIMARY KEY (signer_id)
);

CREATE OR REPLACE FUNCTION accounts_beside(the_account_id bigint)
 RETURNS SETOF statement_accounts
 LANGUAGE sql
 STABLE
AS $function$
  select r from statement_accounts a join statement_accounts r on r.organization_id = a.organization_id and r.mode = a.mode
    and r.account_id <> a.account_id and r.config_id is null
    and (a.filial_id is null or r.filial_id is null or r.filial_id = a.filial_id)
  where a.account_id = the_account_id and a.config_id is null
    and exists (select from statement_lines l where l.account_id = r.account_id and l.kind = 'payment')
$function$;

CREATE OR REPLACE FUNCTION add_attributed_payment()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into payments (intent_id, organization_id, filial_id, station_id, sandbox, version, route, status, amount_minor,
                        currency, order_id, order_display_number, reference, created_at, ended_at)
  select t.intent_id, t.organization_id, s.filial_id, s.station_id, s.sandbox, 0, t.route, 'succeeded', t.amount_minor,
         t.currency, t.order_id, o.display_number, left(t.reference, 255), t.settled_at, t.settled_at
  from transactions t join orders o using (order_id) join stations s on s.station_id = t.station_id
  where t.transaction_id = new.transaction_id and t.organization_id = new.organization_id
  on conflict (intent_id) do nothing;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION banks_beside(the_account_id bigint)
 RETURNS SETOF statement_accounts
 LANGUAGE sql
 STABLE
AS $function$
  select r from statement_accounts a join statement_accounts r on r.organization_id = a.organization_id and r.mode = a.mode
    and r.account_id <> a.account_id
    and (a.filial_id is null or r.filial_id is null or r.filial_id = a.filial_id)
    and (a.currency is null or r.currency is null or r.currency = a.currency)
  where a.account_id = the_account_id
    and exists (select from statement_lines l where l.account_id = r.account_id and l.kind = 'bank_credit')
$function$;

CREATE OR REPLACE FUNCTION closing_issue(i issues)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  select '{"amount_minor":' || coalesce('"' || i.amount_minor || '"', 'null')
    || ',"currency":' || coalesce(to_json(i.currency)::text, 'null')
    || ',"evidence_hash":"' || encode(i.evidence_hash, 'hex') || '"'
    || ',"issue_id":' || i.issue_id
    || ',"kind":' || to_json(i.kind)::text
    || ',"opened_at":"' || to_char(i.opened_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"'
    || ',"order_id":' || coalesce(i.order_id::text, 'null')
    || ',"provider_reference":' || to_json(i.provider_reference)::text
    || ',"reason":' || coalesce(to_json(i.reason)::text, 'null')
    || ',"resolved_at":' || coalesce('"' || to_char(i.resolved_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"', 'null')
    || ',"resolved_by":' || coalesce(i.resolved_by::text, 'null')
    || ',"station_id":' || coalesce(i.station_id::text, 'null')
    || ',"status":' || to_json(i.status)::text
    || ',"subject_key":' || to_json(i.subject_key)::text
    || ',"supersedes_id":' || coalesce(i.supersedes_id::text, 'null')
    || ',"transaction_id":' || coalesce(i.transaction_id::text, 'null')
    || '}'
$function$;

CREATE OR REPLACE FUNCTION closing_line(l statement_lines)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  select '{"account":' || to_json(l.account)::text
    || ',"amount_minor":"' || l.amount_minor || '"'
    || ',"booked_on":"' || to_char(l.booked_on, 'YYYY-MM-DD') || '"'
    || ',"currency":' || to_json(l.currency)::text
    || ',"details":{' || (
      select coalesce(string_agg(to_json(key)::text || ':' || to_json(value)::text, ',' order by key collate "C"), '')
      from jsonb_each_text(l.details)) || '}'
    || ',"fee_minor":' || coalesce('"' || l.fee_minor || '"', 'null')
    || ',"fingerprint":"' || encode(l.fingerprint, 'hex') || '"'
    || ',"kind":' || to_json(l.kind)::text
    || ',"line_id":' || l.line_id
    || ',"merchant_reference":' || to_json(l.merchant_reference)::text
    || ',"net_minor":' || coalesce('"' || l.net_minor || '"', 'null')
    || ',"occurred_at":' || coalesce('"' || to_char(l.occurred_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"', 'null')
    || ',"payment_reference":' || to_json(l.payment_reference)::text
    || ',"payout_reference":' || to_json(l.payout_reference)::text
    || ',"provider_reference":' || to_json(l.provider_reference)::text
    || ',"provider_type":' || to_json(l.provider_type)::text
    || ',"terminal":' || to_json(l.terminal)::text
    || ',"text":' || to_json(l.text)::text
    || ',"tip_minor":' || coalesce('"' || l.tip_minor || '"', 'null')
    || ',"value_on":' || coalesce('"' || to_char(l.value_on, 'YYYY-MM-DD') || '"', 'null')
    || '}'
$function$;

CREATE OR REPLACE FUNCTION comparable_reference(the_reference text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select case when the_reference ~ '^[!-~]+$' then the_reference else substr(provider_money_name('money:' || the_reference), 7) end
$function$;

CREATE OR REPLACE FUNCTION covered_days(the_account_id bigint, the_gap_days integer)
 RETURNS datemultirange
 LANGUAGE sql
 STABLE
AS $function$
  select coalesce(range_agg(daterange(lower(days), upper(days) - the_gap_days)), '{}') from unnest((
    select range_agg(days) from (
      select daterange(from_date, to_date + 1 + the_gap_days) as days from statement_imports
        where account_id = the_account_id and status = 'imported' and from_date is not null
      union all
      select daterange(last_day + 1, null) from statement_accounts
        where account_id = the_account_id and last_day is not null) each)) as days
$function$;

CREATE OR REPLACE FUNCTION days_of_issue(i issues, the_zone text)
 RETURNS datemultirange
 LANGUAGE sql
 STABLE
AS $function$
  select coalesce(
    case when i.kind = 'malformed_line' then (
      select range_agg(daterange(f.from_date, f.to_date, '[]')) from statement_imports f
      where f.import_id = any (malformed_imports(i.evidence)) and f.status <> 'withdrawn' and f.from_date <= f.to_date) end,
    (select datemultirange(daterange(day, day, '[]')) from (select issue_day(i, the_zone) as day offset 0) it))
$function$;

CREATE OR REPLACE FUNCTION expected_payments(the_account_id bigint, the_from date, the_to date)
 RETURNS TABLE(payment_key text, source text, own boolean, in_filial boolean, issue_id bigint, station_id bigint, intent_id bigint, order_id bigint, route text, amount_minor bigint, currency text, provider_key text, our_key text, typed_key text, settled_on date, settled_at timestamp with time zone)
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  account statement_accounts;
  shows_payments boolean;
  -- The accounts that come first: their filials (0 stands for all filials), their last days, how long their lines may take, and
  -- the days that their statements cover; null where more statements may come.
  earlier_filials bigint[];
  earlier_days date[];
  earlier_delays integer[];
  earlier_covered datemultirange[];
  has_banks_elsewhere boolean;
  zone text;
  from_at timestamptz;
  to_at timestamptz;
begin
  select * into strict account from statement_accounts a where a.account_id = the_account_id;
  zone := coalesce(account.time_zone, 'UTC');
  from_at := first_instant(the_from, zone);
  to_at := first_instant(the_to + 1, zone);
  shows_payments := account.config_id is null
    and exists (select from statement_lines l where l.account_id = account.account_id and l.kind = 'payment');
  select array_agg(coalesce(r.filial_id, 0)), array_agg(coalesce(r.last_day, 'infinity')), array_agg(r.settlement_delay_days),
      array_agg(case when not goes_on_beside(the_account_id, r.account_id) then covered_days(r.account_id, 5) end)
    into earlier_filials, earlier_days, earlier_delays, earlier_covered
    from accounts_beside(the_account_id) r where r.account_id < the_account_id;
  -- Settled orders.
  return query
    select 'transaction:' || t.transaction_id, 'transaction', case
        when t.route = 'cash' then false
        when t.route = 'dynamic_qr' then p.config_id = account.config_id
        else shows_payments and (account.filial_id is null or s.filial_id = account.filial_id)
          and day.settled_on <= coalesce(account.last_day, 'infinity')
          and not exists (
            select from unnest(earlier_filials, earlier_days, earlier_delays, earlier_covered) as earlier (filial_id, last_day, delay, covered)
            where earlier.filial_id in (0, s.filial_id) and day.settled_on <= earlier.last_day
              and (earlier.covered is null or daterange(day.settled_on, day.settled_on + 1 + earlier.delay) <@ earlier.covered)) end is true,
      account.filial_id is null or s.filial_id = account.filial_id,
      null::bigint, t.station_id, t.intent_id, t.order_id, t.route, t.amount_minor, t.currency,
      case when t.route = 'dynamic_qr' then comparable_reference(coalesce(p.paid_reference, t.reference)) end,
      comparable_reference(p.reference),
      case when t.route <> 'dynamic_qr' then coalesce(r.reference_key, typed_reference(t.reference)) end,
      day.settled_on, t.settled_at
    from transactions t
      cross join lateral (select (t.settled_at at time zone zone)::date as settled_on) day
      join stations s on s.station_id = t.station_id
      left join provider_payments p on p.intent_id = t.intent_id and t.route = 'dynamic_qr'
      left join settled_references r on r.transaction_id = t.transaction_id
    where t.organization_id = account.organization_id and t.settled_at >= from_at and t.settled_at < to_at
      and s.sandbox = (account.mode = 'test')
      -- A payment of a provider config is shown by the account of that config, where there is one.
      and (t.route <> 'dynamic_qr' or p.config_id = account.config_id
        or not exists (select from statement_accounts a where a.config_id = p.config_id));
  -- Money of a callback that has paid no order.
  return query
    select 'issue:' || i.issue_id, 'issue', false, true, i.issue_id, i.station_id, i.intent_id, i.order_id, 'dynamic_qr',
      i.amount_minor, i.currency, comparable_reference(i.provider_reference), null::text, null::text,
      (i.opened_at at time zone zone)::date, i.opened_at
    from issues i
    where i.config_id = account.config_id and i.source = 'provider' and i.opened_at >= from_at and i.opened_at < to_at
      and i.amount_minor is not null and i.currency is not null and i.provider_reference <> '' and i.kind <> 'unmatched_money'
      and i.transaction_id is null and i.status <> 'ended' and i.superseded_by is null;
  -- Reports of a success that came after the collection had ended.
  return query
    select 'late:' || e.station_id || ':' || e.version || ':' || e.ordinal, 'late_evidence', false,
      account.filial_id is null or s.filial_id = account.filial_id,
      null::bigint, e.station_id, e.intent_id, p.order_id, 'attested_terminal', p.amount_minor, p.currency,
      null::text, null::text, typed_reference(e.data ->> 'providerReference'), (e.at at time zone zone)::date, e.at
    from station_events e
      join stations s on s.station_id = e.station_id
      join payments p on p.intent_id = e.intent_id
    where e.organization_id = account.organization_id and e.type = 'late_evidence_kept' and e.at >= from_at and e.at < to_at
      and e.data ->> 'outcome' = 'reported_success' and s.sandbox = (account.mode = 'test')
      and coalesce(e.data ->> 'providerReference', '') <> ''
      and not exists (select from transactions t where t.intent_id = e.intent_id);
  -- Payouts of the organization's other accounts, which arrive at a bank.
  if exists (select from statement_lines b where b.account_id = account.account_id and b.kind = 'bank_credit') then
    select array_agg(coalesce(r.filial_id, 0)), array_agg(coalesce(r.last_day, 'infinity')), array_agg(r.settlement_delay_days),
        array_agg(case when not goes_on_beside(the_account_id, r.account_id) then covered_days(r.account_id, 5) end)
      into earlier_filials, earlier_days, earlier_delays, earlier_covered
      from banks_beside(the_account_id) r where r.account_id < the_account_id;
    -- A payout of an account that several filials share may arrive at a bank of any of them, and no bank reports it.
    has_banks_elsewhere := exists (
      select from statement_accounts b where b.organization_id = account.organization_id and b.mode = account.mode
        and b.filial_id <> account.filial_id
        and exists (select from statement_lines l where l.account_id = b.account_id and l.kind = 'bank_credit'));
    return query
      select e.payment_key, 'payout', (account.currency is null or account.currency = e.currency)
          and e.paid_on <= coalesce(account.last_day, 'infinity') and not exists (
            select from unnest(earlier_filials, earlier_days, earlier_delays, earlier_covered) as earlier (filial_id, last_day, delay, covered)
            where (earlier.filial_id = 0 or a.filial_id is null or earlier.filial_id = a.filial_id) and e.paid_on <= earlier.last_day
              and (earlier.covered is null or daterange(e.paid_on, e.paid_on + 1 + earlier.delay) <@ earlier.covered))
          and not (a.filial_id is null and has_banks_elsewhere),
        true, null::bigint, null::bigint, null::bigint, null::bigint, 'payout', e.amount_minor, e.currency, e.provider_key, e.our_key,
        null::text, e.paid_on, null::timestamptz
      from statement_accounts a cross join lateral expected_payouts(a.account_id, the_from, the_to) e
      where a.organization_id = account.organization_id and a.mode = account.mode and a.account_id <> account.account_id
        and (account.filial_id is null or a.filial_id is null or a.filial_id = account.filial_id);
  end if;
end
$function$;

CREATE OR REPLACE FUNCTION expected_payouts(the_account_id bigint, the_from date, the_to date)
 RETURNS TABLE(payment_key text, amount_minor bigint, currency text, provider_key text, our_key text, paid_on date)
 LANGUAGE sql
 STABLE
AS $function$
  with movement as (
    select l.account_id, l.booked_on, l.currency, l.payout_reference, l.provider_reference, l.fingerprint, l.kind,
      coalesce(l.value_on, l.booked_on) as paid_on,
      case when l.kind = 'payout' then -l.amount_minor else coalesce(l.net_minor, l.amount_minor + coalesce(l.fee_minor, 0)) end as minor,
      l.kind = 'payout' and l.payout_reference = '' and l.provider_reference <> '' and exists (
        select from statement_lines s where s.account_id = l.account_id and s.provider_reference = l.provider_reference
          and s.kind in ('payment', 'refund')) as is_share
    from statement_lines l
    where l.account_id = the_account_id and l.booked_on between the_from and the_to
      and (l.kind = 'payout' or (l.payout_reference <> '' and l.kind not in ('planned_payout', 'payout_reversal', 'not_money', 'bank_credit', 'bank_debit')))
  ),
  -- The lines of a payout count only where the statement has no line of the payout itself, and all have one currency.
  uses as materialized (
    select u.*, bool_or(l.kind in ('payout', 'planned_payout')) or count(distinct l.currency) filter (
        where l.kind not in ('payout_reversal', 'not_money')) > 1 as has_payout, bool_or(l.kind = 'payout_reversal') as is_reversed
    from payout_uses(the_account_id, array(select distinct payout_reference from movement where payout_reference <> '')) u
      join statement_lines l on l.payout_reference = u.payout_reference and l.booked_on between u.from_date and u.to_date
    where l.account_id = the_account_id and l.payout_reference <> '' and u.from_date <= the_to and u.to_date >= the_from
    group by u.payout_reference, u.from_date, u.to_date, u.use_day
  ),
  counted as (
    select m.*, case when m.payout_reference <> '' then concat_ws(':', 'reference', m.payout_reference, m.currency, nullif(u.use_day, '-infinity')::text)
        when is_share then 'day:' || paid_on || ':' || currency else encode(fingerprint, 'hex') end as name
    from movement m left join uses u on u.payout_reference = m.payout_reference and m.booked_on between u.from_date and u.to_date
    where (m.kind = 'payout' or not u.has_payout) and u.is_reversed is not true
  )
  select 'payout:' || the_account_id || ':' || name, sum(minor)::bigint, currency,
    case when count(distinct provider_reference) = 1 and not bool_or(is_share) then comparable_reference(min(provider_reference)) end,
    comparable_reference(min(payout_reference)), max(paid_on)
  from counted group by name, currency having sum(minor) between 1 and 999999999999999999
$function$;

CREATE OR REPLACE FUNCTION first_instant(the_local timestamp without time zone, the_zone text)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
AS $function$
  select least(later, case when earlier at time zone the_zone = the_local then earlier end)
  from (
    select the_local at time zone the_zone as later,
      (the_local - interval '1 day') at time zone the_zone + interval '24 hours' as earlier) instants
$function$;

CREATE OR REPLACE FUNCTION goes_on_beside(the_account_id bigint, other_id bigint)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
  select coalesce(newest_statement_day(other_id) >= newest_statement_day(the_account_id) - 120, true)
$function$;

CREATE OR REPLACE FUNCTION is_money_taken_elsewhere(the_config_id bigint, the_reference text, the_money_key text)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
 SET enable_seqscan TO 'off'
AS $function$
declare
  own_intent_id bigint;
  names text[];
begin
  select intent_id into own_intent_id from provider_payments
    where config_id = the_config_id and reference = the_reference;
  if not found then
    return false;
  end if;
  names := names_of_settlement(own_intent_id, the_money_key);
  return exists (select from provider_payments where paid_money_name = any (names) and intent_id <> own_intent_id)
    or exists (
      select from paid_money_names n join transactions t using (transaction_id)
        where n.name = any (names) and t.intent_id <> own_intent_id)
    or exists (
      select from issues where money_names && names and status = 'closed' and transaction_id is null);
end
$function$;

CREATE OR REPLACE FUNCTION issue_day(i issues, the_zone text)
 RETURNS date
 LANGUAGE sql
 STABLE
AS $function$
  select coalesce(
    (select d.on_date from run_differences d where d.issue_id = i.issue_id order by d.run_id desc limit 1),
    (i.opened_at at time zone coalesce(the_zone, 'UTC'))::date)
$function$;

CREATE OR REPLACE FUNCTION issue_days(i issues, the_zone text)
 RETURNS daterange
 LANGUAGE sql
 STABLE
AS $function$
  select coalesce(
    case when i.kind = 'malformed_line' then (
      select daterange(f.from_date, f.to_date, '[]') from statement_imports f
      where f.import_id = (i.evidence #>> '{statement,facts,import}')::bigint and f.from_date <= f.to_date) end,
    (select daterange(day, day, '[]') from (select issue_day(i, the_zone) as day offset 0) it))
$function$;

CREATE OR REPLACE FUNCTION issue_evidence_hash(the_amount_minor bigint, the_currency text, the_status text, the_type text)
 RETURNS bytea
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select sha256(convert_to(
    jsonb_build_array(the_amount_minor, upper(btrim(the_currency)), lower(btrim(the_status)), lower(btrim(the_type)))::text, 'UTF8'))
$function$;

CREATE OR REPLACE FUNCTION issues_of_days(the_account_id bigint, the_from date, the_to date)
 RETURNS SETOF issues
 LANGUAGE sql
 STABLE
AS $function$
  select i from statement_accounts a join issues i
    on i.account_key = coalesce('provider:' || a.config_id, 'statement:' || a.account_id)
  where a.account_id = the_account_id and i.status <> 'ended' and i.superseded_by is null
    and days_of_issue(i, a.time_zone) && daterange(the_from, the_to, '[]')
$function$;

CREATE OR REPLACE FUNCTION line_fingerprint(the_identity bytea, the_ordinal integer)
 RETURNS bytea
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select sha256(the_identity || int4send(the_ordinal))
$function$;

CREATE OR REPLACE FUNCTION lock_in_turn(the_class integer, the_keys integer[])
 RETURNS boolean
 LANGUAGE plpgsql
 SET lock_timeout TO '250ms'
AS $function$
begin
  perform pg_advisory_xact_lock(the_class, key) from (select distinct unnest(the_keys) as key order by 1) keys;
  return true;
exception when lock_not_available then
  return false;
end;
$function$;

CREATE OR REPLACE FUNCTION lock_settled_money(the_name text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  name text := regexp_replace(the_name, '^statement:[0-9]{1,18}:', '');
begin
  perform pg_advisory_xact_lock(hashtextextended('settled money ' || coalesce(provider_money_name(name), name), 0));
end
$function$;

CREATE OR REPLACE FUNCTION malformed_imports(the_evidence jsonb)
 RETURNS bigint[]
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select string_to_array(
    coalesce(the_evidence #>> '{statement,facts,imports}', the_evidence #>> '{statement,facts,import}'), ' ')::bigint[]
$function$;

CREATE OR REPLACE FUNCTION money_name_of_account(the_organization_id bigint, the_kind text, the_mode text, the_scheme text, the_account text, the_name text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  money_name text := provider_money_name(the_name);
begin
  if the_account is null or money_name is null then
    return null;
  end if;
  return jsonb_build_array(the_organization_id, the_kind, the_mode,
    case when the_scheme is null then to_jsonb(the_account) else jsonb_build_array(the_scheme, the_account) end,
    money_name)::text;
end
$function$;

CREATE OR REPLACE FUNCTION money_name_of_payment(the_payment provider_payments, the_name text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return (
    select money_name_of_account(organization_id, kind, mode, (the_payment).account_scheme, (the_payment).account, the_name)
      from provider_configs where config_id = (the_payment).config_id
  );
end
$function$;

CREATE OR REPLACE FUNCTION names_of_money(the_config_id bigint, the_payment provider_payments, the_said_account text, the_name text)
 RETURNS text[]
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return (
    with config as (
      select organization_id, kind, mode,
        coalesce((the_payment).account_scheme, provider_scheme(kind, settings)) as scheme,
        coalesce((the_payment).account, provider_account(kind, settings)) as account
      from provider_configs where config_id = the_config_id
    )
    select array_agg(distinct name order by name) from (
      select 'provider:' || the_config_id || ':' || coalesce(provider_money_name(the_name), the_name)
      union all
      select money_name_of_account(organization_id, kind, mode, scheme, each.account, the_name)
        -- As a reference is compared.
        from config, lateral (values (config.account), (nullif(substr(provider_money_name('money:' || the_said_account), 7), '')))
          as each (account)
    ) as known (name) where name is not null
  );
end
$function$;

CREATE OR REPLACE FUNCTION names_of_settlement(the_intent_id bigint, the_money_key text)
 RETURNS text[]
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  the_config_id bigint;
  the_name text;
  names text[];
  more text[];
begin
  if the_money_key is null then
    return '{}';
  end if;
  if the_money_key !~ '^(provider|statement):[0-9]{1,18}:' then
    return array[the_money_key];
  end if;
  the_name := regexp_replace(the_money_key, '^(provider|statement):[0-9]+:', '');
  if the_money_key like 'statement:%' then
    names := coalesce(names_of_statement_money(split_part(the_money_key, ':', 2)::bigint, the_name), array[the_money_key]);
  else
    the_config_id := split_part(the_money_key, ':', 2)::bigint;
    select names_of_money(the_config_id, p, null, the_name) into names from provider_payments p
      where p.intent_id = the_intent_id and p.config_id = the_config_id;
    if not found then
      names := array['provider:' || the_config_id || ':' || coalesce(provider_money_name(the_name), the_name)];
      perform from issues where money_names && names;
      if not found then
        return names_of_money(the_config_id, null, null, the_name);
      end if;
    end if;
  end if;
  loop
    select array_agg(distinct name order by name) into more from (
      select unnest(names) union all
      select unnest(i.money_names) from issues i where i.money_names && names) as known (name);
    exit when more = names;
    names := more;
  end loop;
  return names;
end
$function$;

CREATE OR REPLACE FUNCTION names_of_statement_money(the_account_id bigint, the_name text)
 RETURNS text[]
 LANGUAGE sql
 STABLE
AS $function$
  select array_agg(distinct name order by name) from (
    select 'statement:' || a.account_id || ':' || coalesce(provider_money_name(the_name), the_name) as name
      from statement_accounts a where a.account_id = the_account_id
    union all
    select money_name_of_account(a.organization_id, a.provider, a.mode, null, a.reference, the_name)
      from statement_accounts a where a.account_id = the_account_id
    union all
    select unnest(names_of_money(c.config_id, null, null, the_name))
      from statement_accounts a join provider_configs c on c.organization_id = a.organization_id and c.mode = a.mode
        and provider_account(c.kind, c.settings) = a.reference
      where a.account_id = the_account_id
  ) each where name is not null
$function$;

CREATE OR REPLACE FUNCTION newest_statement_day(the_account_id bigint)
 RETURNS date
 LANGUAGE sql
 STABLE
AS $function$
  select max(to_date) from statement_imports where account_id = the_account_id and status = 'imported'
$function$;

CREATE OR REPLACE FUNCTION payout_uses(the_account_id bigint, the_references text[])
 RETURNS TABLE(payout_reference text, from_date date, to_date date, use_day date)
 LANGUAGE sql
 STABLE ROWS 10
AS $function$
  select payout_reference, from_date, to_date, coalesce(
    (select min(n.use_day) from payout_names n
      where n.account_id = the_account_id and n.payout_reference = used.payout_reference and n.day between from_date - 120 and to_date + 120),
    case when line_id = min(line_id) over (partition by payout_reference) and not exists (
        select from payout_names n where n.account_id = the_account_id and n.payout_reference = used.payout_reference)
      then '-infinity' else first_day end)
  from (
    select payout_reference, min(booked_on) as from_date, max(booked_on) as to_date, min(line_id) as line_id,
      (array_agg(booked_on order by line_id))[1] as first_day
    from (
      select *, count(*) filter (where is_first) over (partition by payout_reference order by booked_on) as use
      from (
        select l.payout_reference, l.booked_on, min(l.line_id) as line_id,
          l.booked_on - lag(l.booked_on) over (partition by l.payout_reference order by l.booked_on) > 120 as is_first
        from statement_lines l
        where l.account_id = the_account_id and l.payout_reference = any (the_references) and l.payout_reference <> ''
        group by l.payout_reference, l.booked_on) days) counted
    group by payout_reference, use) used
$function$;

CREATE OR REPLACE FUNCTION provider_account(the_kind text, the_settings jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select case the_kind
    when 'emvco_generic' then the_settings #>> '{merchant_account,merchant_id}'
    else the_settings ->> 'account'
  end
$function$;

CREATE OR REPLACE FUNCTION provider_money_name(the_name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select case when the_name like 'money:%' then
    'money:' || nullif(btrim(normalize(substr(the_name, 7), NFC),
      E' \t\n\u000B\f\r\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF'), '')
    when the_name like 'money-sha256:%' then the_name
  end
$function$;

CREATE OR REPLACE FUNCTION provider_scheme(the_kind text, the_settings jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select case the_kind when 'emvco_generic' then lower(the_settings #>> '{merchant_account,guid}') end
$function$;

CREATE OR REPLACE FUNCTION refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'rows of % never change once written', tg_table_name using errcode = 'restrict_violation';
end
$function$;

CREATE OR REPLACE FUNCTION refuse_change_of_closed_line()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if exists (
    select from period_closings c where c.account_id = old.account_id and old.booked_on between c.from_date and c.to_date
      and old.line_id <= c.through_line_id) then
    raise exception 'line % belongs to a closed period', old.line_id using errcode = 'restrict_violation';
  end if;
  return case tg_op when 'DELETE' then old else new end;
end
$function$;

CREATE OR REPLACE FUNCTION rival_accounts(the_account_id bigint)
 RETURNS SETOF statement_accounts
 LANGUAGE sql
 STABLE
AS $function$
  select r from accounts_beside(the_account_id) r where goes_on_beside(the_account_id, r.account_id)
$function$;

CREATE OR REPLACE FUNCTION rival_banks(the_account_id bigint)
 RETURNS SETOF statement_accounts
 LANGUAGE sql
 STABLE
AS $function$
  select r from banks_beside(the_account_id) r where goes_on_beside(the_account_id, r.account_id)
    and exists (select from statement_lines l where l.account_id = the_account_id and l.kind = 'bank_credit')
$function$;

CREATE OR REPLACE FUNCTION settle_intent(the_intent_id bigint, the_attestation_id text, the_station_id bigint, the_order_id bigint, the_route text, the_amount_minor bigint, the_currency text, the_reference text, the_cashier_id bigint, the_money_key text DEFAULT NULL::text, the_reference_key text DEFAULT NULL::text, the_reference_window interval DEFAULT NULL::interval, the_confirmation boolean DEFAULT false, OUT settled_as bigint, OUT refusal text, OUT reference_used_by bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
declare
  found_order orders;
  found_filial_id bigint;
  names text[];
begin
  -- First, so that everything below sees what an earlier question has committed.
  select * into found_order from orders where order_id = the_order_id and station_id = the_station_id for update;

  -- Perhaps it was settled before: a host that crashed, or lost the answer, asks again.
  select paid.transaction_id into settled_as from transactions as paid
    where paid.intent_id = the_intent_id and paid.order_id = the_order_id;
  if found and found_order.order_id is not null then
    return;
  end if;
  settled_as := null;
  select earlier.refusal, earlier.used_by into refusal, reference_used_by from settlement_refusals as earlier
    where earlier.intent_id = the_intent_id and earlier.attestation_id = the_attestation_id;
  if found then
    return;
  end if;

  if found_order.order_id is null then
    refusal := 'order_unknown';
  else
    if the_money_key is not null then
      perform lock_settled_money(regexp_replace(the_money_key, '^provider:[0-9]+:', ''));
      names := names_of_settlement(the_intent_id, the_money_key);
      perform from paid_money_names where name = any (names)
        union all select from issues where money_names && names and status = 'closed' and transaction_id is null;
      if found then
        refusal := 'money_already_used';
      end if;
    end if;
    if refusal is null and found_order.status = 'open'
        and (found_order.total_minor, found_order.currency) = (the_amount_minor, the_currency) then
      if the_reference_key is not null then
        select s.filial_id into found_filial_id from stations as s where s.station_id = the_station_id;
        -- Two counters may use one slip at the same moment: the second one waits here and sees the first one's row. A
        -- confirmed attestation takes the lock too, because another one must see its row as well.
        perform pg_advisory_xact_lock(
          hashtextextended('settled reference ' || found_filial_id || ' ' || the_reference_key, 0));
        if not the_confirmation then
          select used.transaction_id into reference_used_by from settled_references as used
            where used.filial_id = found_filial_id and used.reference_key = the_reference_key
              and (the_reference_window is null or used.settled_at > clock_timestamp() - the_reference_window)
            order by used.transaction_id desc limit 1;
          if found then
            refusal := 'reference_already_used';
          end if;
        end if;
      end if;
      if refusal is null then
        insert into transactions
          (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference, attested_by, money_key)
        values (found_order.organization_id, the_order_id, the_station_id, the_intent_id, the_route, the_amount_minor,
          the_currency, the_reference, the_cashier_id, the_money_key)
        on conflict do nothing
        returning transaction_id into settled_as;
        if found then
          insert into paid_money_names (name, transaction_id) select name, settled_as from unnest(names) as name;
          if the_reference_key is not null then
            insert into settled_references (filial_id, reference_key, transaction_id)
              values (found_filial_id, the_reference_key, settled_as);
          end if;
          update orders set status = 'paid', revision = revision + 1 where order_id = the_order_id;
          return;
        end if;
      end if;
    end if;
    refusal := coalesce(refusal, case found_order.status
      when 'paid' then 'order_already_paid'
      when 'voided' then 'order_voided'
      else 'order_changed'
    end);
  end if;
  -- Two may ask at once for an order that is unknown, because there is nothing to lock.
  insert into settlement_refusals (intent_id, attestation_id, refusal, used_by)
    values (the_intent_id, the_attestation_id, settle_intent.refusal, reference_used_by)
    on conflict (intent_id, attestation_id) do nothing;
end
$function$;

CREATE OR REPLACE FUNCTION typed_reference(the_reference text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select case when the_reference ~ '^[0-9A-Z-]+$' then the_reference else
    nullif(upper(regexp_replace(normalize(the_reference, NFKC), '[[:space:][:cntrl:]\u00AD\u200B-\u200F\u202A-\u202E\u2060-\u2064\uFEFF]', '', 'g')), '')
  end
$function$;

CREATE OR REPLACE FUNCTION waiting_proposal(i issues)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
AS $function$
  select jsonb_build_object('proposalId', p.proposal_id, 'orderId', p.order_id, 'reason', p.reason,
    'proposedBy', p.proposed_by, 'proposedByName', p.proposed_by_name,
    'proposedAtMs', floor(extract(epoch from p.proposed_at) * 1000))
  from attribution_proposals p
  where p.issue_id = i.issue_id and p.status = 'waiting' and why_proposal_ends(p, i) is null
$function$;

CREATE OR REPLACE FUNCTION want_run(the_account_id bigint, the_from date, the_to date, is_follower boolean)
 RETURNS void
 LANGUAGE sql
AS $function$
  insert into wanted_runs as known (account_id, organization_id, from_date, to_date, is_follower)
    select account_id, organization_id, the_from, the_to, want_run.is_follower
    from statement_accounts where account_id = the_account_id
    on conflict (account_id) do update set from_date = least(known.from_date, excluded.from_date),
      to_date = greatest(known.to_date, excluded.to_date), last_wanted_at = clock_timestamp(), attempts = 0,
      is_follower = known.is_follower and excluded.is_follower,
      first_wanted_at = case when known.is_follower and not excluded.is_follower then excluded.first_wanted_at
        else known.first_wanted_at end
$function$;

CREATE OR REPLACE FUNCTION want_run_of_import()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  wanted record;
begin
  if new.from_date is null or new.to_date is null then
    return null;
  end if;
  for wanted in
    select new.account_id as account_id, false as is_follower
    union
    select r.account_id, true from accounts_beside(new.account_id) r
    union
    select r.account_id, true from banks_beside(new.account_id) r
      where new.status = 'withdrawn'
        or exists (select from statement_lines l where l.account_id = new.account_id and l.kind = 'bank_credit')
    union
    select b.account_id, true from statement_accounts a join statement_accounts b on b.organization_id = a.organization_id
      and b.mode = a.mode and b.account_id <> a.account_id
      and (a.filial_id is null or b.filial_id is null or b.filial_id = a.filial_id)
      where a.account_id = new.account_id and new.has_payouts
        and exists (select from statement_lines l where l.account_id = b.account_id and l.kind = 'bank_credit')
    order by account_id
  loop
    perform want_run(wanted.account_id, new.from_date, new.to_date, wanted.is_follower);
  end loop;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION why_proposal_ends(p attribution_proposals, i issues)
 RETURNS text
 LANGUAGE sql
 STABLE
AS $function$
  select case
    when i.status not in ('open', 'assigned') then 'The issue is ' || i.status || '.'
    when i.evidence_hash <> p.evidence_hash or i.said_differently then 'The evidence of the issue has changed.'
    when o.status <> 'open' then 'The order is ' || o.status || '.'
    when (o.total_minor, o.currency) <> (p.amount_minor, p.currency) then 'The order has another amount now.'
    when exists (
      select from users u where u.organization_id = p.organization_id and u.user_id = p.proposed_by
        and (u.status <> 'active' or u.role <> 'reconciliation_operator'))
      then 'The person who has proposed it may not decide issues any more.'
  end
  from orders o where o.order_id = p.order_id
$function$;
