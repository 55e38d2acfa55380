import { requirePermission } from "../../bus/access.ts";
import type { closeIssue } from "../../bus/messages/providers.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { ProvidersDeps } from "../deps.ts";
import { recordEvent } from "../sql/events.ts";
import { lockIssue, resolveIssue } from "../sql/issues.ts";
import { issueOnWire } from "./issue-wire.ts";
import { checkReason } from "./reason.ts";

/** Refuses with `permission_denied`, `not_found`, `invalid_request` or `conflict` (it is resolved, or just being attributed). */
export async function close(
  deps: ProvidersDeps,
  { caller, issueId, reason }: RequestOf<typeof closeIssue>,
): Promise<ReplyOf<typeof closeIssue>> {
  requirePermission(caller, "reconciliation.manage");
  checkReason(reason);
  const { organizationId, userId } = caller;
  const closed = await deps.database.begin(async (sql) => {
    const issue = await lockIssue(sql, { organizationId, issueId });
    if (issue === undefined) throw new RefusedError({ code: "not_found" });
    if (issue.status !== "open") throw new RefusedError({ code: "conflict", detail: `This issue is ${issue.status}.` });
    if (issue.attribution !== null) {
      throw new RefusedError({
        code: "conflict",
        detail: "This issue is just being attributed; try again in a moment.",
      });
    }
    const subject = { kind: "provider_issue", id: issueId } as const;
    await recordEvent(sql, { caller, action: "provider_issue_closed", subject, data: { kind: issue.kind, reason } });
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
