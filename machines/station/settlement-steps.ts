/** The settlement saga's answers (design §2.4): the seam is money truth, the station follows it. */
import { type EarlierSale, isEnded, type PaymentIntent, wireStatus } from "../payment-intent.ts";
import { applyDeadlines } from "./deadlines.ts";
import type { StationEvent } from "./event.ts";
import { endOvertaken, moveIntent } from "./intent-move.ts";
import { ACCEPTED, type Command, keepReply, type Outcome, type StepInput } from "./outcome.ts";
import { rememberOrder } from "./registry-steps.ts";
import type { StationReply } from "./reply.ts";
import { takeOrderOff } from "./shown-orders.ts";
import { findIntent, orderObstacle, type StationState } from "./state.ts";
import { dropUnclear } from "./unclear-collections.ts";

/** The seam has settled: the intent succeeds, the order leaves the display, and the attestation is answered. */
export function finishSettlement(state: StationState, command: Command<"settlement_succeeded">, atMs: number): Outcome {
  const { intentId, transactionId, attestation } = command;
  const intent = findIntent(state, intentId);
  if (intent === undefined) return { reply: ACCEPTED };
  if (isEnded(intent.status)) return conflict(state, intent, transactionId, atMs);
  const moved = moveIntent(state, { type: "SETTLED", atMs, transactionId, attestation });
  // The seam is asked about a QR only after its provider has confirmed it; an answer without that is ignored here.
  if (moved === undefined) return conflict(state, intent, transactionId, atMs);
  const { orderId } = intent;
  const revision = state.knownOrders.find((known) => known.orderId === orderId)?.revision ?? 0;
  const paid = dropUnclear(rememberOrder(moved, { orderId, revision, status: "paid" }), orderId);
  return answerAttestation(
    takeOrderOff(paid, orderId, atMs),
    intent,
    [{ type: "intent_succeeded", intentId, orderId, transactionId }],
    { ok: true, type: "intent", intentId, status: "succeeded" },
  );
}

/**
 * The seam refuses: order truth has moved on. The intent goes back, unpaid, and the cashier decides again. A deadline
 * that passed while the seam was at work is due now, and so is the end of what waits for an order that is gone.
 */
export function refuseSettlement(
  state: StationState,
  command: Command<"settlement_refused">,
  input: StepInput,
): Outcome {
  const { atMs } = input;
  const { intentId, code, attestationId, earlier } = command;
  const intent = state.intent?.intentId === intentId ? state.intent : undefined;
  // Two hosts may both have asked the seam; the slower one's refusal is of an attestation that is over.
  const isStale = attestationId !== undefined && intent?.attestation?.commandId !== attestationId;
  if (isStale) return { reply: ACCEPTED };
  const moved = intent === undefined ? undefined : moveIntent(state, { type: "REFUSED" });
  if (intent === undefined || moved === undefined) return { reply: ACCEPTED };
  // Confirmed or attested as it was, it needs no check of a confirmation.
  const due = applyDeadlines(moved, input);
  // What the station received about the order while the seam was at work did not end the collection then.
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

/** A second report that an intent succeeded changes nothing; a report that an unpaid one is paid must not be lost. */
function conflict(state: StationState, intent: PaymentIntent, transactionId: number, atMs: number): Outcome {
  if (intent.status === "succeeded") return { reply: ACCEPTED };
  const { intentId, orderId } = intent;
  const status = wireStatus(intent.status);
  // The order is paid: no cashier can collect it again, whatever else may have moved, and a collection under way ends.
  const other = isEnded(intent.status)
    ? endOvertaken(state, { orderId, reason: "order_already_paid" }, atMs)
    : { state, events: [] };
  return {
    state: dropUnclear(other.state, orderId),
    events: [{ type: "settlement_conflict", intentId, transactionId, status }, ...other.events],
    reply: ACCEPTED,
  };
}

/** The seam's answer comes as JSON; only the fields that a reply may hold enter the state, so that it stays bounded. */
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
  // A success is known by the intent itself.
  const replies = commandId === undefined || reply.ok ? state.replies : keepReply(state, { commandId, reply });
  return { state: { ...state, replies }, events, reply };
}
