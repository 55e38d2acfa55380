/** The steps of a cashier in a collection: create, attest, cancel. */
import { amountFitsWire } from "../currency.ts";
import { digestOf } from "../digest.ts";
import { type Attestation, isEnded, type PaymentIntent, type ProviderPayment, wireStatus } from "../payment-intent.ts";
import { chooseCompanion, routeOffer } from "../views/routes.ts";
import type { StationEvent } from "./event.ts";
import { moveIntent } from "./intent-move.ts";
import { refuseWithoutLease } from "./lease-steps.ts";
import { type Command, namedIntent, type Outcome, refuse, type StepInput } from "./outcome.ts";
import type { StationReply } from "./reply.ts";
import type { OrderSnapshot, StationState, UnclearCollection } from "./state.ts";
import {
  confirmUnclear,
  isCovered,
  isUnclear,
  newestReasonNumber,
  unclearOfOrder,
  unclearToConfirm,
} from "./unclear-collections.ts";

export function createIntent(state: StationState, command: Command<"intent_create">, input: StepInput): Outcome {
  const { order, route } = command;
  const refused = refuseWithoutLease(state, input);
  if (refused !== undefined) return refused;
  if (state.intent !== null) return refuse("collection_active", { status: wireStatus(state.intent.status) });
  const stale = refuseStaleOrder(state, order);
  if (stale !== undefined) return stale;
  const amountMinor = BigInt(order.amountMinor);
  if (amountMinor === 0n || !amountFitsWire(amountMinor, order.currency)) return refuse("amount_not_collectable");
  const offer = routeOffer(state, route, input.switches);
  if (offer.reason !== null) return refuse("route_not_offered", { reason: offer.reason });
  const choice = route === "smart_pos" ? chooseCompanion(state, input.switches, command.deviceId) : undefined;
  if (route === "smart_pos" && choice?.reason !== null)
    return refuse("route_not_offered", { reason: choice?.reason ?? "no_companion" });
  const companion = choice?.device;
  const isUnclearOrder = isUnclear(state, order.orderId);
  const earlier = unclearOfOrder(state, order.orderId);
  if (isUnclearOrder && !isCovered(command, newestReasonNumber(state, order.orderId)))
    return refuseUnconfirmed(state, order.orderId, unclearOfOrder(state, order.orderId, command));
  const intent: PaymentIntent = {
    intentId: command.intentId,
    displayNumber: state.nextIntentNumber,
    route,
    orderId: order.orderId,
    orderDisplayNumber: order.orderDisplayNumber,
    orderRevision: order.revision,
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
    formerReports: [],
    attestation: null,
    provider: route === "dynamic_qr" ? newProviderPayment(state, input) : null,
    moneyMayHaveMoved: "",
    reasonSinceEnd: "",
    endedAtMs: null,
    endReason: "",
    cancelKey: "",
    status: "created",
  };
  const { intentId, orderId, amountMinor: amount, currency, deviceId, expiresAtMs } = intent;
  const events: StationEvent[] = [
    { type: "intent_created", intentId, route, orderId, amountMinor: amount, currency, deviceId, expiresAtMs },
  ];
  if (isUnclearOrder)
    events.push({ type: "second_collection_confirmed", intentId, orderId, earlierIntentId: earlier?.intentId ?? null });
  return {
    state: confirmUnclear({ ...state, intent, nextIntentNumber: state.nextIntentNumber + 1 }, intent),
    events,
    reply: { ok: true, type: "intent", intentId, status: intent.status },
  };
}

/** Names the strongest reason that the cashier has not confirmed, and the number that covers all reasons of the order. */
function refuseUnconfirmed(state: StationState, orderId: number, unclear: UnclearCollection | undefined): Outcome {
  const named = unclear === undefined ? {} : { reason: unclear.reason, earlierIntentId: unclear.intentId };
  return refuse("money_may_have_moved", { ...named, reasonNumber: newestReasonNumber(state, orderId) });
}

/**
 * Refuses an order that cannot be collected. The snapshot may be old, because another host may have committed since it was read.
 * So the station also checks its own data of the order: a guest must not be charged for a paid order.
 */
function refuseStaleOrder(state: StationState, order: OrderSnapshot): Outcome | undefined {
  const known = state.knownOrders.find((other) => other.orderId === order.orderId);
  const status = known === undefined || known.status === "open" ? order.status : known.status;
  if (status !== "open") return refuse(status === "paid" ? "order_already_paid" : "order_voided");
  return known !== undefined && known.revision > order.revision ? refuse("order_changed") : undefined;
}

