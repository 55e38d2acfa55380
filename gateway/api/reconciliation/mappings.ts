/** Mappings for CSV files whose header is in no dictionary. An operator stores, previews and tests versions of them. */
import { z } from "zod";
import { formatExactAmount } from "../../../machines/currency.ts";
import { nameSchema as nameOnTheBus } from "../../../services/bus/messages/name.ts";
import * as bus from "../../../services/bus/messages/statement-mappings.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import {
  currencySchema,
  exactAmountSchema,
  idSchema,
  nameSchema,
  optionalTimestamp,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";
import {
  dateSchema,
  lineFieldsJson,
  lineShape,
  malformedRowJson,
  malformedRowSchema,
  positionSchema,
} from "./line-json.ts";
import { definitionJson, definitionOf, definitionSchema } from "./mapping-json.ts";
import { lineKindSchema } from "./matches.ts";

const versionSchema = z.int().positive();

const EXAMPLE_DEFINITION = definitionSchema.meta()?.examples?.[0];
const mappingSchema = z
  .object({
    mapping_id: idSchema,
    name: z.string(),
    version: versionSchema,
    is_newest: z.boolean().meta({ description: "Whether no version of the name is newer." }),
    definition: definitionSchema,
    created_by: idSchema,
    created_at: timestampSchema,
  })
  .meta({
    id: "StatementMapping",
    examples: [
      {
        mapping_id: 4,
        name: "Bank of the bar",
        version: 1,
        is_newest: true,
        definition: EXAMPLE_DEFINITION,
        created_by: 42,
        created_at: "2026-11-20T12:00:00.000Z",
      },
    ],
  });
const mappingsSchema = z.object({ statement_mappings: z.array(mappingSchema), has_more: hasMoreAfter });
const mappingsQuerySchema = z.strictObject({
  ...pageAfterQuery,
  name: nameOnTheBus.optional().meta({ description: "Only the versions of this mapping." }),
  versions: z
    .enum(["all", "newest"])
    .meta({ id: "MappingVersions" })
    .optional()
    .meta({ description: "`newest`: only the newest version of each mapping; all versions when left out." }),
});
const createMappingBodySchema = z
  .strictObject({
    name: nameSchema,
    corrects: versionSchema.optional().meta({
      description: "The newest version of the name, which the new one corrects; left out for a new name.",
    }),
    definition: definitionSchema,
  })
  .meta({ id: "CreateStatementMapping", examples: [{ name: "Bank of the bar", definition: EXAMPLE_DEFINITION }] });

const whichShape = {
  import_id: idSchema.meta({ description: "The uploaded file, whether it is imported or not." }),
  mapping_id: idSchema.optional().meta({ description: "A stored mapping." }),
  definition: definitionSchema.optional().meta({
    description: "A definition that is not stored yet, instead of `mapping_id`.",
  }),
};
const previewBodySchema = z
  .strictObject({
    ...whichShape,
    limit: z
      .int()
      .min(1)
      .max(bus.PREVIEW_ROWS.most)
      .default(bus.PREVIEW_ROWS.unlessAsked)
      .meta({ override: { default: bus.PREVIEW_ROWS.unlessAsked }, description: "How many rows." }),
  })
  .meta({ id: "PreviewStatementMapping", examples: [{ import_id: 9, mapping_id: 4 }] });
const testBodySchema = z
  .strictObject(whichShape)
  .meta({ id: "TestStatementMapping", examples: [{ import_id: 9, mapping_id: 4 }] });

const refusalSchema = z.object({ code: z.string(), detail: z.string() }).nullable().meta({
  description: "Why the whole file cannot be read with this mapping, such as `mapping_refused`; null otherwise.",
});
const previewSchema = z
  .object({
    refusal: refusalSchema,
    rows: z.array(
      z.object({
        position: positionSchema,
        raw: z.string().meta({ description: "The row as it is in the file, up to a limit." }),
        fields: z
          .array(z.object({ column: z.string(), value: z.string() }))
          .meta({ description: "The columns of the file; empty for a row that cannot be split." }),
        outcome: z.enum(["line", "malformed", "skipped"]).meta({ id: "PreviewOutcome" }),
        line: z.object(lineShape).nullable().meta({ description: "What the row becomes." }),
        malformed: malformedRowSchema.nullable().meta({ description: "Why the row is not a valid line." }),
      }),
    ),
    has_more: z.boolean().meta({ description: "Whether the file has more rows." }),
  })
  .meta({ id: "MappingPreview" });

