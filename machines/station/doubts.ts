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
import type { Doubt, StationState } from "./state.ts";

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

/**
 * The station with one more doubt; a paid or voided order is in no doubt. What was said before about the same intent stays
 * beside it: one reason does not take another one back, but a report takes the place of the silence before it. At the bound
 * the oldest is pushed out, and of it only its order's id is kept, so that what is not known any more is not taken for clear.
 */
export function addDoubt(state: StationState, added: Doubt): StationState {
  if (isClosed(state, added.orderId)) return state;
  // The same reason of the same intent once more is nothing new: what a cashier has confirmed of it stays confirmed.
  const isSame = (other: Doubt): boolean => other.intentId === added.intentId && other.reason === added.reason;
  const doubt = { ...added, ...state.doubts.find(isSame) };
  const others = state.doubts.filter(
    (other) => other.intentId !== doubt.intentId || (other.reason !== doubt.reason && !isSilence(other)),
  );
  const [oldest] = others;
  if (oldest === undefined || others.length < STATE_LIMITS.doubts) return { ...state, doubts: [...others, doubt] };
  // What the collection under way has yet to confirm must not leave, while anything else can.
  const waits = (other: Doubt): boolean => state.intent !== null && isUnconfirmed(other, state.intent);
  const forgotten = others.find((other) => !waits(other)) ?? oldest;
  const doubts = [...others.filter((other) => other !== forgotten), doubt];
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
 * What the cashier has to confirm before an active intent is settled or handed to anybody: the strongest reason that an
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
 * unless it is paid or voided; the intent itself keeps it in any case, unless it has a stronger one.
 */
export function addLateReason(state: StationState, intent: PaymentIntent, reason: DoubtReason): StationState {
  const { intentId, orderId } = intent;
  const ended = state.ended.map((other) =>
    other.intentId === intentId && isAtLeastAsStrong(reason, other.reasonSinceEnd)
      ? { ...other, reasonSinceEnd: reason }
      : other,
  );
  return addDoubt({ ...state, ended }, { orderId, intentId, reason });
}

/**
 * The station once the device of an ended intent has reported that it took no money, or undefined when that changes
 * nothing. It answers the silence alone: the reason of an earlier report stays.
 */
export function endSilence(state: StationState, intent: PaymentIntent): StationState | undefined {
  return withoutReasons(state, intent.intentId, (reason) => reason === "handoff_presented");
}

/** The station once a provider has said that nothing moved for an ended intent, or undefined when that changes nothing. */
export function endProviderReasons(state: StationState, intentId: number): StationState | undefined {
  return withoutReasons(state, intentId, (reason) => PROVIDER_REASONS.has(reason));
}

function withoutReasons(
  state: StationState,
  intentId: number,
  isCleared: (reason: DoubtReason) => boolean,
): StationState | undefined {
  const doubts = state.doubts.filter((doubt) => doubt.intentId !== intentId || !isCleared(doubt.reason));
  const isMarked = (other: PaymentIntent): boolean =>
    other.intentId === intentId && other.reasonSinceEnd !== "" && isCleared(other.reasonSinceEnd);
  if (doubts.length === state.doubts.length && !state.ended.some(isMarked)) return undefined;
  const ended = state.ended.map((other) => (isMarked(other) ? { ...other, reasonSinceEnd: "" as const } : other));
  return { ...state, doubts, ended };
}

/** The reasons about a provider's payment; the others are about a companion. */
const PROVIDER_REASONS: ReadonlySet<DoubtReason> = new Set([
  "qr_presented",
  "provider_confirmed",
  "late_money",
  "money_differs",
]);

function isSilence({ reason }: Doubt): boolean {
  return reason === "handoff_presented";
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

/**
 * How strong a reason is: 2 is money that differs from what was asked for, 1 a report or a confirmation that the guest has
 * paid, 0 an unknown outcome.
 */
const WEIGHTS: Readonly<Record<DoubtReason, number>> = {
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

function isAtLeastAsStrong(reason: DoubtReason, other: DoubtReason | ""): boolean {
  return other === "" || WEIGHTS[reason] >= WEIGHTS[other];
}

/** The doubt that a person must know first: the strongest one, of several the newest. */
export function strongestDoubt(doubts: readonly Doubt[]): Doubt | undefined {
  return doubts.reduce<Doubt | undefined>(
    (strongest, doubt) =>
      strongest === undefined || WEIGHTS[doubt.reason] >= WEIGHTS[strongest.reason] ? doubt : strongest,
    undefined,
  );
}

/** The doubt about an order that its next collection names, while one is still known. */
export function doubtOfOrder({ doubts }: Pick<StationState, "doubts">, orderId: number): Doubt | undefined {
  return strongestDoubt(doubts.filter((doubt) => doubt.orderId === orderId));
}
