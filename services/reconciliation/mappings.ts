/** Mappings of CSV files: stores their versions, and previews how one reads an uploaded file. */
import { FOR_FIELD_ERRORS, fieldErrors } from "../bus/field-errors.ts";
import { malformedReason } from "../bus/malformed-reasons.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import type { CsvMapping } from "../bus/messages/csv-mapping.ts";
import type { ReadLine } from "../bus/messages/statement-lines.ts";
import type * as bus from "../bus/messages/statement-mappings.ts";
import type { Handler, RequestOf } from "../bus/operation.ts";
import { readPage, takePage } from "../bus/page.ts";
import { existing, invalidField, RefusedError } from "../bus/refusals.ts";
import type { Queryable } from "../db/pool.ts";
import type { ReconciliationDeps, ReconciliationHandler } from "./deps.ts";
import { fileRows } from "./file-rows.ts";
import { type HeadedRow, mappedRows, movedRow } from "./formats/csv/mapped.ts";
import { csvMappingSchema } from "./formats/csv/mapping.ts";
import { type PreviewRow, previewRows } from "./formats/csv/preview-mapping.ts";
import { type StatementLine, StatementRefusedError } from "./formats/format.ts";
import { FORMAT_LIMITS } from "./formats/limits.ts";
import { cutTo } from "./formats/records.ts";
import { statementText } from "./formats/statement-text.ts";
import { MAPPING_LIMITS } from "./limits.ts";
import * as sql from "./sql/mappings.ts";

/** Refuses with `permission_denied`. */
export const listStatementMappings: ReconciliationHandler<typeof bus.listStatementMappings> = async (deps, request) => {
  const { database } = deps;
  const { caller, name, isNewest = false, sinceId, limit } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const { page, hasMore } = await readPage<bus.StatementMapping>(limit, async (last, count) => {
    const wanted = { organizationId, name, isNewest, sinceId: last?.mappingId ?? sinceId, limit: count };
    return (await sql.listStatementMappings(database, wanted)).map(mappingOf);
  });
  return { mappings: page, hasMore };
};

/** Refuses with `permission_denied` or `not_found`. */
export const getStatementMapping: ReconciliationHandler<typeof bus.getStatementMapping> = async (deps, request) => {
  const { database } = deps;
  const { caller, mappingId } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  return { mapping: mappingOf(existing(await sql.getStatementMapping(database, { organizationId, mappingId }))) };
};

/** Refuses with `permission_denied`, `not_found`, `invalid_request` or `conflict` with a reason of `MAPPING_CONFLICTS`. */
export const createStatementMapping: ReconciliationHandler<typeof bus.createStatementMapping> = async (
  { database },
  { caller, name, corrects = 0, definition: sent },
) => {
  requirePermission(caller, "reconciliation.manage");
  const definition = checkedDefinition(sent);
  const { organizationId, userId: createdBy } = caller;
  const newest = await sql.findNewestMapping(database, { organizationId, name, definition });
  if (newest?.is_same === true) return { mapping: mappingOf(newest) };
  if (corrects > 0) existing(newest, "name");
  if (newest !== undefined && newest.version !== corrects) throw outdated(newest, corrects);
  if ((await sql.countMappings(database, organizationId)) >= MAPPING_LIMITS.mappings) {
    const detail = `An organization has at most ${MAPPING_LIMITS.mappings} versions of mappings.`;
    throw mappingConflict("too_many_mappings", detail);
  }
  const facts = { organizationId, name, version: corrects + 1, definition, createdBy };
  const stored = await sql.insertMapping(database, facts);
  if (stored !== undefined) return { mapping: mappingOf(stored) };
  // Another request has stored this version at the same moment.
  const winner = existing(await sql.findNewestMapping(database, { organizationId, name, definition }));
  if (winner.is_same) return { mapping: mappingOf(winner) };
  throw outdated(winner, corrects);
};

function outdated({ version }: sql.MappingRow, corrects: number): RefusedError {
  if (corrects === 0) {
    const detail = `There is a mapping of this name; name the version that the new one corrects, ${version}.`;
    return mappingConflict("mapping_exists", detail);
  }
  return mappingConflict("mapping_changed", `The newest version is ${version}; read it, and correct that one.`);
}

function mappingConflict(reason: (typeof bus.MAPPING_CONFLICTS)[number], detail: string): RefusedError {
  return new RefusedError({ code: "conflict", reason, detail });
}

/** Throws `invalid_request`, which names each field as it is on the wire. */
function checkedDefinition(sent: CsvMapping): CsvMapping {
  const { data, error } = csvMappingSchema.safeParse(sent, FOR_FIELD_ERRORS);
  if (data !== undefined) return data;
  const errors = fieldErrors(error.issues, (path) =>
    ["/definition", ...path.map((part) => wireName(String(part)))].join("/"),
  );
  throw new RefusedError({ code: "invalid_request", errors });
}

const wireName = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

