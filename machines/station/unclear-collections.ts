/**
 * Unclear collections: they have ended, and money may have moved that was not settled. Another collection of such an order
 * needs the cashier's confirmation, so that a hasty retry does not charge a guest twice.
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
import type { MoneyConfirmation } from "./command.ts";
import { keepOlderReason, withoutOlderReason } from "./older-reasons.ts";
import type { StepInput } from "./outcome.ts";
import { isAtLeastAsStrong, isOfProvider, isSilence, leastNeeded } from "./reasons.ts";
import { findIntent, type OlderReason, type StationState, type UnclearCollection } from "./state.ts";

/** Why money may have moved for an intent that ends unpaid now, or undefined when there is no evidence of it. */
export function reasonAtEnd(intent: PaymentIntent, endReason: EndReason | ""): UnclearReason | undefined {
  if (isConfirmed(intent)) return "provider_confirmed";
  // A later decline does not cancel this evidence: it may be about another payment of the same QR.
  if (intent.moneyMayHaveMoved !== "") return intent.moneyMayHaveMoved;
  if (intent.presentedAtMs === null) return undefined;
  // A companion that fetched the collection and has sent no report may have charged the guest's card.
  if (intent.route !== "dynamic_qr") return intent.reportCount === 0 ? "handoff_presented" : undefined;
  const wasDeclined = (PROVIDER_DECLINES as readonly string[]).includes(endReason);
  return wasDeclined ? undefined : "qr_presented";
}

/** A reason of an ended collection, and how it relates to what the cashier has already confirmed. */
interface AddedReason {
  readonly reason: UnclearReason;
  readonly atMs: number;
  /** The reason asserts a new payment, so no earlier confirmation covers it. */
  readonly isNewPayment?: boolean;
  /** The reason of the same payment before the end. A confirmation of that reason also covers this one. */
  readonly knownAs?: UnclearReason | undefined;
}

/**
 * The station with one more reason, unless its order is paid or voided. Other reasons of the same intent stay, except that any
 * new reason replaces the one for a silent device. At the bound the station forgets one reason and keeps the id of its order,
 * so that the order still counts as unclear. It forgets last what the active collection must confirm, then reported payments.
 */
export function addUnclear(
  state: StationState,
  { orderId, intentId }: CollectionOfOrder,
  { reason, atMs, isNewPayment = false, knownAs }: AddedReason,
): StationState {
  if (isClosed(state, orderId)) return state;
  const ofIntent = state.unclearCollections.filter((other) => other.intentId === intentId);
  // A repeated reason of the same intent is nothing new: the cashier's confirmation stays.
  const known = ofIntent.find((other) => other.reason === reason) ?? ofIntent.find((other) => other.reason === knownAs);
  const isNew = isNewPayment || known === undefined;
  const lastReasonNumber = isNew ? nextReasonNumber(state, atMs) : lastNumber(state);
  const added: UnclearCollection = isNew
    ? { orderId, intentId, reason, reasonNumber: lastReasonNumber }
    : { ...known, reason };
  const others = state.unclearCollections.filter(
    (other) => other.intentId !== intentId || (other.reason !== reason && !isSilence(other.reason)),
  );
  const all = [...others, added];
  const waits = (other: UnclearCollection): boolean => state.intent !== null && isUnconfirmed(other, state.intent);
  const forgotten = all.length > STATE_LIMITS.unclearCollections ? leastNeeded(all, waits) : undefined;
  if (forgotten === undefined) return { ...state, unclearCollections: all, lastReasonNumber };
  const unclearCollections = all.filter((other) => other !== forgotten);
  return {
    ...state,
    unclearCollections,
    lastReasonNumber,
    unclearForgottenThrough: Math.max(state.unclearForgottenThrough, forgotten.orderId),
  };
}

/** The station after the cashier has confirmed, for this intent, all reasons of its order that are known now. */
export function confirmUnclear(state: StationState, { intentId, orderId }: CollectionOfOrder): StationState {
  const unclearCollections = state.unclearCollections.map((unclear) =>
    unclear.orderId === orderId ? { ...unclear, confirmedFor: intentId } : unclear,
  );
  return { ...state, unclearCollections };
}

const lastNumber = ({ lastReasonNumber = 0 }: Pick<StationState, "lastReasonNumber">): number => lastReasonNumber;

/** The number of a new reason. It is not below the time, so numbers also grow when the log is lost and the station begins again. */
export function nextReasonNumber(state: Pick<StationState, "lastReasonNumber">, atMs: number): number {
  return Math.max(lastNumber(state) + 1, atMs);
}

/** The number that covers all reasons of an order that are known now. A forgotten reason may have any number. */
export function newestReasonNumber(
  { unclearCollections, unclearForgottenThrough, ...state }: ReasonNumbers,
  orderId: number,
): number {
  if (orderId <= unclearForgottenThrough) return lastNumber(state);
  return Math.max(0, ...unclearCollections.filter((one) => one.orderId === orderId).map((one) => one.reasonNumber));
}

export type ReasonNumbers = Pick<StationState, "unclearCollections" | "unclearForgottenThrough" | "lastReasonNumber">;

/** Whether a confirmation covers a reason with this number. Without a number, it covers all. */
export function isCovered(
  { confirmsMoneyMayHaveMoved, confirmedReasonNumber }: MoneyConfirmation,
  reasonNumber: number,
): boolean {
  if (confirmsMoneyMayHaveMoved !== true) return false;
  return confirmedReasonNumber === undefined || reasonNumber <= confirmedReasonNumber;
}

