import { requirePermission } from "../../bus/access.ts";
import type { closeIssue } from "../../bus/messages/issues.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { ProvidersDeps } from "../deps.ts";
import { personActor, recordEvents } from "../sql/events.ts";
import { findIssue, type IssueRow, lockIssue, resolveIssue } from "../sql/issues.ts";
import { holdMoneyOf, requireClosable } from "./free-money.ts";
import { requireOpen, requireUnattributed } from "./issue-conflict.ts";
import { issueOnWire } from "./issue-wire.ts";
import { checkReason } from "./reason.ts";
import { resumeEnd } from "./resume-end.ts";

/**
 * Refuses with `permission_denied`, `not_found`, `invalid_request` or `conflict` with a reason of `ISSUE_CONFLICTS`.
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
    if (isRepetition(issue, { caller, reason })) return { issue, task: undefined };
    requireOpen(issue);
    requireUnattributed(issue);
    await requireClosable(sql, issue, deps.bus.clock.nowMs());
    const task = await resumeEnd(sql, deps, issue);
    const subject = { kind: "provider_issue", id: issueId } as const;
    const data = { kind: issue.kind, reason };
    const actor = personActor(caller);
    await recordEvents(sql, [{ organizationId, actor, action: "provider_issue_closed", subject, data }]);
    const resolution = { status: "closed", by: userId, reason, orderId: null, transactionId: null } as const;
    return { issue: await resolveIssue(sql, issueId, resolution), task };
  });
  if (closed.task !== undefined) deps.tasks.start(closed.task);
  return { issue: issueOnWire(closed.issue) };
}

/** The same person says the same again: an answer was lost, and it is the same. */
function isRepetition(
  { status, resolved_by: by, reason: given }: IssueRow,
  { caller, reason }: Pick<RequestOf<typeof closeIssue>, "caller" | "reason">,
): boolean {
  return status === "closed" && by === caller.userId && given === reason;
}
