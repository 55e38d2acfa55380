/** The whole payment in one sentence or two, and whether money moved. Pure. */
import { type IntentState, isEnded, PROVIDER_DECLINES, wireStatus } from "../../../machines/payment-intent.ts";
import type { AuditEvent } from "../../bus/messages/events.ts";
import type { MoneyMoved } from "../../bus/messages/timelines.ts";
import type { TimelineFacts } from "./facts.ts";
import {
  actorName,
  END_REASONS,
  money,
  RECORDS_TO_COMPARE,
  REFUSAL_REASONS,
  ROUTE_NAMES,
  type StepDescription,
  withReference,
} from "./sentences.ts";

/** A settlement is certain; without one, a step that may have moved money leaves the question open. */
export function overallMoneyMoved(facts: TimelineFacts, steps: readonly StepDescription[]): MoneyMoved {
  if (facts.settlement !== undefined || steps.some((step) => step.moneyMoved === "yes")) return "yes";
  return uncertainMoneyMoved(facts.events, steps);
}

/**
 * The answer without a settlement. After a provider's report that no money moved, or its decline, earlier steps no longer
 * count. They do count when the provider has asserted a payment that differs, because neither report is about that payment.
 */
function uncertainMoneyMoved(events: TimelineFacts["events"], steps: readonly StepDescription[]): MoneyMoved {
  let moved: MoneyMoved = "no";
  let differs = false;
  for (const [index, event] of events.entries()) {
    if ((event.type === "unclear_resolved" || isDecline(event)) && !differs) moved = "no";
    else if (steps[index]?.moneyMoved === "maybe") moved = "maybe";
    if (event.type === "money_differs") differs = true;
  }
  return moved;
}

function isDecline({ type, data }: AuditEvent): boolean {
  return type === "provider_failed" && PROVIDER_DECLINES.some((decline) => decline === data["reason"]);
}

export function summarize(facts: TimelineFacts, moneyMoved: MoneyMoved): string {
  const sentences = [outcome(facts), evidence(facts, moneyMoved), completeness(facts)];
  return sentences.filter((sentence) => sentence !== "").join(" ");
}

function outcome(facts: TimelineFacts): string {
  const { intent, settlement } = facts;
  const what = `${money(intent.amountMinor, intent.currency)} for order ${intent.orderDisplayNumber}`;
  const how = ROUTE_NAMES[intent.route];
  if (settlement !== undefined) {
    const record = `transaction ${settlement.transactionId}${withReference(settlement.reference)}`;
    return `${what} was collected by ${how} as ${record}${disagreement(intent.status)}.`;
  }
  switch (intent.status) {
    case "succeeded":
      return `${what} was collected by ${how}.`;
    case "cancelled":
      return intent.endReason === ""
        ? `${what} was not collected by ${how}: ${canceller(facts)} cancelled.`
        : `${what} was not collected by ${how}: ${END_REASONS[intent.endReason]}.`;
    case "expired":
      return `${what} was not collected by ${how}: the collection expired.`;
    case "settling":
      return `${what} is being settled after ${intent.attestation?.by === "provider" ? "the provider's confirmation" : "an attestation"}; the outcome is not recorded yet.`;
    case "created":
    case "presented":
    case "processing":
      return `${what} is being collected by ${how} and is ${wireStatus(intent.status)}${lastRefusal(facts)}.`;
  }
}

/** The transaction decides. The sentence mentions a station that has committed another end. */
function disagreement(status: IntentState): string {
  if (status === "succeeded") return "";
  if (!isEnded(status)) return "; the station has not recorded it yet";
  return `, although the collection had ended as ${status}: a person must check it`;
}

function canceller({ events }: TimelineFacts): string {
  const cancellation = events.findLast((event) => event.type === "intent_cancelled");
  return cancellation === undefined ? "the cashier" : actorName(cancellation.actor);
}

function lastRefusal({ events }: TimelineFacts): string {
  const refusal = events.findLast((event) => event.type === "settlement_refused");
  const code = refusal?.data["code"] as keyof typeof REFUSAL_REASONS | undefined;
  const reason = code === undefined ? undefined : REFUSAL_REASONS[code];
  return reason === undefined ? "" : `; the last attestation was refused, because ${reason}`;
}

/** What a person should check. */
function evidence(facts: TimelineFacts, moneyMoved: MoneyMoved): string {
  const { intent, events, settlement, attributions, issues } = facts;
  const late = events.some(
    (event) => event.type === "late_evidence_kept" && event.data["outcome"] === "reported_success",
  );
  if (late && (settlement !== undefined || moneyMoved === "yes")) {
    return "An approval was reported after the end as well, so money may have moved a second time.";
  }
  const last = attributions.at(-1);
  if (last !== undefined) {
    return `The provider's payment for this collection did not settle it, and was attributed to order ${last.orderDisplayNumber} as transaction ${last.transactionId}.`;
  }
  const lateMoney = events.some((event) => event.type === "late_money_kept");
  if (settlement !== undefined && lateMoney) {
    return `The provider asserts another payment as well, which settled nothing: ${issueStatus(issues)}.`;
  }
  const isUnsettled = settlement === undefined && intent.status !== "succeeded";
  if (isUnsettled && (lateMoney || events.some((event) => event.type === "provider_confirmed"))) {
    return isEnded(intent.status)
      ? `The provider reports that the guest paid, and nothing is settled: ${issueStatus(issues)}.`
      : "The provider reports that the guest paid; nothing is settled yet.";
  }
  if (moneyMoved !== "no" && events.some((event) => event.type === "money_differs")) {
    return `The provider asserts money that does not fit this collection; it settled nothing, and ${issueStatus(issues)}.`;
  }
  if (moneyMoved !== "maybe") return "";
  return isEnded(intent.status)
    ? `Money may still have moved: compare with ${RECORDS_TO_COMPARE[intent.route]}.`
    : "Money may have moved, but nothing is settled yet.";
}

/** Whether a person still has to check it, or who has checked it and why. */
function issueStatus({ closed, hasOpen }: TimelineFacts["issues"]): string {
  const last = closed.at(-1);
  if (hasOpen || last === undefined) return "an issue names it";
  return `issue ${last.issueId} named it, and ${actorName(last.by)} closed that issue (reason: ${last.reason.replace(/\.$/, "")})`;
}

function completeness({ events, isComplete }: TimelineFacts): string {
  if (!isComplete) return "The newest steps are still being copied; ask again in a moment.";
  const isBeginningKnown = events[0]?.type === "intent_created";
  const hasGap = events.some((event) => event.type === "audit_gap");
  return isBeginningKnown && !hasGap ? "" : "Some steps of this payment are missing in the audit copy.";
}