/** Commits the intention to settle. The host calls the seam after this commit, and the reply waits for the seam's answer. */
export function attestIntent(state: StationState, command: Command<"intent_attest">, input: StepInput): Outcome {
  const { intentId } = command;
  const underWay: StationReply = { ok: true, type: "intent", intentId, status: "settling" };
  // A repeated attestation waits for the same answer as the first one (I6).
  if (isSettlingFor(state, intentId, input.commandId)) return { reply: underWay };
  const refused = refuseWithoutLease(state, input) ?? refuseUnlessActive(state, intentId, input);
  if (refused !== undefined) return refused;
  const intent = state.intent as PaymentIntent;
  const reference = inheritedReference(intent) || (command.reference ?? "").trim();
  if (intent.route === "attested_terminal" && reference === "")
    return refuse("reference_required", { status: wireStatus(intent.status) });
  // A confirmation does not count for the reference of a report that came after it.
  const { reportCount } = intent;
  const isConfirmed =
    command.confirmsReferenceAlreadyUsed === true && (command.confirmedReportCount ?? reportCount) === reportCount;
  const confirmed = isConfirmed ? { confirmsReferenceAlreadyUsed: true as const } : {};
  const attestation: Attestation = {
    by: "cashier",
    commandId: input.commandId,
    cashierId: input.actor.id,
    cashierName: input.actor.kind === "cashier" ? input.actor.name : "",
    reference,
    atMs: input.atMs,
    transactionId: null,
    ...confirmed,
    requestId: input.requestId,
  };
  const next = moveIntent(state, { type: "ATTEST", attestation });
  if (next === undefined) return refuse("evidence_required", { status: wireStatus(intent.status) });
  // An earlier collection of the order may have got a reason since this one was created.
  const unconfirmed = unclearToConfirm(state, intent, command);
  if (unconfirmed !== undefined) return refuseUnconfirmed(state, intent.orderId, unconfirmed);
  const earlier = unclearToConfirm(state, intent);
  const events: StationEvent[] = [
    { type: "settlement_started", intentId, cashierId: input.actor.id, reference, ...confirmed },
  ];
  if (earlier !== undefined) {
    const { orderId } = intent;
    events.push({ type: "second_collection_confirmed", intentId, orderId, earlierIntentId: earlier.intentId });
  }
  return { state: confirmUnclear(next, intent), events, reply: underWay };
}

export function cancelIntent(state: StationState, command: Command<"intent_cancel">, input: StepInput): Outcome {
  const { intentId } = command;
  const refused = refuseWithoutLease(state, input) ?? refuseUnlessActive(state, intentId, input);
  if (refused !== undefined) return refused;
  const next = moveIntent(state, {
    type: "CANCEL",
    atMs: input.atMs,
    key: digestOf(input.commandId),
    requestId: input.requestId,
  });
  if (next === undefined) return refuse("settlement_in_progress", { status: "processing" });
  return {
    state: next,
    events: [{ type: "intent_cancelled", intentId, cashierId: input.actor.id }],
    reply: { ok: true, type: "intent", intentId, status: "cancelled" },
  };
}

/** The provider's part of a new intent: only the station's config. The caller has checked that the route is offered. */
function newProviderPayment(state: StationState, { requestId }: StepInput): ProviderPayment {
  const { configId } = state.provider;
  if (configId === null) throw new Error("The route dynamic_qr is offered without a provider config.");
  return { configId, qrPayload: "", providerReference: "", confirmedAtMs: null, requestId };
}

function isSettlingFor(state: StationState, intentId: number, commandId: string): boolean {
  const { intent } = state;
  return intent?.intentId === intentId && intent.status === "settling" && intent.attestation?.commandId === commandId;
}

/** Refuses an intent that is unknown, ended or already sent to the seam. */
function refuseUnlessActive(state: StationState, intentId: number, input: StepInput): Outcome | undefined {
  const intent = namedIntent(state, intentId, input);
  if (intent === undefined) return refuse("intent_unknown");
  if (isEnded(intent.status)) return refuse("intent_not_actionable", { status: wireStatus(intent.status) });
  return intent.status === "settling" ? refuse("settlement_in_progress", { status: "processing" }) : undefined;
}

/**
 * The provider's reference of a QR payment, or the newest reference that a device reported (contract, "Reported outcome"). A
 * report without a reference does not erase an older one. The cashier's reference counts only when this one is empty.
 */
function inheritedReference(intent: PaymentIntent): string {
  if (intent.provider !== null) return intent.provider.providerReference;
  return intent.reports.findLast((report) => report.providerReference !== "")?.providerReference ?? "";
}
