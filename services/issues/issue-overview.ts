/** What a person sees before the single issues: how many there are, how much money, and who works on them. */
import { requirePermission } from "../bus/messages/caller.ts";
import * as bus from "../bus/messages/issue-overview.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import type { IssuesDeps } from "./life-cycle.ts";
import * as sql from "./sql/issue-overview.ts";

/** Refuses with `permission_denied`. */
export async function getIssueOverview(
  { database }: IssuesDeps,
  { caller, ...filter }: RequestOf<typeof bus.getIssueOverview>,
): Promise<ReplyOf<typeof bus.getIssueOverview>> {
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const [views, sums] = await Promise.all([
    sql.countViews(database, { organizationId, staleAfterDays: bus.STALE_AFTER_DAYS }),
    sql.sumIssues(database, { organizationId, filter }),
  ]);
  return {
    views,
    sums: sums.map(({ currency, count, amount_minor: amountMinor }) => ({ currency, count, amountMinor })),
  };
}

/** Refuses with `permission_denied`. */
export async function listOperators(
  { database }: IssuesDeps,
  { caller }: RequestOf<typeof bus.listOperators>,
): Promise<ReplyOf<typeof bus.listOperators>> {
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const operators = await sql.listOperators(database, { organizationId, limit: bus.LISTED_OPERATORS });
  return { operators: operators.map(({ user_id: userId, name }) => ({ userId, name })) };
}
