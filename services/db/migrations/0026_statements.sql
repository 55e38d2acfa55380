-- Statements of providers and banks: the accounts that they are of, the files that were imported, and their lines.

-- An account at a provider or a bank, whose statements are imported.
create table statement_accounts (
  account_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  -- The filial whose payments arrive there; null where several share it.
  filial_id bigint,
  -- Who keeps it: `sumup`, `adyen`, a bank's name.
  provider text not null check (provider <> ''),
  -- The provider's name of it: a merchant account, an IBAN.
  reference text not null check (reference <> ''),
  name text not null check (name <> ''),
  -- The currency that it is kept in; null where it has several.
  currency text check (currency ~ '^[A-Z]{3}$'),
  mode text not null check (mode in ('test', 'live')),
  -- The provider config whose QR payments arrive there; null for terminals and banks.
  config_id bigint,
  -- How many days after its payment a line may come before it is missing.
  settlement_delay_days integer not null default 3 check (settlement_delay_days between 0 and 90),
  -- Where the statement's local times and days are: an IANA name. Null: local times stay without an instant.
  time_zone text,
  created_at timestamptz not null default now(),
  unique (organization_id, account_id),
  unique (organization_id, mode, provider, reference),
  foreign key (organization_id, filial_id) references filials (organization_id, filial_id),
  foreign key (organization_id, config_id) references provider_configs (organization_id, config_id)
);
create unique index statement_accounts_by_config on statement_accounts (config_id) where config_id is not null;

-- How a CSV file with a header of its own is read. A version never changes; a correction is the next version.
create table statement_mappings (
  mapping_id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  name text not null check (name <> ''),
  version integer not null check (version > 0),
  definition jsonb not null,
  created_by bigint not null,
  created_at timestamptz not null default now(),
  unique (organization_id, mapping_id),
  unique (organization_id, name, version)
);

-- One file of one account.
create table statement_imports (
  import_id bigint generated always as identity primary key,
  organization_id bigint not null,
  account_id bigint not null,
  -- The hash of its bytes: the same file again is the same import.
  sha256 bytea not null check (octet_length(sha256) = 32),
  file_name text not null,
  size_bytes bigint not null check (size_bytes >= 0),
  -- The name of its bytes in the object store; null once they are deleted.
  object_name text,
  -- Declared or confirmed by a person; null while the import waits for that.
  format text,
  format_version integer,
  encoding text,
  mapping_id bigint,
  status text not null default 'needs_format' check (status in ('needs_format', 'waiting', 'importing', 'held', 'imported',
    'refused', 'withdrawn')),
  -- Why the file is refused or held: a code for programs and a sentence for people.
  status_code text,
  status_detail text,
  uploaded_by bigint not null,
  uploaded_at timestamptz not null default now(),
  -- The attempt that is under way, and until when it is not overtaken: the next one starts from the beginning.
  leased_by uuid,
  leased_until timestamptz,
  -- How far the import is: bytes of the file and records of all kinds.
  read_bytes bigint not null default 0,
  records bigint not null default 0,
  lines_new bigint not null default 0,
  lines_known bigint not null default 0,
  malformed bigint not null default 0,
  -- The control totals, each as it is stated and as the lines add up.
  totals jsonb not null default '[]',
  -- The days that the file says it covers, or those of its first and last line.
  from_date date,
  to_date date,
  ended_at timestamptz,
  released_by bigint,
  released_at timestamptz,
  release_reason text,
  withdrawn_by bigint,
  withdrawn_at timestamptz,
  withdrawal_reason text,
  unique (organization_id, import_id),
  foreign key (organization_id, account_id) references statement_accounts (organization_id, account_id),
  foreign key (organization_id, mapping_id) references statement_mappings (organization_id, mapping_id),
  constraint statement_imports_format_check check (status = 'needs_format' or status = 'refused' or status = 'withdrawn'
    or (format is not null and format_version is not null and encoding is not null)),
  constraint statement_imports_code_check check (status not in ('held', 'refused') or status_code is not null),
  constraint statement_imports_release_check check ((released_by is null) = (released_at is null)
    and (released_by is null) = (release_reason is null)),
  constraint statement_imports_withdrawal_check check ((status = 'withdrawn') = (withdrawn_by is not null)
    and (withdrawn_by is null) = (withdrawn_at is null) and (withdrawn_by is null) = (withdrawal_reason is null))
);
create unique index statement_imports_one_of_file on statement_imports (account_id, sha256)
  where status not in ('refused', 'withdrawn');