const mappingTestSchema = z
  .object({
    test_id: idSchema,
    import_id: idSchema,
    mapping_id: idSchema.nullable(),
    status: z.enum(bus.MAPPING_TEST_STATUSES).meta({
      id: "MappingTestStatus",
      description: "`refused`: the mapping does not fit the file; `failed`: the file could not be read, test it again.",
    }),
    refusal: refusalSchema,
    read_bytes: z.int(),
    size_bytes: z.int(),
    lines: z.int(),
    malformed: z.int(),
    skipped: z.int().meta({ description: "Rows that a rule of the mapping skips." }),
    totals: z
      .array(
        z.object({
          currency: currencySchema,
          kind: lineKindSchema,
          lines: z.int(),
          amount: exactAmountSchema,
          fee: exactAmountSchema,
        }),
      )
      .meta({ description: "By currency and kind." }),
    from_date: dateSchema.nullable().meta({ description: "The first day of its lines." }),
    to_date: dateSchema.nullable(),
    malformed_rows: z.array(malformedRowSchema).meta({ description: "The first ones." }),
    started_by: idSchema,
    started_at: timestampSchema,
    ended_at: timestampSchema.nullable(),
  })
  .meta({ id: "MappingTest" });

function mappingJson(mapping: bus.StatementMapping): z.infer<typeof mappingSchema> {
  return {
    mapping_id: mapping.mappingId,
    name: mapping.name,
    version: mapping.version,
    is_newest: mapping.isNewest,
    definition: definitionJson(mapping.definition),
    created_by: mapping.createdBy,
    created_at: toTimestamp(mapping.createdAtMs),
  };
}

function previewRowJson({ position, raw, fields, outcome }: bus.PreviewRow) {
  const line = outcome.type === "line" ? lineFieldsJson(outcome.line) : null;
  const malformed = outcome.type === "malformed" ? malformedRowJson(outcome.malformed) : null;
  return { position, raw, fields, outcome: outcome.type, line, malformed };
}

function mappingTestJson(test: bus.MappingTest): z.infer<typeof mappingTestSchema> {
  return {
    test_id: test.testId,
    import_id: test.importId,
    mapping_id: test.mappingId,
    status: test.status,
    refusal: test.refusal,
    read_bytes: test.readBytes,
    size_bytes: test.sizeBytes,
    lines: test.lines,
    malformed: test.malformed,
    skipped: test.skipped,
    totals: test.totals.map(({ currency, kind, lines, amountMinor, feeMinor }) => ({
      currency,
      kind,
      lines,
      amount: formatExactAmount(BigInt(amountMinor), currency),
      fee: formatExactAmount(BigInt(feeMinor), currency),
    })),
    from_date: test.fromDate,
    to_date: test.toDate,
    malformed_rows: test.malformedRows.map(malformedRowJson),
    started_by: test.startedBy,
    started_at: toTimestamp(test.startedAtMs),
    ended_at: optionalTimestamp(test.endedAtMs),
  };
}

const listStatementMappings: SessionHandler<undefined, z.infer<typeof mappingsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { name, versions, since_id: sinceId, limit } = query;
  const request = { caller, name, isNewest: versions === "newest", sinceId, limit };
  const { mappings, hasMore } = await deps.bus.call(bus.listStatementMappings, request);
  return ok({ statement_mappings: mappings.map(mappingJson), has_more: hasMore });
};

const getStatementMapping: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, mappingId: context.id("mapping_id") };
  return ok(mappingJson((await deps.bus.call(bus.getStatementMapping, request)).mapping));
};

