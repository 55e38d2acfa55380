/** Reconciliation runs: their input, their result, and the difference to another run. */
import { z } from "zod";
import { formatExactAmount } from "../../../machines/currency.ts";
import * as bus from "../../../services/bus/messages/reconciliation-runs.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, hasMoreBefore, pageAfterQuery, pageBeforeQuery, queryId } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import {
  currencySchema,
  exactAmountSchema,
  idSchema,
  optionalTimestamp,
  requestDateSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { issueKindSchema } from "./issue-json.ts";
import { dateSchema } from "./line-json.ts";

const sumSchema = exactAmountSchema.meta({ description: "A sum; negative when more funds went out than came in." });
const count = (description: string): z.ZodInt => z.int().meta({ description });

const EXAMPLE = {
  run_id: 7,
  account_id: 3,
  from_date: "2026-11-01",
  to_date: "2026-11-30",
  status: "done",
  step: "issues",
  started_by: 42,
  started_at: "2026-12-01T08:00:00.000Z",
  ended_at: "2026-12-01T08:00:01.200Z",
  failure: null,
  previous_run_id: 6,
  covered_from: "2026-11-01",
  covered_to: "2026-11-30",
  lines: 120,
  payments: 118,
  matched: 112,
  differing: 3,
  rejected: 5,
  differences: 4,
  totals: [
    {
      currency: "EUR",
      lines: 120,
      total: "2412.50",
      matched: "2380.00",
      differing: "44.50",
      rejected: "-12.00",
    },
  ],
  input_hash: "5d4a0c9f1f6e6a2b7c3d8e9f00112233445566778899aabbccddeeff00112233",
  result_hash: "0a1b0c9f1f6e6a2b7c3d8e9f00112233445566778899aabbccddeeff00112233",
} as const;

const runSchema = z
  .object({
    run_id: idSchema,
    account_id: idSchema,
    from_date: dateSchema,
    to_date: dateSchema,
    status: z.enum(bus.RUN_STATUSES).meta({ id: "ReconciliationRunStatus" }),
    step: z
      .enum(bus.RUN_STEPS)
      .meta({ id: "ReconciliationRunStep", description: "The current or last step of the run." }),
    started_by: idSchema
      .nullable()
      .meta({ description: "The person; null for a run that started by itself, after an import or a decision." }),
    started_at: timestampSchema,
    ended_at: timestampSchema.nullable(),
    failure: z
      .string()
      .nullable()
      .meta({ description: "Why the run failed, in one sentence; a failed run stores no results." }),
    previous_run_id: idSchema
      .nullable()
      .meta({ description: "The newest earlier run of the account that has days in common with it." }),
    covered_from: dateSchema.nullable().meta({
      description:
        "The first of its days that imported statements cover. A payment can be missing only on covered days.",
    }),
    covered_to: dateSchema.nullable(),
    lines: count("Lines of statements that were booked on its days."),
    payments: count("Settled orders, reports and payouts that they were compared with."),
    matched: count("Lines that belong to payments."),
    differing: count("Lines with a difference; one issue explains each of them."),
    rejected: count("Lines that are no payment of a guest, each with a reason: fees, planned payouts, failed rows."),
    differences: count("Issues that the run has found, including those about missing payments."),
    totals: z
      .array(
        z.object({
          currency: currencySchema,
          lines: z.int(),
          total: sumSchema,
          matched: sumSchema,
          differing: sumSchema,
          rejected: sumSchema,
        }),
      )
      .meta({ description: "By currency. The three parts add up to the total." }),
    input_hash: z
      .string()
      .nullable()
      .meta({ description: "SHA-256 in hex of all that was compared: the same input gives the same result." }),
    result_hash: z.string().nullable(),
  })
  .meta({ id: "ReconciliationRun", examples: [EXAMPLE] });
const runsSchema = z.object({ runs: z.array(runSchema), has_more: hasMoreBefore });
const runsQuerySchema = z.strictObject({
  ...pageBeforeQuery,
  account_id: queryId().optional().meta({ description: "Only runs of this account; of all accounts when left out." }),
});

const startRunBodySchema = z
  .strictObject({
    account_id: idSchema,
    from_date: requestDateSchema
      .optional()
      .meta({ description: "The first booking day; that of the first imported statement when left out." }),
    to_date: requestDateSchema
      .optional()
      .meta({ description: "The last booking day; that of the last imported statement when left out." }),
  })
  .meta({
    id: "StartReconciliationRun",
    examples: [{ account_id: 3, from_date: "2026-11-01", to_date: "2026-11-30" }],
  });

const changeSchema = z.enum(bus.RUN_CHANGES).meta({
  id: "ReconciliationRunChange",
  description:
    "`new`: the other run does not have it; `gone`: only the other run has it; `changed`: both have it, with other evidence; `unchanged`: both have it with the same evidence.",
});
const comparisonSchema = z
  .object({
    previous_run_id: idSchema.nullable().meta({ description: "Null when there is none; then all are new." }),
    counts: z.object({ new: z.int(), gone: z.int(), changed: z.int(), unchanged: z.int() }),
    differences: z.array(
      z.object({
        issue_id: idSchema,
        kind: issueKindSchema,
        amount: exactAmountSchema.nullable(),
        currency: currencySchema.nullable(),
        on_date: dateSchema.meta({ description: "The day on which the line was booked or the payment settled." }),
      }),
    ),
    has_more: hasMoreAfter,
  })
  .meta({ id: "ReconciliationRunComparison" });