create index statement_imports_by_account on statement_imports (organization_id, account_id, import_id);
create index statement_imports_waiting on statement_imports (import_id) where status in ('waiting', 'importing');

-- Each line of an account once, in whatever files it is. Amounts are signed minor units: money in is positive.
create table statement_lines (
  line_id bigint generated always as identity primary key,
  organization_id bigint not null,
  account_id bigint not null,
  -- What makes it the same line in another file: the hash of its identity (services/reconciliation/line-identity.ts) by
  -- the rules of this version, and of its ordinal.
  fingerprint bytea not null check (octet_length(fingerprint) = 32),
  fingerprint_version smallint not null,
  -- Which of the lines with this identity in one file it is, by amount, day and position: equal rows can be genuine.
  ordinal integer not null default 0 check (ordinal >= 0),
  kind text not null check (kind in ('payment', 'refund', 'refund_reversal', 'chargeback', 'chargeback_reversal', 'fee',
    'payout', 'planned_payout', 'payout_reversal', 'adjustment', 'conversion', 'bank_credit', 'bank_debit', 'cash_payment',
    'not_money')),
  -- The provider's word for it.
  provider_type text not null,
  amount_minor bigint not null,
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  fee_minor bigint,
  net_minor bigint,
  tip_minor bigint,
  booked_on date not null,
  value_on date,
  occurred_at timestamptz,
  -- Empty where the statement gives none.
  provider_reference text not null,
  payment_reference text not null,
  merchant_reference text not null,
  payout_reference text not null,
  terminal text not null,
  account text not null,
  text text not null,
  details jsonb not null default '{}',
  created_at timestamptz not null default now(),
  unique (account_id, fingerprint),
  foreign key (organization_id, account_id) references statement_accounts (organization_id, account_id)
);
create index statement_lines_by_day on statement_lines (account_id, booked_on, line_id);
create index statement_lines_by_provider_reference on statement_lines (account_id, provider_reference)
  where provider_reference <> '';
create index statement_lines_by_payout on statement_lines (account_id, payout_reference) where payout_reference <> '';

-- Which files have a line, and where. A line disappears with the last file that has it.
create table statement_line_sources (
  import_id bigint not null references statement_imports,
  position bigint not null check (position > 0),
  line_id bigint not null references statement_lines,
  primary key (import_id, position)
);
create index statement_line_sources_by_line on statement_line_sources (line_id);

-- Rows that are no line: stored as they are, and the rows after them are imported all the same.
create table statement_malformed (
  import_id bigint not null references statement_imports,
  position bigint not null check (position > 0),
  column_name text not null,
  reason text not null,
  raw text not null,
  primary key (import_id, position)
);

-- What an import has read and not yet stored. Unlogged: after a crash of PostgreSQL the import starts again.
create unlogged table statement_staging (
  import_id bigint not null,
  -- The attempt that has read it: one that was overtaken may still write.
  attempt uuid not null,
  position bigint not null,
  identity bytea not null,
  kind text not null,
  provider_type text not null,
  amount_minor bigint not null,
  currency text not null,
  fee_minor bigint,
  net_minor bigint,
  tip_minor bigint,
  booked_on date not null,
  value_on date,
  occurred_at timestamptz,
  provider_reference text not null,
  payment_reference text not null,
  merchant_reference text not null,
  payout_reference text not null,
  terminal text not null,
  account text not null,
  text text not null,
  details jsonb not null
);
create index statement_staging_by_import on statement_staging (import_id, attempt);

-- The fingerprint of a line from its identity and its ordinal.
create function line_fingerprint(the_identity bytea, the_ordinal integer) returns bytea immutable language sql as $$
  select sha256(the_identity || int4send(the_ordinal))
$$;
