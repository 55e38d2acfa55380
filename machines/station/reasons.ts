/** Compares the reasons why money may have moved, and decides which of them later evidence adds or removes. */
import type { PaymentIntent, ReportedOutcome, UnclearReason } from "../payment-intent.ts";
import type { StationEvent } from "./event.ts";

/**
 * How strong a reason is: 2 is a payment that differs from the intent's, 1 a report or a confirmation that the guest has paid,
 * 0 an unknown outcome.
 */
const WEIGHTS: Readonly<Record<UnclearReason, number>> = {
  money_differs: 2,
  success_reported: 1,
  late_success: 1,
  provider_confirmed: 1,
  late_money: 1,
  outcome_unknown: 0,
  late_evidence: 0,
  qr_presented: 0,
  handoff_presented: 0,
};

export function isAtLeastAsStrong(reason: UnclearReason, other: UnclearReason | ""): boolean {
  return other === "" || WEIGHTS[reason] >= WEIGHTS[other];
}

/** The entry to remove from a full list: first one that is not needed, then the weakest, then the oldest. */
export function leastNeeded<T extends { readonly reason: UnclearReason }>(
  oldestFirst: readonly T[],
  isNeeded: (entry: T) => boolean = () => false,
): T | undefined {
  const isLess = (one: T, other: T): boolean =>
    isNeeded(one) === isNeeded(other) ? WEIGHTS[one.reason] < WEIGHTS[other.reason] : isNeeded(other);
  return oldestFirst.reduce<T | undefined>(
    (least, entry) => (least === undefined || isLess(entry, least) ? entry : least),
    undefined,
  );
}

/** The reasons about a provider's payment; the others are about a companion. */
const PROVIDER_REASONS: ReadonlySet<UnclearReason> = new Set([
  "qr_presented",
  "provider_confirmed",
  "late_money",
  "money_differs",
]);

/** Whether the provider's report that no money moved removes the reason. */
export function isOfProvider(reason: UnclearReason): boolean {
  return PROVIDER_REASONS.has(reason);
}

/** Whether a companion's report that it took no money removes the reason. */
export function isSilence(reason: UnclearReason): boolean {
  return reason === "handoff_presented";
}

/** Why money may have moved after a report that arrived after the end or from a blocked device. */
export function reasonOfLateOutcome(outcome: ReportedOutcome): UnclearReason | undefined {
  if (outcome === "reported_success") return "late_success";
  return outcome === "reported_unknown" ? "late_evidence" : undefined;
}

/** An issue about the intent's confirmed payment, which differs in nothing: the seam has refused to settle it. */
export const REFUSED_ISSUE = "settlement_refused";

/** The reason for an ended intent after an issue about a provider's payment, which may only be late or refused. */
export function reasonOfLateIssue(issue: string): UnclearReason {
  if (issue === REFUSED_ISSUE) return "provider_confirmed";
  return issue === "late_money" ? "late_money" : "money_differs";
}

/**
 * An ended intent with its reason after these later events. The intent had left the station's state when the station committed
 * the events.
 */
export function withLaterEvents(intent: PaymentIntent, events: readonly StationEvent[]): PaymentIntent {
  if (intent.status !== "cancelled" && intent.status !== "expired") return intent;
  const reasonSinceEnd = events.reduce(reasonAfter, intent.reasonSinceEnd);
  return { ...intent, reasonSinceEnd };
}

/** The reason of an ended intent after one more event about it. */
export function reasonAfter(
  before: PaymentIntent["reasonSinceEnd"],
  event: StationEvent,
): PaymentIntent["reasonSinceEnd"] {
  const added = reasonOf(event);
  if (added !== undefined) return isAtLeastAsStrong(added, before) ? added : before;
  return before !== "" && isTakenBack(before, event) ? "" : before;
}

function reasonOf(event: StationEvent): UnclearReason | undefined {
  if (event.type === "late_evidence_kept") return reasonOfLateOutcome(event.outcome);
  if (event.type === "late_money_kept") return "late_money";
  return event.type === "money_differs" ? reasonOfLateIssue(event.issue) : undefined;
}

function isTakenBack(reason: UnclearReason, event: StationEvent): boolean {
  if (event.type === "unclear_resolved") return isOfProvider(reason) || isSilence(reason);
  return event.type === "late_evidence_kept" && event.blockedReason === "" && isSilence(reason);
}
