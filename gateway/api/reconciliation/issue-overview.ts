/** The open issues: their number, their sums, and the people who decide about them. */
import { z } from "zod";
import { formatExactAmount } from "../../../machines/currency.ts";
import * as bus from "../../../services/bus/messages/issue-overview.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { currencySchema, exactAmountSchema, idSchema } from "../../http/shared-schemas.ts";
import { issuesFilterOf, issuesQuerySchema } from "./issues.ts";

const overviewQuerySchema = issuesQuerySchema.omit({ before_id: true, limit: true });
const count = (description: string) => z.int().meta({ description });
const viewsSchema = z
  .object({
    all_open: count("Issues that wait for a decision."),
    needs_attention: count("Of these, issues without an assignee: `status=open`."),
    waiting: count("Of these, issues with an assignee: `status=assigned`."),
    missing: count("Of these, payments in no statement: `kind=missing_in_statement`."),
    stale: count(
      `Of these, issues that wait for at least ${bus.STALE_AFTER_DAYS} days: \`min_age_days=${bus.STALE_AFTER_DAYS}\`.`,
    ),
  })
  .meta({ id: "IssueViews", description: "Counts all undecided issues, whatever the filter. One may be in several." });
const overviewSchema = z
  .object({
    views: viewsSchema,
    sums: z
      .array(
        z.object({
          currency: currencySchema.nullable().meta({ description: "Null for the issues without an amount." }),
          count: z.int(),
          amount: exactAmountSchema.nullable(),
        }),
      )
      .meta({ description: "The issues that match the filter, with a separate sum for each currency." }),
  })
  .meta({
    id: "IssueOverview",
    examples: [
      {
        views: { all_open: 12, needs_attention: 9, waiting: 3, missing: 4, stale: 1 },
        sums: [{ currency: "EUR", count: 12, amount: "148.20" }],
      },
    ],
  });
const operatorsSchema = z.object({
  operators: z
    .array(z.object({ user_id: idSchema, name: z.string() }).meta({ id: "ReconciliationOperator" }))
    .meta({ description: `By name, the first ${bus.LISTED_OPERATORS}.` }),
});

const getIssueOverview: SessionHandler<undefined, z.infer<typeof overviewQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { views, sums } = await deps.bus.call(bus.getIssueOverview, { caller, ...issuesFilterOf(query) });
  return ok({
    views,
    sums: sums.map(({ currency, count: number, amountMinor }) => {
      const hasAmount = currency !== null && amountMinor !== null;
      return { currency, count: number, amount: hasAmount ? formatExactAmount(BigInt(amountMinor), currency) : null };
    }),
  });
};

const listOperators: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { operators } = await deps.bus.call(bus.listOperators, { caller });
  return ok({ operators: operators.map(({ userId, name }) => ({ user_id: userId, name })) });
};

export const issueOverviewRoutes = [
  reconciliationRoute({
    method: "GET",
    path: "/api/reconciliation/v1/issue-overview/",
    operation: "getIssueOverview",
    summary: "Read how many issues there are",
    description: "The counts of the views, and for each currency the sum of the issues that match the filter.",
    query: overviewQuerySchema,
    replies: { 200: { description: "Counts and sums.", schema: overviewSchema } },
    handler: getIssueOverview,
  }),
  reconciliationRoute({
    method: "GET",
    path: "/api/reconciliation/v1/operators/",
    operation: "listOperators",
    summary: "List the people who decide issues",
    description: "Active reconciliation operators of the organization: an issue can be assigned to them.",
    replies: { 200: { description: "By name.", schema: operatorsSchema } },
    handler: listOperators,
  }),
];
