/**
 * Unclear collections: ended ones by which money may have moved without being settled. Another collection of such an order
 * needs the cashier's confirmation, so that no guest is charged twice by an unconsidered retry.
 */
import {
  type EndReason,
  isConfirmed,
  isEnded,
  type PaymentIntent,
  PROVIDER_DECLINES,
  type UnclearReason,
} from "../payment-intent.ts";
import { STATE_LIMITS } from "../settings.ts";
import { keepOlderReason, withoutOlderReason } from "./older-reasons.ts";
import type { StepInput } from "./outcome.ts";
import { isAtLeastAsStrong, isOfProvider, isSilence, leastNeeded } from "./reasons.ts";
import { findIntent, type StationState, type UnclearCollection } from "./state.ts";

/** Why money may have moved for an intent that ends unpaid now, or undefined when there is no evidence of it. */
export function reasonAtEnd(intent: PaymentIntent, endReason: EndReason | ""): UnclearReason | undefined {
  if (isConfirmed(intent)) return "provider_confirmed";
  // Evidence that money may have moved outlives a later decline, which may be about another payment of the same QR.
  if (intent.moneyMayHaveMoved !== "") return intent.moneyMayHaveMoved;
  if (intent.presentedAtMs === null) return undefined;
  // A companion that has fetched the collection and is silent may have taken the guest's card.
  if (intent.route !== "dynamic_qr") return intent.reportCount === 0 ? "handoff_presented" : undefined;
  const wasDeclined = (PROVIDER_DECLINES as readonly string[]).includes(endReason);
  return wasDeclined ? undefined : "qr_presented";
}

/** How a reason relates to what the cashier has confirmed already. */
export interface LateReason {
  readonly reason: UnclearReason;
  /** It asserts a payment that was not asserted before: the cashier has not confirmed it, whatever else was confirmed. */
  readonly isNewPayment?: boolean;
  /** The reason with which the same payment was named before the end: a confirmation of that one holds for it too. */
  readonly knownAs?: UnclearReason | undefined;
}

/**
 * The station with one more reason; a paid or voided order has none. Earlier reasons of the same intent stay
 * beside it: one reason does not take another one back, but a report takes the place of the silence before it. At the bound
 * one is pushed out, and of it only its order's id is kept, so that an order whose reason is forgotten is not taken for clear. What the
 * collection under way has to confirm stays longest, then a reported payment.
 */
export function addUnclear(
  state: StationState,
  { orderId, intentId }: CollectionOfOrder,
  { reason, isNewPayment = false, knownAs }: LateReason,
): StationState {
  if (isClosed(state, orderId)) return state;
  const ofIntent = state.unclearCollections.filter((other) => other.intentId === intentId);
  // The same reason of the same intent once more is nothing new: what a cashier has confirmed of it stays confirmed.
  const known = ofIntent.find((other) => other.reason === reason) ?? ofIntent.find((other) => other.reason === knownAs);
  const confirmedFor = isNewPayment ? undefined : known?.confirmedFor;
  const added: UnclearCollection = {
    orderId,
    intentId,
    reason,
    ...(confirmedFor === undefined ? {} : { confirmedFor }),
  };
  const others = state.unclearCollections.filter(
    (other) => other.intentId !== intentId || (other.reason !== reason && !isSilence(other.reason)),
  );
  const all = [...others, added];
  const waits = (other: UnclearCollection): boolean => state.intent !== null && isUnconfirmed(other, state.intent);
  const forgotten = all.length > STATE_LIMITS.unclearCollections ? leastNeeded(all, waits) : undefined;
  if (forgotten === undefined) return { ...state, unclearCollections: all };
  const unclearCollections = all.filter((other) => other !== forgotten);
  return {
    ...state,
    unclearCollections,
    unclearForgottenThrough: Math.max(state.unclearForgottenThrough, forgotten.orderId),
  };
}

/** The station once the cashier has confirmed for this intent all that is known now about its order. */
export function confirmUnclear(state: StationState, { intentId, orderId }: CollectionOfOrder): StationState {
  const unclearCollections = state.unclearCollections.map((unclear) =>
    unclear.orderId === orderId ? { ...unclear, confirmedFor: intentId } : unclear,
  );
  return { ...state, unclearCollections };
}

/**
 * What the cashier has to confirm before an active intent is settled or handed to a device: the strongest reason that an
 * earlier collection of its order has got since this one was created, or since the last confirmation for it.
 */
export function unclearToConfirm(
  { unclearCollections }: Pick<StationState, "unclearCollections">,
  intent: CollectionOfOrder,
): UnclearCollection | undefined {
  return strongestUnclear(unclearCollections.filter((unclear) => isUnconfirmed(unclear, intent)));
}

/** Whether a hand-off that its device has not fetched yet is held back: the guest may have paid by an earlier collection. */
export function isHeldBack(station: Pick<StationState, "unclearCollections">, intent: PaymentIntent): boolean {
  return intent.status === "created" && unclearToConfirm(station, intent) !== undefined;
}

type CollectionOfOrder = Pick<PaymentIntent, "intentId" | "orderId">;

function isUnconfirmed(unclear: UnclearCollection, { intentId, orderId }: CollectionOfOrder): boolean {
  return unclear.orderId === orderId && unclear.intentId !== intentId && unclear.confirmedFor !== intentId;
}

