/** Money that does not fit: an operator attributes it to an order through the payment seam, or closes it with a reason. */
import type { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import { attributeIssue, closeIssue, type Issue, listIssues } from "../../../services/bus/messages/providers.ts";
import type {
  attributeIssueBodySchema,
  closeIssueBodySchema,
  issueSchema,
  issuesQuerySchema,
} from "../../contract/issue.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";
import { evidenceWire } from "./evidence-wire.ts";

export const listOwnIssues: SessionHandler<undefined, z.infer<typeof issuesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { status, before_id: beforeId, limit } = query;
  const { issues, hasMore } = await deps.bus.call(listIssues, { caller, status, beforeId, limit });
  return ok({ issues: issues.map(issueWire), has_more: hasMore });
};

/** Refusals: `not_found`, `conflict` with a reason, and the payment seam's own. */
export const attributeOwnIssue: SessionHandler<z.infer<typeof attributeIssueBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, issueId: context.id("issue_id"), orderId: body.order_id, reason: body.reason };
  const { issue } = await deps.bus.call(attributeIssue, request);
  return ok(issueWire(issue));
};

/** Refusals: `not_found`, `conflict` with a reason. */
export const closeOwnIssue: SessionHandler<z.infer<typeof closeIssueBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const { issue } = await deps.bus.call(closeIssue, {
    caller,
    issueId: context.id("issue_id"),
    reason: body.reason,
  });
  return ok(issueWire(issue));
};

function issueWire(issue: Issue): z.infer<typeof issueSchema> {
  const { amountMinor, currency } = issue;
  return {
    issue_id: issue.issueId,
    kind: issue.kind,
    status: issue.status,
    config_id: issue.configId,
    station_id: issue.stationId,
    intent_id: issue.intentId,
    order_id: issue.orderId,
    amount: amountMinor === null || currency === null ? null : formatAmount(amountMinor, currency),
    currency,
    provider_reference: issue.providerReference,
    evidence: evidenceWire(issue.evidence),
    opened_at: toTimestamp(issue.openedAtMs),
    resolved_at: issue.resolvedAtMs === null ? null : toTimestamp(issue.resolvedAtMs),
    resolved_by: issue.resolvedBy,
    reason: issue.reason,
    transaction_id: issue.transactionId,
  };
}
