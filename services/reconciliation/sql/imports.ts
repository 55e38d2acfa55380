/** Uploaded files and their imports. Each query is limited to one organization, except those of retention. */
import type { ImportDecision, ImportStatus } from "../../bus/messages/import-decisions.ts";
import type { Queryable } from "../../db/pool.ts";
import { currentRequestId } from "../../runtime/log.ts";
import type { Encoding } from "../formats/encodings.ts";

export interface ImportRow {
  readonly import_id: number;
  readonly account_id: number;
  readonly file_name: string;
  readonly size_bytes: number;
  readonly sha256: string;
  /** Null once the bytes are deleted. */
  readonly object_name: string | null;
  readonly format: string | null;
  readonly encoding: Encoding | null;
  readonly mapping_id: number | null;
  readonly status: ImportStatus;
  readonly status_code: string | null;
  readonly status_detail: string | null;
  readonly uploaded_by: number;
  readonly uploaded_at: Date;
  readonly ended_at: Date | null;
  readonly read_bytes: number;
  readonly records: number;
  readonly lines_new: number;
  readonly lines_known: number;
  readonly malformed: number;
  readonly totals: readonly StoredTotal[];
  readonly from_date: string | null;
  readonly to_date: string | null;
  readonly released: ImportDecision;
  readonly withdrawn: ImportDecision;
}

interface StoredTotal {
  readonly name: string;
  readonly currency: string;
  readonly stated_minor: string;
  readonly computed_minor: string;
}

export interface ImportKey {
  readonly organizationId: number;
  readonly importId: number;
}

/** How a file is read, as it is stored. */
export interface ReadAs {
  readonly format: string;
  readonly formatVersion: number;
  readonly encoding: Encoding;
  readonly mappingId: number | null;
}

const columns = (sql: Queryable) => sql`
  import_id, account_id, file_name, size_bytes, encode(sha256, 'hex') as sha256, object_name, format, encoding, mapping_id, status,
  status_code, status_detail, uploaded_by, uploaded_at, ended_at, read_bytes, records, lines_new, lines_known, malformed, totals,
  from_date::text as from_date, to_date::text as to_date,
  case when released_by is not null then jsonb_build_object('by', released_by, 'reason', release_reason,
    'atMs', floor(extract(epoch from released_at) * 1000)) end as released,
  case when withdrawn_by is not null then jsonb_build_object('by', withdrawn_by, 'reason', withdrawal_reason,
    'atMs', floor(extract(epoch from withdrawn_at) * 1000)) end as withdrawn`;

/** Undefined when the account has an import of these bytes already, or the request is repeated. */
export async function insertImport(
  sql: Queryable,
  file: {
    readonly organizationId: number;
    readonly accountId: number;
    readonly sha256: string;
    readonly fileName: string;
    readonly sizeBytes: number;
    readonly objectName: string;
    readonly uploadedBy: number;
    readonly readAs: ReadAs | undefined;
    /** Why it is refused at once. */
    readonly refusal: { readonly code: string; readonly detail: string } | null;
  },
): Promise<ImportRow | undefined> {
  const { readAs, refusal } = file;
  const status = refusal === null ? (readAs === undefined ? "needs_format" : "waiting") : "refused";
  const [row] = await sql<ImportRow[]>`
    insert into statement_imports (organization_id, account_id, sha256, file_name, size_bytes, object_name, uploaded_by, status,
        status_code, status_detail, ended_at, format, format_version, encoding, mapping_id, request_id)
      select ${file.organizationId}, ${file.accountId}, decode(${file.sha256}, 'hex'), ${file.fileName}, ${file.sizeBytes},
        ${file.objectName}, ${file.uploadedBy}, ${status},
        ${refusal?.code ?? null}, ${refusal?.detail ?? null}, case when ${refusal !== null} then now() end,
        ${readAs?.format ?? null}, ${readAs?.formatVersion ?? null}, ${readAs?.encoding ?? null}, ${readAs?.mappingId ?? null},
        ${currentRequestId() ?? null}
      where not exists (${importOfObject(sql, file)})
      on conflict (account_id, sha256) where status not in ('refused', 'withdrawn') do nothing
      returning ${columns(sql)}`;
  return row;
}

