import { requirePermission } from "../../bus/access.ts";
import type { closeIssue } from "../../bus/messages/providers.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { ProvidersDeps } from "../deps.ts";
import { personActor, recordEvents } from "../sql/events.ts";
import { findIssue, lockIssue, resolveIssue } from "../sql/issues.ts";
import { holdMoneyOf, requireClosable } from "./free-money.ts";
import { issueOnWire } from "./issue-wire.ts";
import { checkReason } from "./reason.ts";

/**
 * Refuses with `permission_denied`, `not_found`, `invalid_request` or `conflict` (it is resolved, just being attributed, or
 * the cashier may still settle the money).
 */
export async function close(
  deps: ProvidersDeps,
  { caller, issueId, reason }: RequestOf<typeof closeIssue>,
): Promise<ReplyOf<typeof closeIssue>> {
  requirePermission(caller, "reconciliation.manage");
  checkReason(reason);
  const { organizationId, userId } = caller;
  const seen = await findIssue(deps.database, { organizationId, issueId });
  if (seen === undefined) throw new RefusedError({ code: "not_found" });
  const closed = await deps.database.begin(async (sql) => {
    await holdMoneyOf(sql, seen);
    const issue = await lockIssue(sql, { organizationId, issueId });
    if (issue === undefined) throw new RefusedError({ code: "not_found" });
    if (issue.status !== "open") throw new RefusedError({ code: "conflict", detail: `This issue is ${issue.status}.` });
    if (issue.attribution !== null) {
      throw new RefusedError({
        code: "conflict",
        detail: "This issue is just being attributed; try again in a moment.",
      });
    }
    await requireClosable(sql, issue);
    const subject = { kind: "provider_issue", id: issueId } as const;
    const data = { kind: issue.kind, reason };
    const actor = personActor(caller);
    await recordEvents(sql, [{ organizationId, actor, action: "provider_issue_closed", subject, data }]);
    return await resolveIssue(sql, issueId, {
      status: "closed",
      by: userId,
      reason,
      orderId: null,
      transactionId: null,
    });
  });
  return { issue: issueOnWire(closed) };
}
