/** The cashier's side of a collection, and the settlement saga's answers. */
import type { Attestation, PaymentIntent } from "../payment-intent.ts";
import { isEnded, wireStatus } from "../payment-intent.ts";
import { chooseCompanion, routeOffer } from "../views/routes.ts";
import type { StationEvent } from "./event.ts";
import { moveIntent } from "./intent-move.ts";
import { refuseWithoutLease } from "./lease-steps.ts";
import { ACCEPTED, type Command, keepReply, type Outcome, refuse, type StepInput } from "./outcome.ts";
import type { StationReply } from "./reply.ts";
import { findIntent, type StationState } from "./state.ts";

export function createIntent(state: StationState, command: Command<"intent_create">, input: StepInput): Outcome {
  const { order, route } = command;
  const refused = refuseWithoutLease(state, input);
  if (refused !== undefined) return refused;
  if (state.intent !== null) return refuse("collection_active", { status: wireStatus(state.intent.status) });
  if (order.status !== "open") return refuse(order.status === "paid" ? "order_already_paid" : "order_voided");
  if (BigInt(order.amountMinor) <= 0n) return refuse("amount_not_collectable");
  const offer = routeOffer(state, route, input.switches);
  if (offer.reason !== null) return refuse("route_not_offered", { reason: offer.reason });
  const companion = route === "smart_pos" ? chooseCompanion(state, input.switches, command.deviceId) : undefined;
  if (route === "smart_pos" && companion === undefined)
    return refuse("route_not_offered", { reason: "device_offline" });
  const intent: PaymentIntent = {
    intentId: command.intentId,
    displayNumber: state.nextIntentNumber,
    route,
    orderId: order.orderId,
    orderDisplayNumber: order.orderDisplayNumber,
    amountMinor: order.amountMinor,
    currency: order.currency,
    stationName: state.name,
    deviceId: companion?.deviceId ?? null,
    handoffTarget: companion?.handoffTarget ?? "",
    createdBy: input.actor.id,
    createdAtMs: input.atMs,
    expiresAtMs: input.atMs + (command.lifetimeMs ?? input.settings.intentLifetimeMs),
    presentedAtMs: null,
    reports: [],
    reportCount: 0,
    attestation: null,
    endedAtMs: null,
    status: "created",
  };
  const { intentId, orderId, amountMinor, currency, deviceId, expiresAtMs } = intent;
  return {
    state: { ...state, intent, nextIntentNumber: state.nextIntentNumber + 1 },
    events: [{ type: "intent_created", intentId, route, orderId, amountMinor, currency, deviceId, expiresAtMs }],
    reply: intentReply(intent),
  };
}

/** Commits the intention to settle. The seam is called after this commit; the reply waits for its answer. */
export function attestIntent(state: StationState, command: Command<"intent_attest">, input: StepInput): Outcome {
  const { intentId } = command;
  const refused = refuseWithoutLease(state, input) ?? refuseUnlessActive(state, intentId);
  if (refused !== undefined) return refused;
  const intent = state.intent as PaymentIntent;
  const reference = command.reference ?? inheritedReference(intent);
  if (intent.route === "attested_terminal" && reference === "") return refuse("reference_required");
  const attestation: Attestation = {
    commandId: input.commandId,
    cashierId: input.actor.id,
    cashierName: input.actor.kind === "cashier" ? input.actor.name : "",
    reference,
    atMs: input.atMs,
    transactionId: null,
  };
  const next = moveIntent(state, { type: "ATTEST", attestation });
  if (next === undefined) return refuse("evidence_required", { status: wireStatus(intent.status) });
  return {
    state: next,
    events: [{ type: "settlement_started", intentId, cashierId: input.actor.id, reference }],
    reply: { ok: true, type: "intent", intentId, status: "settling" },
  };
}

export function cancelIntent(state: StationState, command: Command<"intent_cancel">, input: StepInput): Outcome {
  const { intentId } = command;
  const refused = refuseWithoutLease(state, input) ?? refuseUnlessActive(state, intentId);
  if (refused !== undefined) return refused;
  const next = moveIntent(state, { type: "CANCEL", atMs: input.atMs });
  if (next === undefined) return refuse("settlement_in_progress", { status: "processing" });
  return {
    state: next,
    events: [{ type: "intent_cancelled", intentId, cashierId: input.actor.id }],
    reply: { ok: true, type: "intent", intentId, status: "cancelled" },
  };
}

/** The seam has settled: the intent succeeds, the order leaves the display, and the attestation is answered. */
export function finishSettlement(state: StationState, command: Command<"settlement_succeeded">, atMs: number): Outcome {
  const { intentId, transactionId } = command;
  const intent = settlingIntent(state, intentId);
  if (intent === undefined) return { reply: ACCEPTED };
  const moved = moveIntent(state, { type: "SETTLED", atMs, transactionId });
  if (moved === undefined) return { reply: ACCEPTED };
  const order = moved.order?.orderId === intent.orderId ? null : moved.order;
  return answerAttestation(
    { ...moved, order },
    intent,
    { type: "intent_succeeded", intentId, orderId: intent.orderId, transactionId },
    { ok: true, type: "intent", intentId, status: "succeeded" },
  );
}

/** The seam refuses: order truth has moved on. The intent goes back, unpaid, and the cashier decides anew. */
export function refuseSettlement(state: StationState, command: Command<"settlement_refused">): Outcome {
  const { intentId, code } = command;
  const intent = settlingIntent(state, intentId);
  const moved = intent === undefined ? undefined : moveIntent(state, { type: "REFUSED" });
  if (intent === undefined || moved === undefined || moved.intent === null) return { reply: ACCEPTED };
  const status = wireStatus(moved.intent.status);
  return answerAttestation(moved, intent, { type: "settlement_refused", intentId, code }, { ok: false, code, status });
}

function answerAttestation(
  state: StationState,
  intent: PaymentIntent,
  event: StationEvent,
  reply: StationReply,
): Outcome {
  const commandId = intent.attestation?.commandId;
  const replies = commandId === undefined ? state.replies : keepReply(state, commandId, reply);
  return { state: { ...state, replies }, events: [event], reply };
}

function settlingIntent(state: StationState, intentId: number): PaymentIntent | undefined {
  return state.intent?.intentId === intentId && state.intent.status === "settling" ? state.intent : undefined;
}

/** Refuses when the intent is not the station's active one: unknown, ended, or already with the seam. */
function refuseUnlessActive(state: StationState, intentId: number): Outcome | undefined {
  const intent = findIntent(state, intentId);
  if (intent === undefined) return refuse("intent_unknown");
  if (isEnded(intent.status)) return refuse("intent_not_actionable", { status: wireStatus(intent.status) });
  return intent.status === "settling" ? refuse("settlement_in_progress", { status: "processing" }) : undefined;
}

/** The newest report's own reference; an empty one (an outcome without a slip) does not erase an older one. */
function inheritedReference(intent: PaymentIntent): string {
  return intent.reports.findLast((report) => report.providerReference !== "")?.providerReference ?? "";
}

function intentReply(intent: PaymentIntent): StationReply {
  return { ok: true, type: "intent", intentId: intent.intentId, status: intent.status };
}
