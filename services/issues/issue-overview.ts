/** The overview of all issues: how many there are, about how much money, and who may resolve them. */
import { requirePermission } from "../bus/messages/caller.ts";
import * as bus from "../bus/messages/issue-overview.ts";
import type { Handler } from "../bus/operation.ts";
import type { IssuesDeps } from "./life-cycle.ts";
import * as sql from "./sql/issue-overview.ts";

/** Refuses with `permission_denied`. */
export const getIssueOverview: Handler<IssuesDeps, typeof bus.getIssueOverview> = async ({ database }, request) => {
  const { caller, ...filter } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const [views, sums] = await Promise.all([
    sql.countViews(database, { organizationId, staleAfterDays: bus.STALE_AFTER_DAYS }),
    sql.sumIssues(database, { organizationId, filter }),
  ]);
  return {
    views,
    sums: sums.map(({ currency, count, amount_minor: amountMinor }) => ({ currency, count, amountMinor })),
  };
};

/** Refuses with `permission_denied`. */
export const listOperators: Handler<IssuesDeps, typeof bus.listOperators> = async ({ database }, { caller }) => {
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const operators = await sql.listOperators(database, { organizationId, limit: bus.LISTED_OPERATORS });
  return { operators: operators.map(({ user_id: userId, name }) => ({ userId, name })) };
};
