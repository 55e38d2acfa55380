/**
 * Uploaded files as operators see them: registered once for each account, with the format and encoding that a person has
 * declared or confirmed, and with the progress of their import.
 */

import { requirePermission } from "../bus/messages/caller.ts";
import type { StatementRefusal } from "../bus/messages/statement-formats.ts";
import type * as bus from "../bus/messages/statement-imports.ts";
import type { Handler, RequestOf } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { existing, invalidField, RefusedError } from "../bus/refusals.ts";
import type { Queryable } from "../db/pool.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { type Candidates, detectCandidates } from "./detection.ts";
import { FORMAT_LIMITS } from "./formats/limits.ts";
import { STATEMENT_FORMATS, statementFormat } from "./formats/registry.ts";
import { getStatementAccount } from "./sql/accounts.ts";
import * as sql from "./sql/imports.ts";
import { getStatementMapping } from "./sql/mappings.ts";

interface UploadDeps extends Pick<ReconciliationDeps, "database"> {
  /** The bytes of an uploaded file, from the beginning. */
  readonly openFile: (objectName: string) => AsyncIterable<Uint8Array>;
}

type Declaration = Pick<RequestOf<typeof bus.prepareImport>, "caller" | "format" | "encoding" | "mappingId">;

/** The format of CSV with a mapping, which names the encoding. */
const MAPPED = "csv";

/** Refuses with `permission_denied`, `not_found` or `invalid_request`; with `storage_low` before it is called. */
export const prepareImport: Handler<UploadDeps, typeof bus.prepareImport> = async ({ database }, request) => {
  await readAsOf(database, await requireAccount(database, request));
  return {};
};

/** Refuses as `prepareImport` does, and with `conflict` while the first import of these bytes is being withdrawn. */
export const createImport: Handler<UploadDeps, typeof bus.createImport> = async (deps, request) => {
  const { database } = deps;
  const { caller, accountId, fileName, objectName, sizeBytes, sha256 } = await requireAccount(database, request);
  const readAs = await readAsOf(database, request);
  const { organizationId, userId: uploadedBy } = caller;
  const refusal = readAs === undefined ? await emptyRefusal(deps, request) : null;
  const file = { organizationId, accountId, sha256, fileName, sizeBytes, objectName, uploadedBy, readAs, refusal };
  const row = (await sql.insertImport(database, file)) ?? (await sql.findImportOfFile(database, file));
  // The first import was withdrawn between the two statements, or is about to be.
  if (row === undefined || row.status === "withdrawing") {
    const detail = "The first import of this file is being withdrawn; upload the file again in a moment.";
    throw new RefusedError({ code: "conflict", reason: "import_withdrawing", detail });
  }
  return { ...(await replyOf(deps, row)), isNew: row.object_name === objectName };
};

/** A file without text needs no format: it is refused. A file of which the head is only a part has more to read. */
async function emptyRefusal(
  { openFile }: UploadDeps,
  { objectName, sizeBytes }: RequestOf<typeof bus.createImport>,
): Promise<Candidates["refusal"]> {
  if (sizeBytes >= FORMAT_LIMITS.headCharacters) return null;
  const { refusal } = await detectCandidates(openFile(objectName));
  return refusal?.code === ("empty_file" satisfies StatementRefusal) ? refusal : null;
}

async function requireAccount<TRequest extends RequestOf<typeof bus.prepareImport>>(
  database: Queryable,
  request: TRequest,
): Promise<TRequest> {
  const { caller, accountId } = request;
  requirePermission(caller, "reconciliation.manage");
  existing(await getStatementAccount(database, { organizationId: caller.organizationId, accountId }));
  return request;
}

/** Refuses with `not_found`, `invalid_request`, or `conflict` with a reason of `IMPORT_CONFLICTS`. */
export const confirmImportFormat: Handler<UploadDeps, typeof bus.confirmImportFormat> = async (deps, request) => {
  const { caller, importId } = request;
  const { database } = deps;
  requirePermission(caller, "reconciliation.manage");
  const key = { organizationId: caller.organizationId, importId };
  const found = existing(await sql.getImport(database, key));
  const readAs = await readAsOf(database, request);
  if (readAs === undefined) throw invalidField("/format", "missing", "name a format and an encoding, or a mapping");
  const confirmed = await sql.confirmImportFormat(database, key, readAs);
  if (confirmed !== undefined) return await replyOf(deps, confirmed);
  const now = (await sql.getImport(database, key)) ?? found;
  const { format, encoding, mappingId } = readAs;
  const isSame = now.format === format && now.encoding === encoding && now.mapping_id === mappingId;
  if (isSame) return await replyOf(deps, now);
  const detail =
    "The format of this import is confirmed already; withdraw it and upload the file again to read it otherwise.";
  throw new RefusedError({ code: "conflict", reason: `import_${now.status}`, detail });
};

