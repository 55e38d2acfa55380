/** The work on an import: which one is next, its attempt, and what it stores. */
import type { Json, Queryable, Transaction } from "../../db/pool.ts";
import { storedText } from "../../db/stored-text.ts";
import type { Encoding } from "../formats/encodings.ts";
import type { MalformedLine } from "../formats/format.ts";

export interface AttemptKey {
  readonly importId: number;
  readonly attempt: string;
}

/** An import that an attempt of this process carries out. */
export interface TakenImport {
  readonly import_id: number;
  readonly organization_id: number;
  readonly account_id: number;
  readonly object_name: string;
  readonly format: string;
  readonly encoding: Encoding;
  readonly mapping: unknown;
  /** An operator has released it although its totals do not balance. */
  readonly is_released: boolean;
  /** This one included. */
  readonly attempts: number;
  /** Of the request that made it wait. */
  readonly request_id: string | null;
  /** Of its account. */
  readonly reference: string;
  readonly currency: string | null;
  readonly time_zone: string | null;
}

/** Whether an import waits, or its attempt reports no progress. Cheaper than `takeImport`, a transaction of four statements. */
export async function hasWaitingImport(sql: Queryable): Promise<boolean> {
  const rows = await sql`
    select from statement_imports
    where status in ('waiting', 'importing') and (status = 'waiting' or leased_until < now()) limit 1`;
  return rows.count > 0;
}

/**
 * Takes the next import that waits, or whose attempt reports no progress: the oldest of the organization that has the fewest
 * under way; of several such organizations, of the one that was served the longest ago. So an organization with hundreds of
 * files does not delay the others, and two such organizations do not starve a third one. Undefined when there is none.
 */
export async function takeImport(
  sql: Transaction,
  { attempt, leaseMs }: { readonly attempt: string; readonly leaseMs: number },
): Promise<TakenImport | undefined> {
  // A separate statement for the lock: the next process then counts the import that this one has taken.
  await sql`select pg_advisory_xact_lock(hashtextextended('next statement import', 0))`;
  const [row] = await sql<TakenImport[]>`
    with recursive organizations as (
      select min(organization_id) as organization_id from statement_imports where status in ('waiting', 'importing')
      union all
      select (select min(i.organization_id) from statement_imports i
          where i.status in ('waiting', 'importing') and i.organization_id > o.organization_id)
        from organizations o where o.organization_id is not null
    ), turns as (
      select o.organization_id,
          (select count(*) from statement_imports i where i.organization_id = o.organization_id
            and i.status = 'importing' and i.leased_until >= now()) as under_way,
          (select max(i.taken_at) from statement_imports i where i.organization_id = o.organization_id) as served_at
        from organizations o where o.organization_id is not null
        order by under_way, served_at nulls first, organization_id
    ), next as (
      select oldest.import_id from turns t cross join lateral (
        select i.import_id from statement_imports i
          where i.organization_id = t.organization_id
            and (i.status = 'waiting' or (i.status = 'importing' and i.leased_until < now()))
          order by i.import_id limit 1 for update skip locked) oldest
        limit 1
    )
    update statement_imports i set status = 'importing', leased_by = ${attempt},
        leased_until = now() + ${leaseMs}::float8 * interval '1 ms', read_bytes = 0, records = 0, malformed = 0,
        attempts = attempts + 1, taken_at = clock_timestamp()
      from next, statement_accounts a
      where i.import_id = next.import_id and a.account_id = i.account_id
      returning i.import_id, i.organization_id, i.account_id, i.object_name, i.format, i.encoding, i.attempts, i.request_id,
        i.released_at is not null as is_released,
        (select m.definition from statement_mappings m where m.mapping_id = i.mapping_id) as mapping,
        a.reference, a.currency, a.time_zone`;
  return row;
}

interface ImportProgress {
  readonly readBytes: number;
  readonly records: number;
  readonly malformed: number;
}

/** Renews the lease and stores the progress of the import; false when another attempt has taken it, or it was withdrawn. */
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

/** Makes the import wait again, for example because the process of its attempt stops. This counts as no attempt. */
export async function returnImport(sql: Queryable, { importId, attempt }: AttemptKey): Promise<void> {
  await sql`
    update statement_imports set status = 'waiting', leased_by = null, leased_until = null, attempts = attempts - 1
      where import_id = ${importId} and leased_by = ${attempt} and status = 'importing'`;
}

/** The attempt has failed, but not because of the file. It does not count; the import begins again when its lease expires. */
export async function uncountAttempt(sql: Queryable, { importId, attempt }: AttemptKey): Promise<void> {
  await sql`
    update statement_imports set attempts = attempts - 1
      where import_id = ${importId} and leased_by = ${attempt} and status = 'importing'`;
}

/** Locks the import. False when another attempt has taken it, or it was withdrawn. */
export async function lockImport(sql: Transaction, { importId, attempt }: AttemptKey): Promise<boolean> {
  const rows = await sql`
    select from statement_imports
      where import_id = ${importId} and leased_by = ${attempt} and status = 'importing' for update`;
  return rows.count === 1;
}

export interface ImportEnd {
  readonly status: "held" | "imported" | "refused";
  /** Why it is held or refused. */
  readonly code: string | null;
  readonly detail: string | null;
  readonly totals: readonly Json[];
  readonly fromDate: string | null;
  readonly toDate: string | null;
  /** The banks where the payouts arrive get a run as well. */
  readonly hasPayouts: boolean;
  readonly formatVersion: number;
  readonly linesNew: number;
  readonly linesKnown: number;
}

export async function endImport(sql: Transaction, { importId }: AttemptKey, end: ImportEnd): Promise<void> {
  await sql`
    update statement_imports i set status = ${end.status}, status_code = ${end.code}, status_detail = ${end.detail},
        totals = ${sql.json(end.totals)}, format_version = ${end.formatVersion}, lines_new = ${end.linesNew},
        lines_known = ${end.linesKnown}, from_date = ${end.fromDate}::date, to_date = ${end.toDate}::date,
        has_payouts = ${end.hasPayouts},
        malformed = (select count(*) from statement_malformed m where m.import_id = i.import_id),
        leased_by = null, leased_until = null, ended_at = now()
      where import_id = ${importId}`;
  // Malformed rows have a day too: that of the import.
  await sql`
    select want_run(account_id, ended_at::date, ended_at::date, false) from statement_imports
    where import_id = ${importId} and status = 'imported' and from_date is null and malformed > 0`;
}

/**
 * Removes what only this import has: its lines that no other file has, and its malformed rows. The caller has locked the
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

export async function insertMalformed(
  sql: Queryable,
  importId: number,
  malformed: readonly MalformedLine[],
): Promise<void> {
  const rows = malformed.map(({ position, column, reason, raw }) => ({
    import_id: importId,
    position,
    column_name: storedText(column),
    reason: storedText(reason),
    raw: storedText(raw),
  }));
  await sql`
    insert into statement_malformed (import_id, position, column_name, reason, raw)
    select import_id, position, column_name, reason, raw
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
        as row (import_id bigint, position bigint, column_name text, reason text, raw text)
    on conflict (import_id, position) do nothing`;
}

/** Removes the malformed rows that earlier attempts have stored. */
export async function clearMalformed(sql: Queryable, importId: number): Promise<void> {
  await sql`delete from statement_malformed where import_id = ${importId}`;
}