/**
 * What the cashier must confirm before an active intent is settled or handed to a device: the strongest reason of an earlier
 * collection of its order that the cashier has not confirmed for this intent, and that this command does not confirm.
 */
export function unclearToConfirm(
  { unclearCollections }: Pick<StationState, "unclearCollections">,
  intent: CollectionOfOrder,
  confirmation: MoneyConfirmation = {},
): UnclearCollection | undefined {
  const unconfirmed = unclearCollections.filter((unclear) => isUnconfirmed(unclear, intent));
  return strongestUnclear(unconfirmed.filter(({ reasonNumber }) => !isCovered(confirmation, reasonNumber)));
}

/** Whether the station withholds an intent that its device has not fetched: an earlier collection may have charged the guest. */
export function isHeldBack(station: Pick<StationState, "unclearCollections">, intent: PaymentIntent): boolean {
  return intent.status === "created" && unclearToConfirm(station, intent) !== undefined;
}

type CollectionOfOrder = Pick<PaymentIntent, "intentId" | "orderId">;

function isUnconfirmed(unclear: UnclearCollection, { intentId, orderId }: CollectionOfOrder): boolean {
  return unclear.orderId === orderId && unclear.intentId !== intentId && unclear.confirmedFor !== intentId;
}

/**
 * The station after evidence that money may have moved for an ended intent. The order gets the reason unless it is paid or
 * voided. The intent always gets the reason, even after it has left the state, unless it has a stronger one.
 */
export function addLateReason(
  state: StationState,
  intent: PaymentIntent,
  late: Omit<AddedReason, "atMs">,
  { recalledOrder, atMs }: Pick<StepInput, "recalledOrder" | "atMs">,
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
  return isPaidOrVoided ? named : addUnclear(named, intent, { ...late, atMs });
}

/** Whether a cashier must confirm more than before. */
export function needsConfirmationAgain(before: StationState, after: StationState): boolean {
  const known = new Set(unconfirmedKeys(before));
  return unconfirmedKeys(after).some((key) => !known.has(key));
}

function unconfirmedKeys({ unclearCollections }: StationState): readonly string[] {
  const unconfirmed = unclearCollections.filter(({ confirmedFor }) => confirmedFor === undefined);
  return unconfirmed.map(({ intentId, reason }) => `${intentId} ${reason}`);
}

/**
 * The station after the device of an ended intent has reported that it took no money, or undefined when that changes nothing.
 * The report removes only the reason for the device's silence. The reason of an earlier report stays.
 */
export function endSilence(state: StationState, intent: PaymentIntent): StationState | undefined {
  return withoutReasons(state, intent.intentId, isSilence);
}

/**
 * The station after a provider has reported that no money moved for an ended intent, or undefined when that changes nothing. A
 * later assertion of the provider counts again.
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

/** The station without the unclear collections of a paid or voided order. */
export function dropUnclear(state: StationState, orderId: number): StationState {
  const unclearCollections = state.unclearCollections.filter((unclear) => unclear.orderId !== orderId);
  return unclearCollections.length === state.unclearCollections.length ? state : { ...state, unclearCollections };
}

/** Whether money may have moved for an order, as far as the station knows. A forgotten reason may belong to the order. */
export function isUnclear(state: StationState, orderId: number): boolean {
  return orderId <= state.unclearForgottenThrough || unclearOfOrder(state, orderId) !== undefined;
}

/** The collection that a person must know first: the newest of those with the strongest reason. */
export function strongestUnclear<T extends OlderReason>(unclearCollections: readonly T[]): T | undefined {
  return unclearCollections.reduce<T | undefined>(
    (strongest, unclear) => (isAtLeastAsStrong(unclear.reason, strongest?.reason ?? "") ? unclear : strongest),
    undefined,
  );
}

/**
 * The unclear collection that the order's next collection reports, or undefined when the station knows none that this command
 * does not confirm.
 */
export function unclearOfOrder(
  { unclearCollections }: Pick<StationState, "unclearCollections">,
  orderId: number,
  confirmation: MoneyConfirmation = {},
): UnclearCollection | undefined {
  return strongestUnclear(
    unclearCollections.filter((one) => one.orderId === orderId && !isCovered(confirmation, one.reasonNumber)),
  );
}

/**
 * Why money may have moved without being settled, or empty. An active intent has one reason. An intent that ended unpaid has
 * the strongest one, from its end or later. The reason stays when another collection pays the order, because the guest may
 * have paid twice.
 */
export function unclearReason(
  intent: PaymentIntent,
  station: Pick<StationState, "unclearCollections" | "olderReasons">,
): UnclearReason | "" {
  const { intentId, orderId, status, moneyMayHaveMoved, reasonSinceEnd } = intent;
  if (status === "succeeded") return "";
  if (!isEnded(status)) return moneyMayHaveMoved;
  const sinceEnd = reasonSinceEnd === "" ? [] : [{ orderId, intentId, reason: reasonSinceEnd }];
  // For an intent that has left the state, the station may know a newer reason than the audit log.
  const known = [...station.olderReasons, ...station.unclearCollections].filter((other) => other.intentId === intentId);
  return strongestUnclear([...sinceEnd, ...known])?.reason ?? "";
}