interface UploadedBytes {
  readonly organizationId: number;
  readonly accountId: number;
  readonly sha256: string;
  readonly objectName: string;
}

/** The import that this request has created before, else the import of these bytes that is neither refused nor withdrawn. */
export async function findImportOfFile(sql: Queryable, file: UploadedBytes): Promise<ImportRow | undefined> {
  const [row] = await sql<ImportRow[]>`
    select ${columns(sql)} from statement_imports
    where import_id in (${importOfObject(sql, file)} union all
      select import_id from statement_imports
      where account_id = ${file.accountId} and sha256 = decode(${file.sha256}, 'hex') and status not in ('refused', 'withdrawn'))
    order by object_name = ${file.objectName} desc nulls last limit 1`;
  return row;
}

/** A request that is repeated names the same bytes in the object store, also when the import was refused meanwhile. */
const importOfObject = (
  sql: Queryable,
  { organizationId, accountId, objectName }: Omit<UploadedBytes, "sha256">,
) => sql`
  select import_id from statement_imports
  where organization_id = ${organizationId} and account_id = ${accountId} and object_name = ${objectName}`;

export async function getImport(sql: Queryable, key: ImportKey): Promise<ImportRow | undefined> {
  const [row] = await sql<ImportRow[]>`
    select ${columns(sql)} from statement_imports
    where organization_id = ${key.organizationId} and import_id = ${key.importId}`;
  return row;
}

/** Undefined when the import does not wait for its format. */
export async function confirmImportFormat(
  sql: Queryable,
  { organizationId, importId }: ImportKey,
  { format, formatVersion, encoding, mappingId }: ReadAs,
): Promise<ImportRow | undefined> {
  const [row] = await sql<ImportRow[]>`
    update statement_imports set status = 'waiting', format = ${format}, format_version = ${formatVersion},
      encoding = ${encoding}, mapping_id = ${mappingId}, request_id = ${currentRequestId() ?? null}
    where organization_id = ${organizationId} and import_id = ${importId} and status = 'needs_format'
    returning ${columns(sql)}`;
  return row;
}

/** Newest first. */
export async function listImports(
  sql: Queryable,
  wanted: {
    readonly organizationId: number;
    readonly accountId: number | undefined;
    readonly status: ImportStatus | undefined;
    readonly beforeId: number | undefined;
    readonly limit: number;
  },
): Promise<readonly ImportRow[]> {
  const { accountId = null, status = null, beforeId = null } = wanted;
  return await sql<ImportRow[]>`
    select ${columns(sql)} from statement_imports
    where organization_id = ${wanted.organizationId}
      and (${accountId}::bigint is null or account_id = ${accountId})
      and (${status}::text is null or status = ${status})
      and (${beforeId}::bigint is null or import_id < ${beforeId})
    order by import_id desc limit ${wanted.limit}`;
}

/** Files of imports that ended longer ago than this, of all organizations. */
export async function listEndedFiles(
  sql: Queryable,
  { olderThanHours, limit }: { readonly olderThanHours: number; readonly limit: number },
): Promise<readonly { readonly import_id: number; readonly object_name: string }[]> {
  return await sql<{ import_id: number; object_name: string }[]>`
    select import_id, object_name from statement_imports
    where object_name is not null and status in ('imported', 'refused', 'withdrawn')
      and coalesce(withdrawn_at, ended_at) < now() - ${olderThanHours}::float8 * interval '1 hour'
    order by import_id limit ${limit}`;
}

/** Records that the bytes are deleted. */
export async function clearFile(sql: Queryable, importId: number): Promise<void> {
  await sql`update statement_imports set object_name = null where import_id = ${importId}`;
}

/** The names among these that no import of any organization has. */
export async function listUnknownFiles(sql: Queryable, names: readonly string[]): Promise<readonly string[]> {
  const rows = await sql<{ name: string }[]>`
    select name from unnest(${names}::text[]) as name
    where not exists (select from statement_imports i where i.object_name = name)`;
  return rows.map((row) => row.name);
}
