import type { Issue } from "../../bus/messages/providers.ts";
import type { IssueRow } from "../sql/issues.ts";

export function issueOnWire(row: IssueRow): Issue {
  return {
    issueId: row.issue_id,
    kind: row.kind,
    status: row.status,
    configId: row.config_id,
    stationId: row.station_id,
    intentId: row.intent_id,
    orderId: row.order_id,
    amountMinor: row.amount_minor,
    currency: row.currency,
    providerReference: row.provider_reference,
    evidence: row.evidence,
    openedAtMs: row.opened_at.getTime(),
    resolvedAtMs: row.resolved_at?.getTime() ?? null,
    resolvedBy: row.resolved_by,
    reason: row.reason,
    transactionId: row.transaction_id,
  };
}
