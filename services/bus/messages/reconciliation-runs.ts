/**
 * Reconciliation runs. A run compares the lines of one account in a range of booking days with the payments that
 * stations have settled and callbacks have reported. Every operation needs `reconciliation.manage`. Amounts are signed
 * minor units.
 */
import { z } from "zod";
import { once, repeatable } from "../operation.ts";
import { pageBefore, pageLimit } from "../page.ts";
import { signedMinorSchema as signedMinor } from "./amount.ts";
import { callerSchema as caller } from "./caller.ts";
import { dateSchema } from "./date.ts";
import { ISSUE_KINDS } from "./issues.ts";

const id = z.int().positive();
const date = z.iso.date();

export const RUN_STATUSES = ["running", "done", "failed"] as const;
/** The steps of a run, in order. */
export const RUN_STEPS = ["lines", "links", "exact", "differences", "candidates", "matches", "issues"] as const;
/** How a difference compares with the run before. `changed`: the same difference with other evidence. */
export const RUN_CHANGES = ["new", "gone", "changed", "unchanged"] as const;

export const runSchema = z.object({
  runId: id,
  accountId: id,
  fromDate: date,
  toDate: date,
  status: z.enum(RUN_STATUSES),
  step: z.enum(RUN_STEPS),
  /** Null: the service started the run, after an import or a decision. */
  startedBy: z.int().nullable(),
  startedAtMs: z.number(),
  endedAtMs: z.number().nullable(),
  /** Why the run failed, in one sentence. */
  failure: z.string().nullable(),
  /** The newest earlier run of the account with common days. */
  previousRunId: id.nullable(),
  /** The days that imported statements cover; null without one. */
  coveredFrom: date.nullable(),
  coveredTo: date.nullable(),
  lines: z.int(),
  payments: z.int(),
  matched: z.int(),
  differing: z.int(),
  rejected: z.int(),
  differences: z.int(),
  /** By currency: the sums of all lines, and of the matched, differing and rejected lines. */
  totals: z.array(
    z.object({
      currency: z.string(),
      lines: z.int(),
      totalMinor: signedMinor,
      matchedMinor: signedMinor,
      differingMinor: signedMinor,
      rejectedMinor: signedMinor,
    }),
  ),
  /** SHA-256 in hex: two runs with the same inputs have the same `inputHash`, and with it the same `resultHash`. */
  inputHash: z.string().nullable(),
  resultHash: z.string().nullable(),
});
export type Run = z.infer<typeof runSchema>;

/** Why a run cannot start: the `reason` of a `conflict`. */
export const RUN_CONFLICTS = ["run_under_way", "too_many_runs", "too_many_days", "nothing_imported"] as const;

/** Why two runs cannot be compared: the `reason` of a `conflict`. */
export const COMPARISON_CONFLICTS = ["run_not_done", "differences_deleted"] as const;

/**
 * Starts a run and returns at once; `getRun` shows its progress. Without dates the run covers all days of imported
 * statements. Refuses with `not_found`, `invalid_request`, and `conflict` with a reason.
 */
export const startRun = once(
  "reconciliation.startRun",
  z.object({ caller, accountId: id, fromDate: dateSchema.optional(), toDate: dateSchema.optional() }),
  z.object({ run: runSchema }),
);

export const getRun = repeatable(
  "reconciliation.getRun",
  z.object({ caller, runId: id }),
  z.object({ run: runSchema }),
);

/** Newest first; `beforeId` continues a list. */
export const listRuns = repeatable(
  "reconciliation.listRuns",
  z.object({ caller, accountId: id.optional(), ...pageBefore }),
  z.object({ runs: z.array(runSchema), hasMore: z.boolean() }),
);

/**
 * The changes since another run of the same account, by default the one before. Without another run, all differences
 * are new. Refuses with `not_found`, and `conflict` with a reason.
 */
export const compareRuns = repeatable(
  "reconciliation.compareRuns",
  z.object({
    caller,
    runId: id,
    previousRunId: id.optional(),
    change: z.enum(RUN_CHANGES),
    afterIssueId: z.int().min(0),
    limit: pageLimit,
  }),
  z.object({
    previousRunId: id.nullable(),
    counts: z.object({ new: z.int(), gone: z.int(), changed: z.int(), unchanged: z.int() }),
    differences: z.array(
      z.object({
        issueId: id,
        kind: z.enum(ISSUE_KINDS),
        amountMinor: signedMinor.nullable(),
        currency: z.string().nullable(),
        onDate: date,
      }),
    ),
    hasMore: z.boolean(),
  }),
);
