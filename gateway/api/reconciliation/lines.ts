/** The lines of statements, and the malformed rows of their files. */
import { z } from "zod";
import { parseSignedAmount } from "../../../machines/currency.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as bus from "../../../services/bus/messages/statement-lines.ts";
import { ApiError, ok, type SessionHandler } from "../../http/handler-context.ts";
import { pageAfterQuery, queryId, queryNumber } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { currencySchema, idSchema, requestDateSchema } from "../../http/shared-schemas.ts";
import {
  malformedRowJson,
  malformedRowSchema,
  positionSchema,
  statementLineJson,
  statementLineSchema,
} from "./line-json.ts";
import { lineKindSchema } from "./matches.ts";

const { limit } = pageAfterQuery;
const amountSchema = z
  .string()
  .regex(/^-?\d{1,14}(?:\.\d{1,4})?$/)
  .meta({ examples: ["12.50"] });

const filterShape = {
  kind: lineKindSchema.optional().meta({ description: "Only lines of this one kind; all kinds when left out." }),
  reference: z.string().min(1).max(BOUNDS.stationTextCharacters).optional().meta({
    description: "Only lines with exactly this reference: of the provider, the payment, the merchant or the payout.",
  }),
  currency: currencySchema.optional().meta({ description: "Only lines in this currency, by its ISO 4217 code." }),
  min_amount: amountSchema.optional().meta({
    description: "Only lines of at least this amount, with its sign; `currency` must be given with it.",
  }),
  max_amount: amountSchema.optional().meta({
    description: "Only lines of at most this amount, with its sign; `currency` must be given with it.",
  }),
};
export const linesFilterShape = {
  account_id: queryId().meta({ description: "Only lines of the statements of this account." }),
  from_date: requestDateSchema.optional().meta({ description: "Only lines that were booked on this day or later." }),
  to_date: requestDateSchema.optional().meta({ description: "Only lines that were booked on this day or earlier." }),
  ...filterShape,
};
const linesQuerySchema = z
  .strictObject({
    ...linesFilterShape,
    since_day: requestDateSchema.optional().meta({
      description: "Only lines after the line `since_id` of this day: `booked_on` of the last line of the page before.",
    }),
    since_id: queryNumber({ least: 0 })
      .optional()
      .meta({ description: "The `line_id` of the last line of the page before; `since_day` must be given with it." }),
    limit,
  })
  .refine(({ since_day, since_id }) => (since_day === undefined) === (since_id === undefined), {
    path: ["since_id"],
    error: "Must be given together with since_day.",
  });
const importLinesQuerySchema = z.strictObject({
  ...filterShape,
  since_position: queryNumber({ least: 0 })
    .default(0)
    .meta({
      override: { default: 0 },
      description: "Only lines after this position: the position of the last line of the page before.",
    }),
  limit,
});
const malformedQuerySchema = z
  .strictObject({
    account_id: queryId().optional().meta({ description: "Only rows of the files of this account." }),
    import_id: queryId().optional().meta({ description: "Only rows of the file of this import." }),
    since_import_id: queryNumber({ least: 0 }).optional().meta({
      description:
        "Only rows after the row `since_position` of this import: `import_id` of the last row of the page before.",
    }),
    since_position: queryNumber({ least: 0 }).optional().meta({
      description: "The `position` of the last row of the page before; `since_import_id` must be given with it.",
    }),
    limit,
  })
  .refine(({ since_import_id, since_position }) => (since_import_id === undefined) === (since_position === undefined), {
    path: ["since_position"],
    error: "Must be given together with since_import_id.",
  });

const linesSchema = z.object({
  lines: z.array(statementLineSchema),
  has_more: z.boolean().meta({
    description:
      "Whether there are more: ask again with the last line's `booked_on` as `since_day` and `line_id` as `since_id`.",
  }),
});
const importLinesSchema = z.object({
  lines: z.array(statementLineSchema.extend({ position: positionSchema }).meta({ id: "StatementLineOfImport" })),
  has_more: z.boolean().meta({
    description: "Whether there are more: ask again with the last line's `position` as `since_position`.",
  }),
});
const malformedRowsSchema = z.object({
  malformed_rows: z.array(malformedRowSchema.extend({ import_id: idSchema }).meta({ id: "MalformedRow" })),
  has_more: z.boolean().meta({
    description:
      "Whether there are more: ask again with the last row's `import_id` as `since_import_id` and `position` as `since_position`.",
  }),
});

