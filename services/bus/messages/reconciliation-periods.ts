/**
 * Periods of statement accounts. A period is a day or a month of one account; only its closing is stored
 * (`reconciliation-closings.ts`).
 *
 *   open ── nothing is missing any more ──► ready ── a person closes it ──► closed, for good
 *
 * Needs `reconciliation.manage`.
 */
import { z } from "zod";
import { repeatable } from "../operation.ts";
import { callerSchema as caller } from "./caller.ts";
import { dateSchema } from "./date.ts";

const id = z.int().positive();
const date = z.iso.date();
const count = z.int().min(0);

export const PERIOD_KINDS = ["day", "month"] as const;
export const PERIOD_STATES = ["open", "ready", "closed"] as const;
/** What a period lacks before it can be closed. */
export const MISSING_CODES = [
  /** The provider may still book payments of the period. `day` is the first day on which the period can be closed. */
  "settlement_delay",
  /** No imported statement covers `count` days of the period. `day` is the first of them. */
  "statement_missing",
  "import_held",
  /** Files that wait for their format, or whose import or withdrawal is under way. */
  "import_unfinished",
  /** Statement lines that no run has compared. */
  "run_missing",
  /** A run over days of the period is under way, or starts soon. */
  "run_pending",
  "issues_undecided",
  /** Settled payments that no statement shows, while later statements may. */
  "payments_expected",
  /** Collections whose settlement has begun and has no outcome. */
  "settlement_pending",
] as const;

const missingSchema = z.object({ code: z.enum(MISSING_CODES), count, day: date.nullable() });
export type Missing = z.infer<typeof missingSchema>;

/** The days of a period. */
export const periodDays = { kind: z.enum(PERIOD_KINDS), fromDate: date, toDate: date };
export const periodSchema = z.object({
  accountId: id,
  /** The account's filial; null where several filials share the account. */
  filialId: id.nullable(),
  ...periodDays,
  state: z.enum(PERIOD_STATES),
  missing: z.array(missingSchema),
  /** The oldest closing that covers the period: of the period itself, or of a day's month. */
  closingId: id.nullable(),
});
export type Period = z.infer<typeof periodSchema>;

/** The most periods in one list: the service computes each of them for every request. */
export const LISTED_PERIODS = 100;

/**
 * The days from `fromDate` to `toDate`, or the months from that of `fromDate` to that of `toDate`, by account and day.
 * Refuses with `not_found`, `invalid_request`.
 */
export const listPeriods = repeatable(
  "reconciliation.listPeriods",
  z.object({
    caller,
    kind: periodDays.kind,
    fromDate: dateSchema,
    toDate: dateSchema,
    accountId: id.optional(),
    filialId: id.optional(),
    after: z.object({ accountId: z.int().min(0), fromDate: dateSchema }).optional(),
    limit: z.int().min(1).max(LISTED_PERIODS),
  }),
  z.object({ periods: z.array(periodSchema), hasMore: z.boolean() }),
);
