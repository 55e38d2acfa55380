/**
 * Uploaded statement files. The gateway stores the bytes in the object store first and names them here. Every operation needs
 * `reconciliation.manage`.
 *
 *   createImport ──► needs_format ── confirmImportFormat ──► waiting ──► importing ──► imported | held | refused
 */
import { z } from "zod";
import { repeatable } from "../operation.ts";
import { pageBefore } from "../page.ts";
import { signedMinorSchema as signedMinor } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { decisionSchema, IMPORT_STATUSES } from "./import-decisions.ts";
import { nameSchema } from "./name.ts";
import { ENCODINGS } from "./statement-formats.ts";

const id = z.int().positive();
const count = z.int().min(0);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** The longest file: 2 GiB, about ten million lines. */
export const STATEMENT_FILE_BYTES = 2 * 1_024 ** 3;

/**
 * How to read a file: a format and an encoding, or a mapping, which has both. When all are left out, a person confirms
 * them later.
 */
const declarationSchema = z.object({
  format: z.string().optional(),
  encoding: z.enum(ENCODINGS).optional(),
  mappingId: id.optional(),
});

/**
 * The formats and encodings that fit the beginning of a file. The service uses none of them before a person confirms
 * it.
 */
export const candidatesSchema = z.object({
  formats: z.array(z.object({ name: z.string(), title: z.string() })),
  /** The most likely encoding first. The sample is the text around the first character that is not ASCII. */
  encodings: z.array(z.object({ encoding: z.enum(ENCODINGS), reason: z.string(), sample: z.string() })),
  /** Why the file cannot be read as a statement. */
  refusal: z.object({ code: z.string(), detail: z.string() }).nullable(),
});

export const importSchema = z.object({
  importId: id,
  accountId: id,
  fileName: z.string(),
  sizeBytes: count,
  sha256,
  /** Null until it is declared or confirmed. */
  format: z.string().nullable(),
  encoding: z.enum(ENCODINGS).nullable(),
  mappingId: id.nullable(),
  status: z.enum(IMPORT_STATUSES),
  /** Why the import is held or refused. */
  statusCode: z.string().nullable(),
  statusDetail: z.string().nullable(),
  uploadedBy: id,
  uploadedAtMs: z.number(),
  endedAtMs: z.number().nullable(),
  /** How many bytes the import has read; for an archive, bytes of the archive. */
  readBytes: count,
  records: count,
  linesNew: count,
  linesKnown: count,
  malformed: count,
  totals: z.array(
    z.object({ name: z.string(), currency: z.string(), statedMinor: signedMinor, computedMinor: signedMinor }),
  ),
  fromDate: z.string().nullable(),
  toDate: z.string().nullable(),
  released: decisionSchema,
  withdrawn: decisionSchema,
});
export type StatementImport = z.infer<typeof importSchema>;

/** With candidates while it waits for its format. */
const importReply = z.object({ import: importSchema, candidates: candidatesSchema.nullable() });

/**
 * Checks whether the caller may upload the file, before the gateway reads its bytes. Refuses with `permission_denied`,
 * `not_found` (the account or the mapping), `invalid_request` (the declaration) or `storage_low`.
 */
export const prepareImport = repeatable(
  "reconciliation.prepareImport",
  z.object({ caller, accountId: id, ...declarationSchema.shape }),
  z.object({}),
);

/**
 * Registers a stored file. For the same bytes again it returns the first import of the account, unless that was refused
 * or withdrawn. Refuses as `prepareImport` does, and with `conflict` while the withdrawal of the first import is under
 * way.
 */
export const createImport = repeatable(
  "reconciliation.createImport",
  z.object({
    caller,
    accountId: id,
    ...declarationSchema.shape,
    fileName: nameSchema,
    objectName: z.string(),
    sizeBytes: count,
    sha256,
  }),
  importReply.extend({ isNew: z.boolean() }),
);

/**
 * Refuses with `not_found`, `invalid_request`, or `conflict` with a reason of `IMPORT_CONFLICTS`. A repetition gets the
 * same answer.
 */
export const confirmImportFormat = repeatable(
  "reconciliation.confirmImportFormat",
  z.object({ caller, importId: id, ...declarationSchema.shape }),
  importReply,
);

export const getImport = repeatable("reconciliation.getImport", z.object({ caller, importId: id }), importReply);

/** Newest first. */
export const listImports = repeatable(
  "reconciliation.listImports",
  z.object({ caller, accountId: id.optional(), status: z.enum(IMPORT_STATUSES).optional(), ...pageBefore }),
  z.object({ imports: z.array(importSchema), hasMore: z.boolean() }),
);