type Filter = z.infer<z.ZodObject<typeof filterShape>>;

/** Throws `invalid_request` for an amount without a currency, or with more decimals than its currency has. */
export function filterOf({ kind, reference, currency, min_amount, max_amount }: Filter): bus.LineFilter {
  const minorOf = (name: string, text: string | undefined): string | undefined => {
    if (text === undefined) return undefined;
    const minor = currency === undefined ? undefined : parseSignedAmount(text, currency);
    if (minor !== undefined) return minor.toString();
    const detail = "Must be an amount of `currency`, which must be given with it.";
    throw new ApiError("invalid_request", { errors: [{ pointer: `/${name}`, code: "not_of_currency", detail }] });
  };
  return {
    kind,
    reference,
    currency,
    leastMinor: minorOf("min_amount", min_amount),
    mostMinor: minorOf("max_amount", max_amount),
  };
}

const listLines: SessionHandler<undefined, z.infer<typeof linesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { account_id: accountId, from_date: fromDate, to_date: toDate, since_day: bookedOn, since_id: lineId } = query;
  const after = bookedOn === undefined || lineId === undefined ? undefined : { bookedOn, lineId };
  const request = { caller, accountId, fromDate, toDate, ...filterOf(query), after, limit: query.limit };
  const { lines, hasMore } = await deps.bus.call(bus.listLines, request);
  return ok({ lines: lines.map(statementLineJson), has_more: hasMore });
};

const listImportLines: SessionHandler<undefined, z.infer<typeof importLinesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { since_position: sincePosition } = query;
  const wanted = { importId: context.id("import_id"), ...filterOf(query), sincePosition, limit: query.limit };
  const { lines, hasMore } = await deps.bus.call(bus.listImportLines, { caller, ...wanted });
  return ok({
    lines: lines.map((line) => ({ ...statementLineJson(line), position: line.position })),
    has_more: hasMore,
  });
};

const listMalformedRows: SessionHandler<undefined, z.infer<typeof malformedQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { account_id: accountId, import_id: importId, since_import_id, since_position } = query;
  const after =
    since_import_id === undefined || since_position === undefined
      ? undefined
      : { importId: since_import_id, position: since_position };
  const request = { caller, accountId, importId, after, limit: query.limit };
  const { rows, hasMore } = await deps.bus.call(bus.listMalformedRows, request);
  return ok({
    malformed_rows: rows.map((row) => ({ import_id: row.importId, ...malformedRowJson(row) })),
    has_more: hasMore,
  });
};

const api = "/api/reconciliation/v1/" as const;

export const statementLineRoutes = [
  reconciliationRoute({
    method: "GET",
    path: `${api}lines/`,
    operation: "listLines",
    summary: "List the lines of an account's statements",
    description: "Each line once, even if several files have it, with the result of the last run.",
    query: linesQuerySchema,
    replies: { 200: { description: "By booking day.", schema: linesSchema } },
    errors: ["not_found"],
    handler: listLines,
  }),
  reconciliationRoute({
    method: "GET",
    path: `${api}imports/{import_id}/lines/`,
    operation: "listImportLines",
    summary: "List the lines of a file",
    description: "The list includes lines that another file has too. A file that is not imported has no lines.",
    query: importLinesQuerySchema,
    replies: { 200: { description: "In the order of the file.", schema: importLinesSchema } },
    errors: ["not_found"],
    handler: listImportLines,
  }),
  reconciliationRoute({
    method: "GET",
    path: `${api}malformed-rows/`,
    operation: "listMalformedRows",
    summary: "List the malformed rows of files",
    description:
      "Each row has its position, the column with the error and the reason. The rows after it were still imported.",
    query: malformedQuerySchema,
    replies: { 200: { description: "By import and position.", schema: malformedRowsSchema } },
    errors: ["not_found"],
    handler: listMalformedRows,
  }),
];
