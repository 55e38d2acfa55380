/** Periods of statement accounts: their states, what is missing before a closing, and the closing. */
import { z } from "zod";
import * as closings from "../../../services/bus/messages/reconciliation-closings.ts";
import * as bus from "../../../services/bus/messages/reconciliation-periods.ts";
import { created, ok, type SessionHandler } from "../../http/handler-context.ts";
import { queryId, queryNumber } from "../../http/page.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { idSchema, reasonSchema, requestDateSchema } from "../../http/shared-schemas.ts";
import { closingJson, closingSchema, periodKindSchema } from "./closings.ts";
import { dateSchema } from "./line-json.ts";

const missingCodeSchema = z.enum(bus.MISSING_CODES).meta({
  id: "PeriodMissingCode",
  description: [
    "What a period lacks before it can be closed.",
    "`settlement_delay`: the provider may still book its payments; `day` is the first day on which it can be closed.",
    "`statement_missing`: no imported statement covers `count` of its days; `day` is the first.",
    "`import_held`, `import_unfinished`: files that may have lines of the period are not imported.",
    "`run_missing`: no run has compared `count` of its lines. `run_pending`: a run over its days has not ended.",
    "`issues_undecided`: `count` issues wait for a person.",
    "`payments_expected`: `count` settled payments are in no statement, and later statements may have them.",
    "`settlement_pending`: `count` settlements have no outcome yet.",
  ].join(" "),
});
const periodSchema = z
  .object({
    account_id: idSchema,
    filial_id: idSchema.nullable().meta({ description: "Null where several filials share the account." }),
    kind: periodKindSchema,
    from_date: dateSchema,
    to_date: dateSchema,
    state: z.enum(bus.PERIOD_STATES).meta({
      id: "PeriodState",
      description: "`open`: something is missing; `ready`: a person can close it; `closed`: it never opens again.",
    }),
    missing: z.array(z.object({ code: missingCodeSchema, count: z.int(), day: dateSchema.nullable() })),
    closing_id: idSchema.nullable().meta({
      description: "The closing that covers it; for a day, it may be that of its month.",
    }),
  })
  .meta({
    id: "Period",
    examples: [
      {
        account_id: 3,
        filial_id: 1,
        kind: "day",
        from_date: "2026-11-20",
        to_date: "2026-11-20",
        state: "open",
        missing: [{ code: "issues_undecided", count: 2, day: "2026-11-20" }],
        closing_id: null,
      },
    ],
  });
const periodsSchema = z.object({
  periods: z.array(periodSchema),
  has_more: z.boolean().meta({
    description:
      "Whether there are more: ask again with the last one's `account_id` as `since_account_id` and `from_date` as `since_date`.",
  }),
});
const periodsQuerySchema = z
  .strictObject({
    kind: periodKindSchema
      .default("day")
      .meta({ description: "Whether the days or the months of each account are listed." }),
    from_date: requestDateSchema.meta({ description: "The first day; for months, any day of the first month." }),
    to_date: requestDateSchema.meta({
      description:
        "The last day on which a period may begin: within 62 days of `from_date`, or within two years for months.",
    }),
    account_id: queryId()
      .optional()
      .meta({ description: "Only periods of this account; of all accounts when left out." }),
    filial_id: queryId()
      .optional()
      .meta({ description: "Only periods of this filial's accounts; of all filials when left out." }),
    since_account_id: queryNumber({ least: 0 }).optional().meta({
      description:
        "Only periods after the period `since_date` of this account: `account_id` of the last one of the page before.",
    }),
    since_date: requestDateSchema.optional().meta({
      description: "The `from_date` of the last period of the page before; `since_account_id` must be given with it.",
    }),
    limit: queryNumber({ least: 1, most: bus.LISTED_PERIODS })
      .default(bus.LISTED_PERIODS)
      .meta({
        override: { default: bus.LISTED_PERIODS },
        description: "The most periods in one page; `has_more` shows whether there are more.",
      }),
  })
  .refine(({ since_account_id, since_date }) => (since_account_id === undefined) === (since_date === undefined), {
    path: ["since_date"],
    error: "Must be given together with since_account_id.",
  });

const closePeriodBodySchema = z
  .strictObject({
    account_id: idSchema,
    kind: periodKindSchema,
    from_date: requestDateSchema.meta({ description: "The day; for a month, its first day." }),
    reason: reasonSchema,
  })
  .meta({
    id: "ClosePeriod",
    examples: [{ account_id: 3, kind: "month", from_date: "2026-11-01", reason: "All differences are decided." }],
  });

const listPeriods: SessionHandler<undefined, z.infer<typeof periodsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { kind, from_date: fromDate, to_date: toDate, account_id: accountId, filial_id: filialId, limit } = query;
  const { since_account_id: sinceAccountId, since_date: sinceDate } = query;
  const after =
    sinceAccountId === undefined || sinceDate === undefined
      ? undefined
      : { accountId: sinceAccountId, fromDate: sinceDate };
  const request = { caller, kind, fromDate, toDate, accountId, filialId, after, limit };
  const { periods, hasMore } = await deps.bus.call(bus.listPeriods, request);
  return ok({ periods: periods.map(periodJson), has_more: hasMore });
};

function periodJson(period: bus.Period): z.infer<typeof periodSchema> {
  return {
    account_id: period.accountId,
    filial_id: period.filialId,
    kind: period.kind,
    from_date: period.fromDate,
    to_date: period.toDate,
    state: period.state,
    missing: period.missing,
    closing_id: period.closingId,
  };
}

/** Errors: `not_found`, `invalid_request`, `busy`, `conflict` with a reason. */
const closePeriod: SessionHandler<z.infer<typeof closePeriodBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { account_id: accountId, kind, from_date: fromDate, reason } = body;
  const { closing } = await deps.bus.call(closings.closePeriod, { caller, accountId, kind, fromDate, reason });
  return created(closingJson(closing));
};

const periods = "/api/reconciliation/v1/periods/" as const;

export const periodRoutes = [
  reconciliationRoute({
    method: "GET",
    path: periods,
    operation: "listPeriods",
    summary: "List days or months with their states",
    description: "For each account: whether the period is open, ready to close or closed, and what is missing.",
    query: periodsQuerySchema,
    replies: { 200: { description: "By account and day.", schema: periodsSchema } },
    errors: ["not_found"],
    handler: listPeriods,
  }),
  reconciliationRoute({
    method: "POST",
    path: `${periods}close/`,
    operation: "closePeriod",
    summary: "Close a day or a month of an account",
    description: `A closed period never opens again: its files can no longer be withdrawn, and a line or an issue that comes later is an issue of the kind \`after_closing\`. When the same person repeats the request with the same body, the answer is the same closing. The \`reason\` of a \`conflict\` is one of ${closings.CLOSING_CONFLICTS.map((word) => `\`${word}\``).join(", ")}.`,
    body: closePeriodBodySchema,
    replies: { 201: { description: "The signed closing.", schema: closingSchema } },
    errors: ["not_found", "conflict"],
    handler: closePeriod,
  }),
];
