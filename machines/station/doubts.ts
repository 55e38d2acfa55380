/**
 * Doubts: orders for which money may have moved without being settled. Another collection of such an order needs the
 * cashier's explicit word, so that no guest is charged twice by a retry that nobody thought about.
 */
import {
  type DoubtReason,
  type EndReason,
  isConfirmed,
  type PaymentIntent,
  PROVIDER_DECLINES,
} from "../payment-intent.ts";
import { STATE_LIMITS } from "../settings.ts";
import { keepOlderReason, withoutOlderReason } from "./older-reasons.ts";
import type { StepInput } from "./outcome.ts";
import { isAtLeastAsStrong, isOfProvider, isSilence, leastNeeded } from "./reasons.ts";
import { type Doubt, findIntent, type StationState } from "./state.ts";

/** Why money may have moved for an intent that ends unpaid now, or undefined when nothing says so. */
export function doubtAtEnd(intent: PaymentIntent, endReason: EndReason | ""): DoubtReason | undefined {
  if (isConfirmed(intent)) return "provider_confirmed";
  // Whatever has said that money may have moved outlives a later decline: another payment of the same QR may be meant.
  if (intent.moneyMayHaveMoved !== "") return intent.moneyMayHaveMoved;
  if (intent.presentedAtMs === null) return undefined;
  // A companion that has fetched the collection and is silent may have taken the guest's card.
  if (intent.route !== "dynamic_qr") return intent.reportCount === 0 ? "handoff_presented" : undefined;
  const wasDeclined = (PROVIDER_DECLINES as readonly string[]).includes(endReason);
  return wasDeclined ? undefined : "qr_presented";
}

/** How a doubt stands to what the cashier has confirmed already. */
export interface LateReason {
  readonly reason: DoubtReason;
  /** It asserts a payment that was not asserted before: the cashier has not confirmed it, whatever else was confirmed. */
  readonly isNewPayment?: boolean;
  /** The reason with which the same payment was named before the end: a confirmation of that one holds for it too. */
  readonly knownAs?: DoubtReason | undefined;
}

/**
 * The station with one more doubt; a paid or voided order is in no doubt. What was said before about the same intent stays
 * beside it: one reason does not take another one back, but a report takes the place of the silence before it. At the bound
 * one is pushed out, and of it only its order's id is kept, so that what is not known any more is not taken for clear. What the
 * collection under way has to confirm stays longest, then a reported payment.
 */
export function addDoubt(
  state: StationState,
  { orderId, intentId }: CollectionOfOrder,
  { reason, isNewPayment = false, knownAs }: LateReason,
): StationState {
  if (isClosed(state, orderId)) return state;
  const ofIntent = state.doubts.filter((other) => other.intentId === intentId);
  // The same reason of the same intent once more is nothing new: what a cashier has confirmed of it stays confirmed.
  const known = ofIntent.find((other) => other.reason === reason) ?? ofIntent.find((other) => other.reason === knownAs);
  const confirmedFor = isNewPayment ? undefined : known?.confirmedFor;
  const doubt: Doubt = { orderId, intentId, reason, ...(confirmedFor === undefined ? {} : { confirmedFor }) };
  const others = state.doubts.filter(
    (other) => other.intentId !== intentId || (other.reason !== reason && !isSilence(other.reason)),
  );
  const all = [...others, doubt];
  const waits = (other: Doubt): boolean => state.intent !== null && isUnconfirmed(other, state.intent);
  const forgotten = all.length > STATE_LIMITS.doubts ? leastNeeded(all, waits) : undefined;
  if (forgotten === undefined) return { ...state, doubts: all };
  const doubts = all.filter((other) => other !== forgotten);
  return { ...state, doubts, doubtsForgottenThrough: Math.max(state.doubtsForgottenThrough, forgotten.orderId) };
}

/** The station once the cashier has confirmed for this intent all that is known now about its order. */
export function confirmDoubts(state: StationState, { intentId, orderId }: CollectionOfOrder): StationState {
  const doubts = state.doubts.map((doubt) =>
    doubt.orderId === orderId ? { ...doubt, confirmedFor: intentId } : doubt,
  );
  return { ...state, doubts };
}

