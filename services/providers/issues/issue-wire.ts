import { amountFitsWire } from "../../../machines/currency.ts";
import type { Issue } from "../../bus/messages/issues.ts";
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
    ...amountOnWire(row),
    providerReference: row.provider_reference,
    evidence: row.evidence,
    openedAtMs: row.opened_at.getTime(),
    resolvedAtMs: row.resolved_at?.getTime() ?? null,
    resolvedBy: row.resolved_by,
    reason: row.reason,
    transactionId: row.transaction_id,
  };
}

/** An amount is told whole or not at all; what the provider has said stands in the evidence. */
function amountOnWire({ amount_minor: amountMinor, currency }: IssueRow): Pick<Issue, "amountMinor" | "currency"> {
  if (currency === null || !/^[A-Z]{3}$/.test(currency)) return { amountMinor: null, currency: null };
  const fits = amountMinor !== null && amountFitsWire(BigInt(amountMinor), currency);
  return { amountMinor: fits ? amountMinor : null, currency };
}
