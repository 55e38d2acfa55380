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
  const wasDeclined = (PROVIDER_DECLINES as readonly string[]).includes(endReason);
  const wasShown = intent.route === "dynamic_qr" && intent.presentedAtMs !== null;
  return wasShown && !wasDeclined ? "qr_presented" : undefined;
}

/**
 * The station with one more doubt; a paid or voided order is in no doubt. What was said before about the same intent stays
 * beside it: one reason does not take another one back. At the bound the oldest is pushed out, and of it only its order's
 * id is kept, so that what is not known any more is not taken for clear.
 */
export function addDoubt(state: StationState, doubt: Doubt): StationState {
  if (isClosed(state, doubt.orderId)) return state;
  const others = state.doubts.filter((other) => other.intentId !== doubt.intentId || other.reason !== doubt.reason);
  const doubts = [...others, doubt].slice(-STATE_LIMITS.doubts);
  const forgotten = others.slice(0, others.length + 1 - doubts.length).map(({ orderId }) => orderId);
  return { ...state, doubts, doubtsForgottenThrough: Math.max(state.doubtsForgottenThrough, ...forgotten) };
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
  return orderId <= state.doubtsForgottenThrough || newestDoubt(state, orderId) !== undefined;
}

/** The newest doubt about an order that is still known. */
export function newestDoubt(state: StationState, orderId: number): Doubt | undefined {
  return state.doubts.findLast((doubt) => doubt.orderId === orderId);
}