/**
 * What the cashier has to confirm before an active intent is settled or handed to a device: the strongest reason that an
 * earlier collection of its order has got since this one was created, or since the last confirmation for it.
 */
export function unconfirmedDoubt(
  { doubts }: Pick<StationState, "doubts">,
  intent: CollectionOfOrder,
): Doubt | undefined {
  return strongestDoubt(doubts.filter((doubt) => isUnconfirmed(doubt, intent)));
}

/** Whether a hand-off that its device has not fetched yet is held back: the guest may have paid by an earlier collection. */
export function isHeldBack(station: Pick<StationState, "doubts">, intent: PaymentIntent): boolean {
  return intent.status === "created" && unconfirmedDoubt(station, intent) !== undefined;
}

type CollectionOfOrder = Pick<PaymentIntent, "intentId" | "orderId">;

function isUnconfirmed(doubt: Doubt, { intentId, orderId }: CollectionOfOrder): boolean {
  return doubt.orderId === orderId && doubt.intentId !== intentId && doubt.confirmedFor !== intentId;
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
  return isPaidOrVoided ? named : addDoubt(named, intent, late);
}

/** Whether a cashier has more to confirm than before. */
export function asksAnew(before: StationState, after: StationState): boolean {
  const known = new Set(unconfirmedNames(before));
  return unconfirmedNames(after).some((name) => !known.has(name));
}

function unconfirmedNames({ doubts }: StationState): readonly string[] {
  const unconfirmed = doubts.filter(({ confirmedFor }) => confirmedFor === undefined);
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
 * The station once a provider has said that nothing moved for an ended intent, or undefined when that changes nothing. What
 * the provider asserts afterwards counts anew.
 */
export function endProviderReasons(state: StationState, intentId: number): StationState | undefined {
  return withoutReasons(state, intentId, isOfProvider);
}

function withoutReasons(
  state: StationState,
  intentId: number,
  isTakenBack: (reason: DoubtReason) => boolean,
): StationState | undefined {
  const doubts = state.doubts.filter((doubt) => doubt.intentId !== intentId || !isTakenBack(doubt.reason));
  const isMarked = (other: PaymentIntent): boolean =>
    other.intentId === intentId && other.reasonSinceEnd !== "" && isTakenBack(other.reasonSinceEnd);
  const olderReasons = withoutOlderReason(state, intentId, isTakenBack);
  const isSame = doubts.length === state.doubts.length && olderReasons.length === state.olderReasons.length;
  if (isSame && !state.ended.some(isMarked)) return undefined;
  const ended = state.ended.map((other) => (isMarked(other) ? { ...other, reasonSinceEnd: "" as const } : other));
  return { ...state, doubts, ended, olderReasons };
}

function isClosed({ knownOrders }: StationState, orderId: number): boolean {
  return knownOrders.some((known) => known.orderId === orderId && known.status !== "open");
}

/** The station without doubts about an order: it is paid or voided. */
export function dropDoubts(state: StationState, orderId: number): StationState {
  const doubts = state.doubts.filter((doubt) => doubt.orderId !== orderId);
  return doubts.length === state.doubts.length ? state : { ...state, doubts };
}

/** Whether money may have moved for an order as far as the station can tell: a doubt that was forgotten may be its. */
export function isInDoubt(state: StationState, orderId: number): boolean {
  return orderId <= state.doubtsForgottenThrough || doubtOfOrder(state, orderId) !== undefined;
}

/** The doubt that a person must know first: the strongest one, of several the newest. */
export function strongestDoubt(doubts: readonly Doubt[]): Doubt | undefined {
  return doubts.reduce<Doubt | undefined>(
    (strongest, doubt) => (isAtLeastAsStrong(doubt.reason, strongest?.reason ?? "") ? doubt : strongest),
    undefined,
  );
}

/** The doubt about an order that its next collection names, while one is still known. */
export function doubtOfOrder({ doubts }: Pick<StationState, "doubts">, orderId: number): Doubt | undefined {
  return strongestDoubt(doubts.filter((doubt) => doubt.orderId === orderId));
}
