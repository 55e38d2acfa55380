/**
 * Mappings of CSV files, and previews and tests of a mapping with an uploaded file before the import. A version never
 * changes; a correction is a new version. Every operation needs `reconciliation.manage`.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { signedMinorSchema as signedMinor } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { csvMappingShape } from "./csv-mapping.ts";
import { nameSchema } from "./name.ts";
import { LINE_KINDS } from "./statement-formats.ts";
import { malformedRowSchema, readLineSchema } from "./statement-lines.ts";

const id = z.int().positive();
const version = z.int().positive();
const count = z.int().min(0);

const statementMappingSchema = z.object({
  mappingId: id,
  name: z.string(),
  version,
  /** Whether it is the newest version of its name. */
  isNewest: z.boolean(),
  definition: csvMappingShape,
  createdBy: id,
  createdAtMs: z.number(),
});
export type StatementMapping = z.infer<typeof statementMappingSchema>;
const oneMapping = z.object({ mapping: statementMappingSchema });

/** Why a mapping is not stored, previewed or tested: the `reason` of a `conflict`. */
export const MAPPING_CONFLICTS = [
  /** The name is taken: the request must have the version that it corrects. */
  "mapping_exists",
  /** Another person has stored a newer version meanwhile. */
  "mapping_changed",
  "too_many_mappings",
  /** The import's file was deleted. */
  "file_gone",
] as const;

/** By id. `name` selects the versions of one mapping, `isNewest` only the newest version of each. */
export const listStatementMappings = repeatable(
  "reconciliation.listStatementMappings",
  z.object({ caller, name: z.string().optional(), isNewest: z.boolean().optional(), ...pageAfter }),
  z.object({ mappings: z.array(statementMappingSchema), hasMore: z.boolean() }),
);
export const getStatementMapping = repeatable(
  "reconciliation.getStatementMapping",
  z.object({ caller, mappingId: id }),
  oneMapping,
);
/**
 * Creates version 1 of a new name, or the version after `corrects`. The same definition again returns the existing
 * version. Refuses with `not_found` (no such name), `invalid_request` or `conflict` with a reason of
 * `MAPPING_CONFLICTS`.
 */
export const createStatementMapping = repeatable(
  "reconciliation.createStatementMapping",
  z.object({ caller, name: nameSchema, corrects: version.optional(), definition: csvMappingShape }),
  oneMapping,
);

/** Either a stored mapping, or a definition that is not stored yet. */
const which = { mappingId: id.optional(), definition: csvMappingShape.optional() };
/** Why the file is refused with this mapping: a code for programs, and a sentence. */
const refusal = z.object({ code: z.string(), detail: z.string() }).nullable();

export const PREVIEW_ROWS = { unlessAsked: 20, most: 100 } as const;

const previewRowSchema = z.object({
  position: z.int().positive(),
  /** The beginning of the row, as it is in the file. */
  raw: z.string(),
  /** The columns of the file with their values; empty for a row that cannot be split. */
  fields: z.array(z.object({ column: z.string(), value: z.string() })),
  outcome: z.discriminatedUnion("type", [
    z.object({ type: z.literal("line"), line: readLineSchema }),
    z.object({ type: z.literal("malformed"), malformed: malformedRowSchema }),
    /** A rule of the mapping skips the row. */
    z.object({ type: z.literal("skipped") }),
  ]),
});
export type PreviewRow = z.infer<typeof previewRowSchema>;

/** The first rows of an uploaded file. Refuses with `not_found`, `invalid_request` or `conflict` with a reason. */
export const previewStatementMapping = repeatable(
  "reconciliation.previewStatementMapping",
  z.object({ caller, importId: id, ...which, limit: z.int().min(1).max(PREVIEW_ROWS.most) }),
  z.object({ refusal, rows: z.array(previewRowSchema), hasMore: z.boolean() }),
);

export const MAPPING_TEST_STATUSES = ["running", "done", "refused", "failed"] as const;

export const mappingTestSchema = z.object({
  testId: id,
  importId: id,
  mappingId: id.nullable(),
  status: z.enum(MAPPING_TEST_STATUSES),
  refusal,
  readBytes: count,
  sizeBytes: count,
  lines: count,
  malformed: count,
  skipped: count,
  totals: z.array(
    z.object({
      currency: z.string(),
      kind: z.enum(LINE_KINDS),
      lines: count,
      amountMinor: signedMinor,
      feeMinor: signedMinor,
    }),
  ),
  fromDate: z.string().nullable(),
  toDate: z.string().nullable(),
  /** The first malformed rows. */
  malformedRows: z.array(malformedRowSchema),
  startedBy: id,
  startedAtMs: z.number(),
  endedAtMs: z.number().nullable(),
});
export type MappingTest = z.infer<typeof mappingTestSchema>;
const oneTest = z.object({ test: mappingTestSchema });

/**
 * Starts a test that reads the whole file without storing a line. Answers when the test is done, or after a short time;
 * `getMappingTest` shows its progress. Refuses with `not_found`, `invalid_request`, `busy` or `conflict` with a reason.
 */
export const testStatementMapping = once(
  "reconciliation.testStatementMapping",
  z.object({ caller, importId: id, ...which }),
  oneTest,
);
export const getMappingTest = repeatable("reconciliation.getMappingTest", z.object({ caller, testId: id }), oneTest);
