/** Imports of statement files, and what they store. */
import type { Json, Queryable, Transaction } from "../../db/pool.ts";
import type { Encoding } from "../formats/encodings.ts";
import type { AttemptKey } from "./staging.ts";

/** An import that an attempt of this process carries out. */
export interface TakenImport {
  readonly import_id: number;
  readonly account_id: number;
  readonly object_name: string;
  readonly format: string;
  readonly encoding: Encoding;
  readonly mapping: unknown;
  /** An operator has released it although its totals do not balance. */
  readonly is_released: boolean;
  /** This one included. */
  readonly attempts: number;
  /** Of its account. */
  readonly reference: string;
  readonly currency: string | null;
  readonly time_zone: string | null;
}

/** Takes the oldest import that waits, or whose attempt reports no progress; undefined when there is none. */
export async function takeImport(
  sql: Transaction,
  { attempt, leaseMs }: { readonly attempt: string; readonly leaseMs: number },
): Promise<TakenImport | undefined> {
  const [row] = await sql<TakenImport[]>`
    with next as (
      select i.import_id from statement_imports i
        where i.status = 'waiting' or (i.status = 'importing' and i.leased_until < now())
        order by i.import_id limit 1 for update skip locked
    )
    update statement_imports i set status = 'importing', leased_by = ${attempt},
        leased_until = now() + ${leaseMs}::float8 * interval '1 ms', read_bytes = 0, records = 0, malformed = 0,
        attempts = attempts + 1
      from next, statement_accounts a
      where i.import_id = next.import_id and a.account_id = i.account_id
      returning i.import_id, i.account_id, i.object_name, i.format, i.encoding, i.attempts,
        i.released_at is not null as is_released,
        (select m.definition from statement_mappings m where m.mapping_id = i.mapping_id) as mapping,
        a.reference, a.currency, a.time_zone`;
  return row;
}

export interface ImportProgress {
  readonly readBytes: number;
  readonly records: number;
  readonly malformed: number;
}

/** Renews the lease and stores how far the import is; false when another attempt has taken it, or it was withdrawn. */
export async function keepImport(
  sql: Queryable,
  key: AttemptKey & { readonly leaseMs: number },
  { readBytes, records, malformed }: ImportProgress,
): Promise<boolean> {
  const kept = await sql`
    update statement_imports set leased_until = now() + ${key.leaseMs}::float8 * interval '1 ms', read_bytes = ${readBytes},
        records = ${records}, malformed = ${malformed}
      where import_id = ${key.importId} and leased_by = ${key.attempt} and status = 'importing'`;
  return kept.count === 1;
}

/** Gives the import back to those that wait: the process of its attempt stops, which counts as no attempt. */
export async function returnImport(sql: Queryable, { importId, attempt }: AttemptKey): Promise<void> {
  await sql`
    update statement_imports set status = 'waiting', leased_by = null, leased_until = null, attempts = attempts - 1
      where import_id = ${importId} and leased_by = ${attempt} and status = 'importing'`;
}

/**
 * Locks the import, and its account: imports of one account are stored one after another, so that each sees the lines of
 * those before it. False when another attempt has taken the import, or it was withdrawn.
 */
export async function lockImport(sql: Transaction, { importId, attempt }: AttemptKey): Promise<boolean> {
  const rows = await sql`
    select from statement_accounts a join statement_imports i using (account_id)
      where i.import_id = ${importId} and i.leased_by = ${attempt} and i.status = 'importing'
      for update of a, i`;
  return rows.count === 1;
}

/**
 * Stores the staged lines: each identity counts its lines by amount, day and position, and a line that the account has
 * already gets this file as a further source. A known line with another amount or currency is not stored, and is listed
 * with the malformed rows: an operator decides which file is right. Returns how many lines are new and how many known.
 */
