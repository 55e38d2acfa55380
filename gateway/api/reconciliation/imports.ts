/** Uploaded statement files and the progress of their imports. */
import { z } from "zod";
import { formatExactAmount } from "../../../machines/currency.ts";
import { IMPORT_CONFLICTS } from "../../../services/bus/messages/import-decisions.ts";
import * as bus from "../../../services/bus/messages/statement-imports.ts";
import { RefusedError } from "../../../services/bus/refusals.ts";
import { ApiError, created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreBefore, pageBeforeQuery, queryId } from "../../http/page.ts";
import { fileBodyRoute, reconciliationRoute, session } from "../../http/route.ts";
import {
  currencySchema,
  exactAmountSchema,
  idSchema,
  nameSchema,
  optionalTimestamp,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { decisionJson, decisionSchema, importStatusSchema } from "./import-decisions.ts";
import { dateSchema } from "./line-json.ts";
import { encodingSchema } from "./mapping-json.ts";

const FORMATS =
  "The kind of file: `sumup`, `adyen_settlement_details`, `stripe_payout_reconciliation`, `stripe_activity`, `paypal_stl`, `paypal_trr`, `paypal_activity`, `camt.053`, `camt.054`, `mt940`, `sandbox`, or `csv` with a mapping.";
const formatSchema = z.string().meta({ examples: ["camt.053"] });

const uploadQuerySchema = z.strictObject({
  file_name: nameSchema.meta({
    description: "The name by which people find the file again.",
    examples: ["2026-11.xml"],
  }),
  format: formatSchema.optional().meta({ description: FORMATS }),
  encoding: encodingSchema
    .optional()
    .meta({ description: "The text encoding of the file. Declare it together with the format." }),
  mapping_id: queryId().optional().meta({ description: "The mapping for a CSV file; it also has the encoding." }),
});
const confirmBodySchema = z
  .strictObject({
    format: formatSchema.optional().meta({ description: FORMATS }),
    encoding: encodingSchema.optional(),
    mapping_id: idSchema.optional(),
  })
  .meta({ id: "ConfirmImportFormat", examples: [{ format: "camt.053", encoding: "utf-8" }] });
const listQuerySchema = z.strictObject({
  ...pageBeforeQuery,
  account_id: queryId().optional().meta({ description: "Only the imports of this statement account." }),
  status: importStatusSchema.optional().meta({ description: "Only the imports that have this status now." }),
});

const candidatesSchema = z
  .object({
    formats: z.array(z.object({ name: z.string(), title: z.string() })),
    encodings: z.array(z.object({ encoding: encodingSchema, reason: z.string(), sample: z.string() })),
    refusal: z
      .object({ code: z.string(), detail: z.string() })
      .nullable()
      .meta({ description: "Why the service cannot read the file as a statement." }),
  })
  .meta({ id: "StatementCandidates", description: "What fits the beginning of the file. A person confirms it." });

const EXAMPLE = {
  import_id: 9,
  account_id: 3,
  file_name: "2026-11.xml",
  size_bytes: 482_113,
  sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  format: "camt.053",
  encoding: "utf-8",
  mapping_id: null,
  status: "imported",
  status_code: null,
  status_detail: null,
  uploaded_by: 42,
  uploaded_at: "2026-12-01T09:00:00.000Z",
  ended_at: "2026-12-01T09:00:02.000Z",
  read_bytes: 482_113,
  records: 1_212,
  lines_new: 1_180,
  lines_known: 30,
  malformed: 1,
  totals: [{ name: "closing balance", currency: "EUR", stated: "1204.50", computed: "1204.50" }],
  from_date: "2026-11-01",
  to_date: "2026-11-30",
  released: null,
  withdrawn: null,
  candidates: null,
} as const;

const importFields = {
  import_id: idSchema,
  account_id: idSchema,
  file_name: z.string(),
  size_bytes: z.int(),
  sha256: z.string(),
  format: z.string().nullable().meta({ description: "Null until it is declared or confirmed." }),
  encoding: encodingSchema.nullable(),
  mapping_id: idSchema.nullable(),
  status: importStatusSchema,
  status_code: z.string().nullable().meta({ description: "Why the file is held or refused." }),
  status_detail: z.string().nullable().meta({ description: "The same in one sentence, with the next step." }),
  uploaded_by: idSchema,
  uploaded_at: timestampSchema,
  ended_at: timestampSchema.nullable(),
  read_bytes: z.int().meta({ description: "How many of the `size_bytes` are read." }),
  records: z.int(),
  lines_new: z.int(),
  lines_known: z.int().meta({ description: "Lines that an earlier file of the account already had." }),
  malformed: z.int().meta({ description: "Rows that are not valid lines; `malformed-rows/` lists them." }),
  totals: z.array(
    z.object({ name: z.string(), currency: currencySchema, stated: exactAmountSchema, computed: exactAmountSchema }),
  ),
  from_date: dateSchema.nullable(),
  to_date: dateSchema.nullable(),
  released: decisionSchema.meta({ description: "Who has released a held file, when and why." }),
  withdrawn: decisionSchema.meta({ description: "Who has withdrawn it, when and why." }),
};
const importSchema = z
  .object({
    ...importFields,
    candidates: candidatesSchema.nullable().meta({ description: "Null unless the import waits for its format." }),
  })
  .meta({ id: "StatementImport", examples: [EXAMPLE] });
const listedImportSchema = z.object(importFields).meta({ id: "ListedStatementImport" });
const importsSchema = z.object({ imports: z.array(listedImportSchema), has_more: hasMoreBefore });

function listedImportJson(file: bus.StatementImport): z.infer<typeof listedImportSchema> {
  return {
    import_id: file.importId,
    account_id: file.accountId,
    file_name: file.fileName,
    size_bytes: file.sizeBytes,
    sha256: file.sha256,
    format: file.format,
    encoding: file.encoding,
    mapping_id: file.mappingId,
    status: file.status,
    status_code: file.statusCode,
    status_detail: file.statusDetail,
    uploaded_by: file.uploadedBy,
    uploaded_at: toTimestamp(file.uploadedAtMs),
    ended_at: optionalTimestamp(file.endedAtMs),
    read_bytes: file.readBytes,
    records: file.records,
    lines_new: file.linesNew,
    lines_known: file.linesKnown,
    malformed: file.malformed,
    totals: file.totals.map(({ name, currency, statedMinor, computedMinor }) => ({
      name,
      currency,
      stated: formatExactAmount(BigInt(statedMinor), currency),
      computed: formatExactAmount(BigInt(computedMinor), currency),
    })),
    from_date: file.fromDate,
    to_date: file.toDate,
    released: decisionJson(file.released),
    withdrawn: decisionJson(file.withdrawn),
  };
}

type ImportReply = {
  readonly import: bus.StatementImport;
  readonly candidates: z.infer<typeof bus.candidatesSchema> | null;
};

const importJson = (reply: ImportReply): z.infer<typeof importSchema> => ({
  ...listedImportJson(reply.import),
  candidates: reply.candidates,
});

/** Stores the bytes first. When the service then refuses the import, the gateway deletes the file. */
const uploadImport: SessionHandler<AsyncIterable<Uint8Array>, z.infer<typeof uploadQuerySchema>> = async (context) => {
  const { caller, deps, body, query } = context;
  const { file_name: fileName, format, encoding, mapping_id: mappingId } = query;
  const request = { caller, accountId: context.id("account_id"), format, encoding, mappingId };
  const release = deps.uploadSlots.tryAcquire(caller.organizationId);
  if (release === undefined) throw new ApiError("busy");
  try {
    await deps.bus.call(bus.prepareImport, request);
    const { name: objectName, sizeBytes, sha256 } = await deps.bus.storeFile(body);
    const facts = { fileName, objectName, sizeBytes, sha256 };
    const reply = await deps.bus.call(bus.createImport, { ...request, ...facts }).catch(async (error: unknown) => {
      // Without an answer, the service may have registered the file. If not, retention deletes the file later.
      if (error instanceof RefusedError) await deps.bus.discardFile(objectName);
      throw error;
    });
    if (reply.isNew) return created(importJson(reply));
    await deps.bus.discardFile(objectName);
    return ok(importJson(reply));
  } finally {
    release();
  }
};

const confirmImportFormat: SessionHandler<z.infer<typeof confirmBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { format, encoding, mapping_id: mappingId } = body;
  const request = { caller, importId: context.id("import_id"), format, encoding, mappingId };
  return ok(importJson(await deps.bus.call(bus.confirmImportFormat, request)));
};