/** Undefined where nothing is declared: a person confirms it later. */
async function readAsOf(
  database: Queryable,
  { caller, format, encoding, mappingId }: Declaration,
): Promise<sql.ReadAs | undefined> {
  if (mappingId !== undefined) {
    if (format !== undefined && format !== MAPPED)
      throw invalidField("/mapping_id", "does_not_fit", `only the format \`${MAPPED}\` has a mapping`);
    const mapping = existing(
      await getStatementMapping(database, { organizationId: caller.organizationId, mappingId }),
      "mapping_id",
    );
    if (encoding !== undefined && encoding !== mapping.definition.encoding) {
      throw invalidField("/encoding", "does_not_fit", `the mapping reads ${mapping.definition.encoding}`);
    }
    return { format: MAPPED, formatVersion: versionOf(MAPPED), encoding: mapping.definition.encoding, mappingId };
  }
  if (format === MAPPED)
    throw invalidField("/mapping_id", "missing", "a file with a header of its own is read with a mapping; name one");
  if (format === undefined && encoding === undefined) return undefined;
  if (format === undefined) throw invalidField("/format", "missing", "name the format too");
  const formatVersion = versionOf(format);
  if (encoding === undefined) throw invalidField("/encoding", "missing", "name the encoding too");
  return { format, formatVersion, encoding, mappingId: null };
}

function versionOf(name: string): number {
  const format = statementFormat(name);
  if (format !== undefined) return format.version;
  throw invalidField(
    "/format",
    "not_one_of",
    `this is none of ${STATEMENT_FORMATS.map((known) => known.name).join(", ")}`,
  );
}

/** Refuses with `permission_denied` or `not_found`. */
export const getImport: Handler<UploadDeps, typeof bus.getImport> = async (deps, { caller, importId }) => {
  requirePermission(caller, "reconciliation.manage");
  const key = { organizationId: caller.organizationId, importId };
  return await replyOf(deps, existing(await sql.getImport(deps.database, key)));
};

/** Refuses with `permission_denied`. */
export const listImports: Handler<UploadDeps, typeof bus.listImports> = async ({ database }, request) => {
  const { caller, accountId, status, beforeId, limit } = request;
  requirePermission(caller, "reconciliation.manage");
  const wanted = { organizationId: caller.organizationId, accountId, status, beforeId };
  // One row more shows whether there is a further page.
  const rows = await sql.listImports(database, { ...wanted, limit: limit + 1 });
  const { page, hasMore } = firstPage(rows.map(importOf), limit);
  return { imports: page, hasMore };
};

async function replyOf(
  { openFile }: UploadDeps,
  row: sql.ImportRow,
): Promise<{ readonly import: bus.StatementImport; readonly candidates: Candidates | null }> {
  const isOpen = row.status === "needs_format" && row.object_name !== null;
  return { import: importOf(row), candidates: isOpen ? await detectCandidates(openFile(row.object_name)) : null };
}

function importOf(row: sql.ImportRow): bus.StatementImport {
  return {
    importId: row.import_id,
    accountId: row.account_id,
    fileName: row.file_name,
    sizeBytes: row.size_bytes,
    sha256: row.sha256,
    format: row.format,
    encoding: row.encoding,
    mappingId: row.mapping_id,
    status: row.status,
    statusCode: row.status_code,
    statusDetail: row.status_detail,
    uploadedBy: row.uploaded_by,
    uploadedAtMs: row.uploaded_at.getTime(),
    endedAtMs: row.ended_at?.getTime() ?? null,
    readBytes: row.read_bytes,
    records: row.records,
    linesNew: row.lines_new,
    linesKnown: row.lines_known,
    malformed: row.malformed,
    totals: row.totals.map(({ name, currency, stated_minor: statedMinor, computed_minor: computedMinor }) => ({
      name,
      currency,
      statedMinor,
      computedMinor,
    })),
    fromDate: row.from_date,
    toDate: row.to_date,
    released: row.released,
    withdrawn: row.withdrawn,
  };
}