export interface FileDeps extends ReconciliationDeps {
  /** The bytes of an uploaded file, from the beginning. */
  readonly openFile: (objectName: string) => AsyncIterable<Uint8Array>;
}

/** An uploaded file, and the mapping that it is read with. */
export interface MappedFile {
  readonly importId: number;
  readonly objectName: string;
  readonly mappingId: number | undefined;
  readonly definition: CsvMapping;
  readonly timeZone: string | undefined;
}

/** Refuses with `not_found`, `invalid_request`, or `conflict` when the file's bytes are deleted. */
export async function findMappedFile(
  database: Queryable,
  { caller, importId, mappingId, definition }: Omit<RequestOf<typeof bus.previewStatementMapping>, "limit">,
): Promise<MappedFile> {
  if ((mappingId === undefined) === (definition === undefined)) {
    throw invalidField("/mapping_id", "does_not_fit", "Name a stored mapping or send a definition, one of them.");
  }
  const { organizationId } = caller;
  const file = existing(await sql.findUploadedFile(database, { organizationId, importId }), "import_id");
  if (file.object_name === null) throw mappingConflict("file_gone", "The file's bytes are deleted; upload it again.");
  const read = { importId, objectName: file.object_name, mappingId, timeZone: file.time_zone ?? undefined };
  if (definition !== undefined) return { ...read, definition: checkedDefinition(definition) };
  const stored = mappingId && (await sql.getStatementMapping(database, { organizationId, mappingId }));
  return { ...read, definition: existing(stored || undefined, "mapping_id").definition };
}

/**
 * The rows of a file, or of all files of an archive, as the mapping reads them. `through` gets the bytes of each file, unpacked.
 * Throws `StatementRefusedError`.
 */
export function rowsOf(
  { definition, timeZone }: MappedFile,
  bytes: AsyncIterable<Uint8Array>,
  through: (file: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array> = (file) => file,
): AsyncIterable<HeadedRow> {
  const parse = (file: AsyncIterable<Uint8Array>): AsyncIterable<HeadedRow> =>
    mappedRows(statementText(through(file), definition.encoding), definition, timeZone);
  return fileRows(bytes, parse, movedRow);
}

/** Returns the first rows. Refuses as `findMappedFile` does; a file that the mapping does not fit is a normal reply. */
export const previewStatementMapping: Handler<FileDeps, typeof bus.previewStatementMapping> = async (deps, request) => {
  const { database, openFile } = deps;
  requirePermission(request.caller, "reconciliation.manage");
  const file = await findMappedFile(database, request);
  try {
    const { page, hasMore } = await takePage(previewsOf(rowsOf(file, openFile(file.objectName))), request.limit);
    return { refusal: null, rows: page, hasMore };
  } catch (error) {
    if (!(error instanceof StatementRefusedError)) throw error;
    return { refusal: { code: error.code, detail: error.message }, rows: [], hasMore: false };
  }
};

/** A file of 1,000 columns has rows of a megabyte: each is cut before the next one is read. */
async function* previewsOf(rows: AsyncIterable<HeadedRow>): AsyncIterable<bus.PreviewRow> {
  for await (const row of previewRows(rows)) yield previewOf(row);
}

function previewOf({ position, raw, fields, outcome }: PreviewRow): bus.PreviewRow {
  const { rawCharacters, detailFields, detailNameCharacters, detailCharacters } = FORMAT_LIMITS;
  return {
    position,
    raw: cutTo(rawCharacters, raw),
    fields: fields.slice(0, detailFields).map(({ column, value }) => ({
      column: cutTo(detailNameCharacters, column),
      value: cutTo(detailCharacters, value),
    })),
    outcome: outcomeOf(outcome),
  };
}

function outcomeOf(outcome: PreviewRow["outcome"]): bus.PreviewRow["outcome"] {
  if (outcome.type === "line") return { type: "line", line: readLineOf(outcome.line) };
  if (outcome.type === "skipped") return outcome;
  const { malformed } = outcome;
  return { type: "malformed", malformed: { ...malformed, ...malformedReason(malformed.reason) } };
}

const minorText = (amount: bigint | undefined): string | null => amount?.toString() ?? null;

function readLineOf(line: StatementLine): ReadLine {
  const { amountMinor, feeMinor, netMinor, tipMinor, valueOn = null, occurredAt = null, details, ...others } = line;
  return {
    ...others,
    amountMinor: amountMinor.toString(),
    feeMinor: minorText(feeMinor),
    netMinor: minorText(netMinor),
    tipMinor: minorText(tipMinor),
    valueOn,
    occurredAt,
    details: { ...details },
  };
}

function mappingOf(row: sql.MappingRow): bus.StatementMapping {
  return {
    mappingId: row.mapping_id,
    name: row.name,
    version: row.version,
    isNewest: row.is_newest,
    definition: row.definition,
    createdBy: row.created_by,
    createdAtMs: row.created_at.getTime(),
  };
}