const comparisonQuerySchema = z.strictObject({
  ...pageAfterQuery,
  previous_run_id: queryId()
    .optional()
    .meta({ description: "The run to compare with, of the same account; the previous run when left out." }),
  change: changeSchema.default("new").meta({ description: "Which differences are listed; all are counted." }),
});

/** The amount on the wire, or null. */
const amountOf = (minor: string | null, currency: string | null): string | null =>
  minor === null || currency === null ? null : formatExactAmount(BigInt(minor), currency);

function runJson(run: bus.Run): z.infer<typeof runSchema> {
  return {
    run_id: run.runId,
    account_id: run.accountId,
    from_date: run.fromDate,
    to_date: run.toDate,
    status: run.status,
    step: run.step,
    started_by: run.startedBy,
    started_at: toTimestamp(run.startedAtMs),
    ended_at: optionalTimestamp(run.endedAtMs),
    failure: run.failure,
    previous_run_id: run.previousRunId,
    covered_from: run.coveredFrom,
    covered_to: run.coveredTo,
    lines: run.lines,
    payments: run.payments,
    matched: run.matched,
    differing: run.differing,
    rejected: run.rejected,
    differences: run.differences,
    totals: run.totals.map(({ currency, lines, ...sums }) => ({
      currency,
      lines,
      total: formatExactAmount(BigInt(sums.totalMinor), currency),
      matched: formatExactAmount(BigInt(sums.matchedMinor), currency),
      differing: formatExactAmount(BigInt(sums.differingMinor), currency),
      rejected: formatExactAmount(BigInt(sums.rejectedMinor), currency),
    })),
    input_hash: run.inputHash,
    result_hash: run.resultHash,
  };
}

const listRuns: SessionHandler<undefined, z.infer<typeof runsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { account_id: accountId, before_id: beforeId, limit } = query;
  const { runs, hasMore } = await deps.bus.call(bus.listRuns, { caller, accountId, beforeId, limit });
  return ok({ runs: runs.map(runJson), has_more: hasMore });
};

/** Errors: `not_found`, `invalid_request`, `conflict` with a reason. */
const startRun: SessionHandler<z.infer<typeof startRunBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { account_id: accountId, from_date: fromDate, to_date: toDate } = body;
  const { run } = await deps.bus.call(bus.startRun, { caller, accountId, fromDate, toDate });
  return created(runJson(run));
};

/** Error: `not_found`. */
const getRun: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { run } = await deps.bus.call(bus.getRun, { caller, runId: context.id("run_id") });
  return ok(runJson(run));
};

/** Errors: `not_found`, `conflict` with a reason. */
const compareRuns: SessionHandler<undefined, z.infer<typeof comparisonQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { previous_run_id: previousRunId, change, since_id: afterIssueId, limit } = query;
  const request = { caller, runId: context.id("run_id"), previousRunId, change, afterIssueId, limit };
  const compared = await deps.bus.call(bus.compareRuns, request);
  return ok({
    previous_run_id: compared.previousRunId,
    counts: compared.counts,
    differences: compared.differences.map(({ issueId, kind, amountMinor, currency, onDate }) => ({
      issue_id: issueId,
      kind,
      amount: amountOf(amountMinor, currency),
      currency,
      on_date: onDate,
    })),
    has_more: compared.hasMore,
  });
};

const runs = "/api/reconciliation/v1/runs/" as const;
const run = `${runs}{run_id}/` as const;

export const runRoutes = [
  reconciliationRoute({
    method: "GET",
    path: runs,
    operation: "listRuns",
    summary: "List the runs",
    description: "The runs that people started and those that started by themselves, including failed runs.",
    query: runsQuerySchema,
    replies: { 200: { description: "Newest first.", schema: runsSchema } },
    handler: listRuns,
  }),
  reconciliationRoute({
    method: "POST",
    path: runs,
    operation: "startRun",
    summary: "Compare an account's statements with the settled payments",
    description: `A run also starts by itself after each import. The answer comes when the run has begun; read the run until its status is \`done\` or \`failed\`. An account has one run under way at a time. The \`reason\` of a \`conflict\` is one of ${bus.RUN_CONFLICTS.map((word) => `\`${word}\``).join(", ")}.`,
    body: startRunBodySchema,
    replies: { 201: { description: "The run that has begun.", schema: runSchema } },
    errors: ["not_found", "conflict"],
    handler: startRun,
  }),
  reconciliationRoute({
    method: "GET",
    path: run,
    operation: "getRun",
    summary: "Read a run",
    description: "While it is under way it shows its step; the counts, sums and hashes come when it is `done`.",
    replies: { 200: { description: "The run, with its progress or its result.", schema: runSchema } },
    errors: ["not_found"],
    handler: getRun,
  }),
  reconciliationRoute({
    method: "GET",
    path: `${run}changes/`,
    operation: "compareRuns",
    summary: "Compare a run with another one",
    description: `For the days that both runs cover: which differences are new, gone, changed or unchanged. The \`reason\` of a \`conflict\` is one of ${bus.COMPARISON_CONFLICTS.map((word) => `\`${word}\``).join(", ")}: a run has no result, or its differences are no longer kept.`,
    query: comparisonQuerySchema,
    replies: { 200: { description: "Counts of all changes; differences of one change.", schema: comparisonSchema } },
    errors: ["not_found", "conflict"],
    handler: compareRuns,
  }),
];
