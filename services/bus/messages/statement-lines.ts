/**
 * The lines of statements, and malformed rows. Amounts are signed minor units. Every operation needs
 * `reconciliation.manage`.
 */
import { z } from "zod";
import { malformedReasonSchema } from "../malformed-reasons.ts";
import { repeatable } from "../operation.ts";
import { pageLimit } from "../page.ts";
import { signedMinorSchema as signedMinor } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { dateSchema } from "./date.ts";
import { LINE_KINDS } from "./statement-formats.ts";

const id = z.int().positive();
const date = z.iso.date();
const position = z.int().positive();

/** The fields of a statement line (`StatementLine` of services/reconciliation/formats). */
const statementLineShape = {
  kind: z.enum(LINE_KINDS),
  providerType: z.string(),
  amountMinor: signedMinor,
  currency: z.string(),
  feeMinor: signedMinor.nullable(),
  netMinor: signedMinor.nullable(),
  tipMinor: signedMinor.nullable(),
  bookedOn: date,
  valueOn: date.nullable(),
  /** ISO 8601; null where the statement has no instant. */
  occurredAt: z.string().nullable(),
  providerReference: z.string(),
  paymentReference: z.string(),
  merchantReference: z.string(),
  payoutReference: z.string(),
  terminal: z.string(),
  account: z.string(),
  text: z.string(),
  details: z.record(z.string(), z.string()),
};
/** A line of a file, before it is stored. */
export const readLineSchema = z.object({ position, ...statementLineShape });
export type ReadLine = z.infer<typeof readLineSchema>;

export const malformedRowSchema = z.object({
  position,
  /** Empty when the error is not in a single column. */
  column: z.string(),
  reason: z.string(),
  ...malformedReasonSchema.shape,
  raw: z.string(),
});
export type MalformedRow = z.infer<typeof malformedRowSchema>;

export const LINE_OUTCOMES = ["matched", "differs", "rejected"] as const;

export const statementLineSchema = z.object({
  lineId: id,
  accountId: id,
  ...statementLineShape,
  /** The files that contain the line, and its position in each: the newest imports first, up to a bound. */
  sources: z.array(z.object({ importId: id, position })),
  /** The result of the last run with this line; null before the first run. */
  outcome: z.enum(LINE_OUTCOMES).nullable(),
  /** The kind of its difference, or why the run does not compare it. */
  outcomeReason: z.string().nullable(),
  issueId: id.nullable(),
  matchId: id.nullable(),
});
export type StatementLine = z.infer<typeof statementLineSchema>;

/** A filter that is left out selects all lines. */
const filter = {
  kind: z.enum(LINE_KINDS).optional(),
  /** The reference of the provider, the payment, the merchant or the payout, as in the statement. */
  reference: z.string().optional(),
  currency: z.string().optional(),
  leastMinor: signedMinor.optional(),
  mostMinor: signedMinor.optional(),
};
export type LineFilter = z.infer<z.ZodObject<typeof filter>>;

/** By booking day; `after` is the last line of the page before. Refuses with `not_found`. */
export const listLines = repeatable(
  "reconciliation.listLines",
  z.object({
    caller,
    accountId: id,
    fromDate: dateSchema.optional(),
    toDate: dateSchema.optional(),
    ...filter,
    after: z.object({ bookedOn: dateSchema, lineId: z.int().min(0) }).optional(),
    limit: pageLimit,
  }),
  z.object({ lines: z.array(statementLineSchema), hasMore: z.boolean() }),
);

/** In the order of the file; each line with its position there. Refuses with `not_found`. */
export const listImportLines = repeatable(
  "reconciliation.listImportLines",
  z.object({ caller, importId: id, ...filter, sincePosition: z.int().min(0), limit: pageLimit }),
  z.object({ lines: z.array(statementLineSchema.extend({ position })), hasMore: z.boolean() }),
);

const listedMalformedRowSchema = malformedRowSchema.extend({ importId: id });
export type ListedMalformedRow = z.infer<typeof listedMalformedRowSchema>;

/** By import and position, without withdrawn imports. Refuses with `not_found`. */
export const listMalformedRows = repeatable(
  "reconciliation.listMalformedRows",
  z.object({
    caller,
    accountId: id.optional(),
    importId: id.optional(),
    after: z.object({ importId: z.int().min(0), position: z.int().min(0) }).optional(),
    limit: pageLimit,
  }),
  z.object({ rows: z.array(listedMalformedRowSchema), hasMore: z.boolean() }),
);