/** Errors: `not_found` for a correction of an unknown name, `conflict` for a correction of a version that is not the newest. */
const createStatementMapping: SessionHandler<z.infer<typeof createMappingBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, name: body.name, corrects: body.corrects, definition: definitionOf(body.definition) };
  return created(mappingJson((await deps.bus.call(bus.createStatementMapping, request)).mapping));
};

function whichOf({ import_id, mapping_id, definition }: z.infer<typeof testBodySchema>) {
  return {
    importId: import_id,
    mappingId: mapping_id,
    definition: definition === undefined ? undefined : definitionOf(definition),
  };
}

const previewStatementMapping: SessionHandler<z.infer<typeof previewBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, ...whichOf(body), limit: body.limit };
  const { refusal, rows, hasMore } = await deps.bus.call(bus.previewStatementMapping, request);
  return ok({ refusal, rows: rows.map(previewRowJson), has_more: hasMore });
};

const testStatementMapping: SessionHandler<z.infer<typeof testBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { test } = await deps.bus.call(bus.testStatementMapping, { caller, ...whichOf(body) });
  return created(mappingTestJson(test));
};

const getMappingTest: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, testId: context.id("test_id") };
  return ok(mappingTestJson((await deps.bus.call(bus.getMappingTest, request)).test));
};

const mappings = "/api/reconciliation/v1/statement-mappings/" as const;
const { mappingBodyBytes: bodyBytes } = LIMITS;
const CONFLICTS = `The body may have ${bodyBytes / 1_024} KiB. The \`reason\` of a \`conflict\` is one of ${bus.MAPPING_CONFLICTS.map((word) => `\`${word}\``).join(", ")}.`;

export const statementMappingRoutes = [
  reconciliationRoute({
    method: "GET",
    path: mappings,
    operation: "listStatementMappings",
    summary: "List mappings",
    description: "All versions, each with its definition; a file is imported with one version.",
    query: mappingsQuerySchema,
    replies: { 200: { description: "By id.", schema: mappingsSchema } },
    handler: listStatementMappings,
  }),
  reconciliationRoute({
    method: "POST",
    path: mappings,
    operation: "createStatementMapping",
    summary: "Store a mapping, or its next version",
    description: `A version never changes; a correction is a new version. The same definition again returns the existing version. ${CONFLICTS}`,
    body: createMappingBodySchema,
    bodyBytes,
    replies: { 201: { description: "The version.", schema: mappingSchema } },
    errors: ["not_found", "conflict"],
    handler: createStatementMapping,
  }),
  reconciliationRoute({
    method: "GET",
    path: `${mappings}{mapping_id}/`,
    operation: "getStatementMapping",
    summary: "Read a version of a mapping",
    description: "With its definition, which never changes.",
    replies: { 200: { description: "The version.", schema: mappingSchema } },
    errors: ["not_found"],
    handler: getStatementMapping,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${mappings}preview/`,
    operation: "previewStatementMapping",
    summary: "Show how a mapping reads the first rows of a file",
    description: `The result of each row. The service stores nothing. ${CONFLICTS}`,
    body: previewBodySchema,
    bodyBytes,
    replies: { 200: { description: "The rows.", schema: previewSchema } },
    errors: ["not_found", "conflict"],
    handler: previewStatementMapping,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${mappings}test/`,
    operation: "testStatementMapping",
    summary: "Read a whole file with a mapping",
    description: `Counts the lines, adds up their amounts, and stores no line. The answer comes when the test is done, or after two seconds with the \`status\` \`running\`. ${CONFLICTS}`,
    body: testBodySchema,
    bodyBytes,
    replies: { 201: { description: "The test.", schema: mappingTestSchema } },
    errors: ["not_found", "conflict"],
    handler: testStatementMapping,
  }),
  reconciliationRoute({
    method: "GET",
    path: "/api/reconciliation/v1/mapping-tests/{test_id}/",
    operation: "getMappingTest",
    summary: "Read the progress or result of a mapping test",
    description: "The service keeps a test for a week.",
    replies: { 200: { description: "The test.", schema: mappingTestSchema } },
    errors: ["not_found"],
    handler: getMappingTest,
  }),
];