const getImport: SessionHandler = async (context) => {
  const { caller, deps } = context;
  return ok(importJson(await deps.bus.call(bus.getImport, { caller, importId: context.id("import_id") })));
};

const listImports: SessionHandler<undefined, z.infer<typeof listQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { account_id: accountId, status, before_id: beforeId, limit } = query;
  const { imports, hasMore } = await deps.bus.call(bus.listImports, { caller, accountId, status, beforeId, limit });
  return ok({ imports: imports.map(listedImportJson), has_more: hasMore });
};

const who = session("reconciliation.manage");
const tag = "reconciliation";
const imports = "/api/reconciliation/v1/imports/" as const;
const statementImport = `${imports}{import_id}/` as const;
const CONFLICTS = `The \`reason\` of a \`conflict\` is one of ${IMPORT_CONFLICTS.map((word) => `\`${word}\``).join(", ")}.`;

export const statementImportRoutes = [
  fileBodyRoute({
    method: "POST",
    path: "/api/reconciliation/v1/accounts/{account_id}/imports/",
    operation: "uploadImport",
    tag,
    summary: "Upload a statement file",
    description:
      "The body is the unchanged file from the provider, up to 2 GiB, or a zip of such files. Declare its format and encoding, or a mapping. Or leave them out, read the `candidates` in the answer and confirm one. For the same bytes again, the answer is 200 with the first import.",
    who,
    streamsBody: true,
    bodyBytes: bus.STATEMENT_FILE_BYTES,
    query: uploadQuerySchema,
    replies: {
      200: { description: "The account has this file already.", schema: importSchema },
      201: { description: "The file is stored.", schema: importSchema },
    },
    errors: ["not_found", "conflict", "storage_low"],
    handler: uploadImport,
  }),
  reconciliationRoute({
    method: "GET",
    path: imports,
    operation: "listImports",
    summary: "List imports",
    description: "The imports of all accounts or of one, the newest first.",
    query: listQuerySchema,
    replies: { 200: { description: "Newest first.", schema: importsSchema } },
    handler: listImports,
  }),
  reconciliationRoute({
    method: "GET",
    path: statementImport,
    operation: "getImport",
    summary: "Read an import",
    description: "The progress of the import while it is under way, and then its result.",
    replies: { 200: { description: "The import.", schema: importSchema } },
    errors: ["not_found"],
    handler: getImport,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${statementImport}confirm/`,
    operation: "confirmImportFormat",
    summary: "Confirm the format of a file",
    description: `Confirms a format and an encoding, or a mapping. The import then waits for its turn. ${CONFLICTS} A repetition with the same body gets the same answer.`,
    body: confirmBodySchema,
    replies: { 200: { description: "The import.", schema: importSchema } },
    errors: ["not_found", "conflict"],
    handler: confirmImportFormat,
  }),
];