export async function storeLines(
  sql: Transaction,
  { importId, attempt, identityVersion }: AttemptKey & { readonly identityVersion: number },
): Promise<{ readonly linesNew: number; readonly linesKnown: number; readonly conflicting: number }> {
  await sql`
    create temporary table named_lines on commit drop as
      select s.*, s.ordinal_in_file::integer as ordinal, line_fingerprint(s.identity, s.ordinal_in_file::integer) as fingerprint
        from (
          select *, row_number() over (partition by identity order by amount_minor, booked_on, position) - 1 as ordinal_in_file
            from statement_staging where import_id = ${importId} and attempt = ${attempt}
        ) s`;
  await sql`create index on named_lines (fingerprint)`;
  await sql`analyze named_lines`;
  const conflicting = await sql`
    insert into statement_malformed (import_id, position, column_name, reason, raw)
      select n.import_id, n.position, '', 'The account has this line already, with the amount ' || l.amount_minor || ' ' || l.currency
          || ' in minor units; this file has ' || n.amount_minor || ' ' || n.currency || '. Withdraw the file that is wrong.',
          n.provider_reference
        from named_lines n join statement_imports i using (import_id)
          join statement_lines l on l.account_id = i.account_id and l.fingerprint = n.fingerprint
        where (l.amount_minor, l.currency) <> (n.amount_minor, n.currency)
      on conflict (import_id, position) do nothing`;
  const inserted = await sql`
    insert into statement_lines (organization_id, account_id, fingerprint, fingerprint_version, ordinal, kind, provider_type,
        amount_minor, currency, fee_minor, net_minor, tip_minor, booked_on, value_on, occurred_at, provider_reference,
        payment_reference, merchant_reference, payout_reference, terminal, account, text, details)
      select i.organization_id, i.account_id, n.fingerprint, ${identityVersion}, n.ordinal, n.kind, n.provider_type,
          n.amount_minor, n.currency, n.fee_minor, n.net_minor, n.tip_minor, n.booked_on, n.value_on, n.occurred_at,
          n.provider_reference, n.payment_reference, n.merchant_reference, n.payout_reference, n.terminal, n.account,
          n.text, n.details
        from named_lines n join statement_imports i using (import_id)
        order by n.position
      on conflict (account_id, fingerprint) do nothing`;
  const sources = await sql`
    insert into statement_line_sources (import_id, position, line_id)
      select n.import_id, n.position, l.line_id
        from named_lines n join statement_imports i using (import_id)
          join statement_lines l on l.account_id = i.account_id and l.fingerprint = n.fingerprint
        where (l.amount_minor, l.currency) = (n.amount_minor, n.currency)`;
  return {
    linesNew: inserted.count,
    linesKnown: sources.count - inserted.count,
    conflicting: conflicting.count,
  };
}

export interface ImportEnd {
  readonly status: "held" | "imported" | "refused";
  /** Why it is held or refused. */
  readonly code: string | null;
  readonly detail: string | null;
  readonly totals: readonly Json[];
  readonly fromDate: string | null;
  readonly toDate: string | null;
  readonly formatVersion: number;
  readonly linesNew: number;
  readonly linesKnown: number;
}

/** Without days of its own an imported file covers those of its lines. */
export async function endImport(sql: Transaction, { importId, attempt }: AttemptKey, end: ImportEnd): Promise<void> {
  await sql`
    update statement_imports i set status = ${end.status}, status_code = ${end.code}, status_detail = ${end.detail},
        totals = ${sql.json(end.totals)}, format_version = ${end.formatVersion}, lines_new = ${end.linesNew},
        lines_known = ${end.linesKnown},
        from_date = coalesce(${end.fromDate}::date, (select min(booked_on) from statement_staging s where s.import_id = i.import_id and s.attempt = ${attempt})),
        to_date = coalesce(${end.toDate}::date, (select max(booked_on) from statement_staging s where s.import_id = i.import_id and s.attempt = ${attempt})),
        malformed = (select count(*) from statement_malformed m where m.import_id = i.import_id),
        leased_by = null, leased_until = null, ended_at = now()
      where import_id = ${importId}`;
}

/**
 * Takes back what only this import has: its lines without another file, and its malformed rows. The caller has locked the
 * import and its account.
 */
export async function removeLines(sql: Transaction, importId: number): Promise<number> {
  await sql`
    create temporary table withdrawn_lines on commit drop as
      select distinct line_id from statement_line_sources where import_id = ${importId}`;
  await sql`delete from statement_line_sources where import_id = ${importId}`;
  await sql`delete from statement_malformed where import_id = ${importId}`;
  const removed = await sql`
    delete from statement_lines l using withdrawn_lines w
      where l.line_id = w.line_id
        and not exists (select from statement_line_sources s where s.line_id = l.line_id)`;
  return removed.count;
}
