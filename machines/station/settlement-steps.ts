/** The steps after the payment seam's answer (design §2.4): the seam decides, and the station follows. */
import { digestOf } from "../digest.ts";
import { type EarlierSale, isAttestedDirectly, isEnded, type PaymentIntent, wireStatus } from "../payment-intent.ts";
import { applyDeadlines } from "./deadlines.ts";
import type { StationEvent } from "./event.ts";
import { endOvertaken, moveIntent } from "./intent-move.ts";
import { ACCEPTED, type Command, keepReply, type Outcome, type StepInput } from "./outcome.ts";
import { rememberOrder } from "./registry-steps.ts";
import type { StationReply } from "./reply.ts";
import { takeOrderOff } from "./shown-orders.ts";
import { findIntent, orderObstacle, type StationState, type StoredReply } from "./state.ts";
import { dropUnclear } from "./unclear-collections.ts";

/** The seam has settled: the intent succeeds, the order leaves the display, and the attestation gets its reply. */
export function finishSettlement(state: StationState, command: Command<"settlement_succeeded">, atMs: number): Outcome {
  const { intentId, transactionId, attestation } = command;
  const intent = findIntent(state, intentId);
  if (intent === undefined) return { reply: ACCEPTED };
  if (isEnded(intent.status)) return conflict(state, intent, transactionId, atMs);
  const moved = moveIntent(state, { type: "SETTLED", atMs, transactionId, attestation });
  // The host asks the seam about a QR only after the provider's confirmation. Without one, the station ignores the answer.
  if (moved === undefined) return conflict(state, intent, transactionId, atMs);
  const { orderId } = intent;
  const revision = state.knownOrders.find((known) => known.orderId === orderId)?.revision ?? 0;
  const paid = dropUnclear(rememberOrder(moved, { orderId, revision, status: "paid" }), orderId);
  return answerAttestation(
    takeOrderOff(paid, orderId),
    intent,
    [{ type: "intent_succeeded", intentId, orderId, transactionId }],
    { ok: true, type: "intent", intentId, status: "succeeded" },
  );
}

/**
 * The seam has refused: the order has changed, or the payment has settled another order. The intent stays unpaid, and the
 * cashier decides again. If a deadline passed in the meantime, or the order was paid or voided, the intent ends now.
 */
export function refuseSettlement(
  state: StationState,
  command: Command<"settlement_refused">,
  input: StepInput,
): Outcome {
  const { atMs } = input;
  const { intentId, code, attestationId, earlier } = command;
  const intent = state.intent?.intentId === intentId ? state.intent : undefined;
  // Two hosts may have asked the seam. The later refusal is about an attestation that has ended.
  const isStale = attestationId !== undefined && intent?.attestation?.commandId !== attestationId;
  if (isStale) return { reply: ACCEPTED };
  const moved = intent === undefined ? undefined : moveIntent(state, { type: "REFUSED" });
  if (intent === undefined || moved === undefined) return { reply: ACCEPTED };
  // The intent was confirmed or attested, so it needs no check for a confirmation.
  const due = applyDeadlines(moved, input);
  // A change of the order during `settling` did not end the collection, so check it now.
  const reason = orderObstacle(due.state, intent);
  const other =
    reason === undefined
      ? { state: due.state, events: [] }
      : endOvertaken(due.state, { orderId: intent.orderId, reason }, atMs);
  const status = wireStatus(findIntent(other.state, intentId)?.status ?? "expired");
  const sale = earlier === undefined ? undefined : describeSale(earlier);
  const refused: StationEvent = { type: "settlement_refused", intentId, code, ...(sale && { earlier: sale }) };
  const reply: StationReply = { ok: false, code, status, ...(sale && { earlierSale: sale }) };
  return answerAttestation(other.state, intent, [refused, ...due.events, ...other.events], reply);
}

/** A repeated success changes nothing. A success of an intent that ended unpaid must not be lost. */
function conflict(state: StationState, intent: PaymentIntent, transactionId: number, atMs: number): Outcome {
  if (intent.status === "succeeded") return { reply: ACCEPTED };
  const { intentId, orderId } = intent;
  const status = wireStatus(intent.status);
  // The order is paid, so no cashier can collect it again, and a collection of it that is under way ends.
  const other = isEnded(intent.status)
    ? endOvertaken(state, { orderId, reason: "order_already_paid" }, atMs)
    : { state, events: [] };
  return {
    state: dropUnclear(other.state, orderId),
    events: [{ type: "settlement_conflict", intentId, transactionId, status }, ...other.events],
    reply: ACCEPTED,
  };
}

/** Copies only the known fields of the seam's JSON answer, so that the state stays bounded. */
function describeSale(sale: EarlierSale): EarlierSale {
  const { orderId, orderDisplayNumber, stationName, amountMinor, currency, settledAtMs } = sale;
  return { orderId, orderDisplayNumber, stationName, amountMinor, currency, settledAtMs };
}

function answerAttestation(
  state: StationState,
  intent: PaymentIntent,
  events: readonly StationEvent[],
  reply: StationReply,
): Outcome {
  const commandId = intent.attestation?.commandId;
  // A success needs no stored reply, because the intent shows it.
  if (commandId === undefined || reply.ok) return { state, events, reply };
  const stored: StoredReply = { commandId, ...requestDigestOf(intent), reply };
  return { state: { ...state, replies: keepReply(state, stored) }, events, reply };
}

/** The digest of the reference that the cashier entered. On other routes, the device or the provider may have supplied it. */
function requestDigestOf({ route, attestation }: PaymentIntent): Pick<StoredReply, "requestDigest"> {
  return isAttestedDirectly(route) && attestation !== null ? { requestDigest: digestOf(attestation.reference) } : {};
}