/**
 * The station after evidence about an ended intent by which money may have moved. Its order has the reason from here on,
 * unless it is paid or voided. The reason of the intent itself is kept in any case, also when the intent has left the state,
 * unless it has a stronger one.
 */
export function addLateReason(
  state: StationState,
  intent: PaymentIntent,
  late: LateReason,
  { recalledOrder }: Pick<StepInput, "recalledOrder">,
): StationState {
  const { intentId } = intent;
  const { reason } = late;
  const ended = state.ended.map((other) =>
    other.intentId === intentId && isAtLeastAsStrong(reason, other.reasonSinceEnd)
      ? { ...other, reasonSinceEnd: reason }
      : other,
  );
  const hasLeft = findIntent(state, intentId) === undefined;
  const named = hasLeft ? keepOlderReason(state, intent, reason) : { ...state, ended };
  const isPaidOrVoided = hasLeft && recalledOrder !== undefined && recalledOrder !== "open";
  return isPaidOrVoided ? named : addUnclear(named, intent, late);
}

/** Whether a cashier has more to confirm than before. */
export function needsConfirmationAgain(before: StationState, after: StationState): boolean {
  const known = new Set(unconfirmedNames(before));
  return unconfirmedNames(after).some((name) => !known.has(name));
}

function unconfirmedNames({ unclearCollections }: StationState): readonly string[] {
  const unconfirmed = unclearCollections.filter(({ confirmedFor }) => confirmedFor === undefined);
  return unconfirmed.map(({ intentId, reason }) => `${intentId} ${reason}`);
}

/**
 * The station once the device of an ended intent has reported that it took no money, or undefined when that changes
 * nothing. It answers the silence alone: the reason of an earlier report stays.
 */
export function endSilence(state: StationState, intent: PaymentIntent): StationState | undefined {
  return withoutReasons(state, intent.intentId, isSilence);
}

/**
 * The station once a provider has reported that nothing moved for an ended intent, or undefined when that changes nothing.
 * What the provider asserts afterwards counts again.
 */
export function endProviderReasons(state: StationState, intentId: number): StationState | undefined {
  return withoutReasons(state, intentId, isOfProvider);
}

function withoutReasons(
  state: StationState,
  intentId: number,
  isTakenBack: (reason: UnclearReason) => boolean,
): StationState | undefined {
  const unclearCollections = state.unclearCollections.filter(
    (unclear) => unclear.intentId !== intentId || !isTakenBack(unclear.reason),
  );
  const isMarked = (other: PaymentIntent): boolean =>
    other.intentId === intentId && other.reasonSinceEnd !== "" && isTakenBack(other.reasonSinceEnd);
  const olderReasons = withoutOlderReason(state, intentId, isTakenBack);
  const isSame =
    unclearCollections.length === state.unclearCollections.length && olderReasons.length === state.olderReasons.length;
  if (isSame && !state.ended.some(isMarked)) return undefined;
  const ended = state.ended.map((other) => (isMarked(other) ? { ...other, reasonSinceEnd: "" as const } : other));
  return { ...state, unclearCollections, ended, olderReasons };
}

function isClosed({ knownOrders }: StationState, orderId: number): boolean {
  return knownOrders.some((known) => known.orderId === orderId && known.status !== "open");
}

/** The station without unclear collections of an order: it is paid or voided. */
export function dropUnclear(state: StationState, orderId: number): StationState {
  const unclearCollections = state.unclearCollections.filter((unclear) => unclear.orderId !== orderId);
  return unclearCollections.length === state.unclearCollections.length ? state : { ...state, unclearCollections };
}

/** Whether money may have moved for an order as far as the station knows: a reason that was forgotten may be its. */
export function isUnclear(state: StationState, orderId: number): boolean {
  return orderId <= state.unclearForgottenThrough || unclearOfOrder(state, orderId) !== undefined;
}

/** The one that a person must know first: the strongest, of several the newest. */
export function strongestUnclear(unclearCollections: readonly UnclearCollection[]): UnclearCollection | undefined {
  return unclearCollections.reduce<UnclearCollection | undefined>(
    (strongest, unclear) => (isAtLeastAsStrong(unclear.reason, strongest?.reason ?? "") ? unclear : strongest),
    undefined,
  );
}

/** The one of an order that its next collection names, while one is still known. */
export function unclearOfOrder(
  { unclearCollections }: Pick<StationState, "unclearCollections">,
  orderId: number,
): UnclearCollection | undefined {
  return strongestUnclear(unclearCollections.filter((unclear) => unclear.orderId === orderId));
}

/**
 * Why money may have moved without being settled; empty without such a reason. An active intent carries its own reason; one
 * that ended unpaid has the strongest of those known at its end and since. The reason stays when another collection pays
 * the order, because the guest may have paid twice.
 */
export function unclearReason(
  intent: PaymentIntent,
  station: Pick<StationState, "unclearCollections" | "olderReasons">,
): UnclearReason | "" {
  const { intentId, orderId, status, moneyMayHaveMoved, reasonSinceEnd } = intent;
  if (status === "succeeded") return "";
  if (!isEnded(status)) return moneyMayHaveMoved;
  const sinceEnd = reasonSinceEnd === "" ? [] : [{ orderId, intentId, reason: reasonSinceEnd }];
  // For an intent that has left the station's state, the station may have a newer reason than the audit log.
  const known = [...station.olderReasons, ...station.unclearCollections].filter((other) => other.intentId === intentId);
  return strongestUnclear([...sinceEnd, ...known])?.reason ?? "";
}
