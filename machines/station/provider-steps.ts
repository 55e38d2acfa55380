/** The steps that a payment provider causes: its QR, its confirmation, its failure, and its report that no money moved. */
import { isConfirmed, isEnded, type PaymentIntent, wireStatus } from "../payment-intent.ts";
import { confirmedBy } from "./deadlines.ts";
import { moveIntent } from "./intent-move.ts";
import { type Evidence, isKept, rememberEvidence } from "./late-evidence.ts";
import { ACCEPTED, type Command, namedIntent, type Outcome, refuse, type StepInput } from "./outcome.ts";
import { isOfProvider, REFUSED_ISSUE, reasonOfLateIssue } from "./reasons.ts";
import { findIntent, type StationState } from "./state.ts";
import { addLateReason, endProviderReasons } from "./unclear-collections.ts";

/** The provider has returned its QR: displays show the QR from this commit on. */
export function presentQr(state: StationState, command: Command<"qr_ready">, atMs: number): Outcome {
  const { intentId, qrPayload, providerReference } = command;
  const intent = findIntent(state, intentId);
  if (intent === undefined || intent.provider === null) return refuse("intent_unknown");
  const isWaiting = state.intent === intent && intent.expiresAtMs > atMs;
  const next = isWaiting ? moveIntent(state, { type: "QR_READY", atMs, qrPayload, providerReference }) : undefined;
  // The QR is already shown, or a confirmation, a cancellation or the deadline came first.
  if (next === undefined) return { reply: { ok: true, type: "intent", intentId, status: intent.status } };
  return {
    state: next,
    events: [{ type: "qr_presented", intentId, providerReference }],
    reply: { ok: true, type: "intent", intentId, status: "presented" },
  };
}

/**
 * The provider reports that the guest has paid. The station commits the intention to settle, and the reply waits for the seam's
 * decision. A payment that comes too late, or a second payment, settles nothing: the station keeps it as late money.
 */
export function confirmPayment(state: StationState, command: Command<"provider_confirm">, input: StepInput): Outcome {
  const { intentId, providerReference } = command;
  const intent = namedIntent(state, intentId, input);
  if (intent === undefined || !isAskedOf(intent, input)) return refuse("intent_unknown");
  const { status } = intent;
  const isSameMoney = isConfirmed(intent) && intent.provider?.providerReference === providerReference;
  if (isSameMoney && (status === "settling" || status === "succeeded"))
    return { reply: { ok: true, type: "intent", intentId, status } };
  // Until the seam has decided about the first payment, the station does not know whether this is a second one.
  if (status === "settling") return refuse("settlement_in_progress", { status: "processing" });
  if (isEnded(status) || (isConfirmed(intent) && !isSameMoney)) return keepLateMoney(state, intent, command, input);
  const { requestId } = input;
  const attestation = { ...confirmedBy(input.commandId, providerReference, input.atMs), requestId };
  const next = moveIntent(state, { type: "CONFIRM", atMs: input.atMs, attestation, providerReference });
  if (next === undefined) return refuse("intent_not_actionable", { status: wireStatus(status) });
  return {
    state: next,
    events: [{ type: "provider_confirmed", intentId, providerReference }],
    reply: { ok: true, type: "intent", intentId, status: "settling" },
  };
}

/** The provider's side ended the intent: it returned no QR, or declined. A repetition finds the same end and changes nothing. */
export function failPayment(state: StationState, command: Command<"provider_failed">, input: StepInput): Outcome {
  const { intentId, reason } = command;
  const { atMs, requestId } = input;
  const intent = findIntent(state, intentId);
  if (intent === undefined || intent.provider === null) return refuse("intent_unknown");
  const { status } = intent;
  if (intent.endReason === reason) return { reply: { ok: true, type: "intent", intentId, status } };
  if (status === "settling") return refuse("settlement_in_progress", { status: "processing" });
  const next = state.intent === intent ? moveIntent(state, { type: "FAIL", atMs, reason, requestId }) : undefined;
  // The intent has ended for another reason, or the provider has confirmed: if it reports both, the payment counts.
  if (next === undefined) return refuse("intent_not_actionable", { status: wireStatus(status) });
  return {
    state: next,
    events: [{ type: "provider_failed", intentId, reason }],
    reply: { ok: true, type: "intent", intentId, status: "cancelled" },
  };
}

/**
 * The provider asserts a payment that differs from the intent's. From now on money may have moved. Only a `provider_cleared`
 * removes this reason: a later decline, cancellation or deadline does not.
 */
export function keepDifferingMoney(
  state: StationState,
  command: Command<"provider_money_differs">,
  input: StepInput,
): Outcome {
  const { intentId, issue, issueId } = command;
  const intent = namedIntent(state, intentId, input);
  if (intent === undefined || intent.provider === null || input.actor.kind !== "provider")
    return refuse("intent_unknown");
  const status = wireStatus(intent.status);
  const isUnpaid = status === "cancelled" || status === "expired";
  // The station has committed the refusal itself, and the cashier may still settle the payment.
  if (issue === REFUSED_ISSUE && isConfirmed(intent) && !isUnpaid) return { reply: ACCEPTED };
  const reason = isEnded(intent.status) ? reasonOfLateIssue(issue) : "money_differs";
  // Idempotent by content, not by command: after the provider has cleared it, the same issue counts again.
  const evidence: Evidence = { intentId, kind: "asserted", content: [issue, issueId] };
  // A late or refused payment without another difference: the cashier knows it already, from its confirmation.
  const isKnown =
    reason !== "money_differs" &&
    state.unclearCollections.some((unclear) => unclear.intentId === intentId && unclear.reason === reason);
  if (isKnown || isKept(state, evidence)) return { reply: ACCEPTED };
  let next = state;
  if (!isEnded(intent.status)) next = moveIntent(state, { type: "MARK", reason }) ?? state;
  // If this intent has paid the order, the order is not unclear.
  else if (isUnpaid) next = addLateReason(state, intent, { reason, isNewPayment: reason === "money_differs" }, input);
  return {
    state: { ...next, ...rememberEvidence(next, evidence) },
    events: [{ type: "money_differs", intentId, issue, status }],
    reply: ACCEPTED,
  };
}

/**
 * The provider reports that no money moved for an intent and none will. The station removes the provider's reasons for the
 * intent, and the mark of an active intent. A later assertion of the provider counts again. The reasons about a companion stay.
 */
export function applyProviderCleared(
  state: StationState,
  command: Command<"provider_cleared">,
  input: StepInput,
): Outcome {
  const { intentId } = command;
  const active =
    state.intent?.intentId === intentId && state.intent.moneyMayHaveMoved !== "" ? state.intent : undefined;
  const unmarked = active === undefined ? undefined : moveIntent(state, { type: "CLEAR" });
  const named = namedIntent(state, intentId, input);
  // When only the audit log has the reason, this event clears it there.
  const isElsewhere = named === input.recalled && named?.reasonSinceEnd && isOfProvider(named.reasonSinceEnd);
  const cleared = endProviderReasons(unmarked ?? state, intentId) ?? unmarked ?? (isElsewhere ? state : undefined);
  const known = [...state.unclearCollections, ...state.olderReasons].find((other) => other.intentId === intentId);
  const orderId = named?.orderId ?? known?.orderId;
  if (cleared === undefined || orderId === undefined) return { reply: ACCEPTED };
  return {
    state: { ...cleared, lateEvidence: cleared.lateEvidence.filter((kept) => kept.intentId !== intentId) },
    events: [{ type: "unclear_resolved", intentId, orderId }],
    reply: ACCEPTED,
  };
}

/** The providers service has recorded the end of a QR intent. From now on, that service notifies the provider. */
export function noteReportedEnd(state: StationState, { intentId }: Command<"end_reported">): Outcome {
  if (!state.unreportedEnds.includes(intentId)) return { reply: ACCEPTED };
  const unreportedEnds = state.unreportedEnds.filter((other) => other !== intentId);
  return { state: { ...state, unreportedEnds }, events: [{ type: "end_reported", intentId }], reply: ACCEPTED };
}

/** Whether a collection of the order is active. The caller is about to pay the order in another way. */
export function inquireOrder({ intent }: StationState, { orderId }: Command<"order_inquire">): Outcome {
  if (intent === null || intent.orderId !== orderId) return { reply: ACCEPTED };
  return refuse("collection_active", { status: wireStatus(intent.status) });
}

/** Whether the command is from the intent's provider config. The callback of another config cannot confirm the intent. */
function isAskedOf(intent: PaymentIntent, { actor }: StepInput): boolean {
  return actor.kind === "provider" && intent.provider?.configId === actor.id;
}

/** Refuses a late payment. A repeated one commits nothing. A new one is a reason that no cashier has confirmed yet. */
function keepLateMoney(
  state: StationState,
  intent: PaymentIntent,
  { intentId, providerReference }: Command<"provider_confirm">,
  input: StepInput,
): Outcome {
  const status = wireStatus(intent.status);
  const refused = refuse("intent_not_actionable", { status });
  const evidence: Evidence = { intentId, kind: "asserted", content: [providerReference] };
  if (isKept(state, evidence)) return refused;
  const isKnown = isConfirmed(intent) && intent.provider?.providerReference === providerReference;
  const knownAs = isKnown ? "provider_confirmed" : undefined;
  // A second payment of a paid order is an issue for a person, but must not block a collection.
  const next =
    status === "succeeded"
      ? state
      : addLateReason(state, intent, { reason: "late_money", isNewPayment: !isKnown, knownAs }, input);
  return {
    ...refused,
    state: { ...next, ...rememberEvidence(next, evidence) },
    events: [{ type: "late_money_kept", intentId, providerReference, status }],
  };
}
