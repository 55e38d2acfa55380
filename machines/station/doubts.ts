/**
 * Doubts: orders for which money may have moved without being settled. Another collection of such an order needs the
 * cashier's explicit word, so that no guest is charged twice by a retry that nobody thought about.
 */
import { type EndReason, isConfirmed, type PaymentIntent, PROVIDER_DECLINES } from "../payment-intent.ts";
import { STATE_LIMITS } from "../settings.ts";
import type { Doubt, DoubtReason, StationState } from "./state.ts";

/** Why money may have moved for an intent that ends unpaid now, or undefined when nothing says so. */
export function doubtAtEnd(intent: PaymentIntent, endReason: EndReason | ""): DoubtReason | undefined {
  if (isConfirmed(intent)) return "provider_confirmed";
  if (intent.route === "dynamic_qr") {
    const wasDeclined = (PROVIDER_DECLINES as readonly string[]).includes(endReason);
    return intent.presentedAtMs === null || wasDeclined ? undefined : "qr_presented";
  }
  const outcomes = intent.reports.map((report) => report.outcome);
  if (outcomes.includes("reported_success")) return "success_reported";
  return outcomes.includes("reported_unknown") ? "outcome_unknown" : undefined;
}

/** The station with one more doubt, the oldest dropped at the bound; a paid or voided order is in no doubt. */
export function addDoubt(state: StationState, doubt: Doubt): StationState {
  const order = state.knownOrders.find((known) => known.orderId === doubt.orderId);
  if (order !== undefined && order.status !== "open") return state;
  const others = state.doubts.filter((other) => other.intentId !== doubt.intentId);
  return { ...state, doubts: [...others, doubt].slice(-STATE_LIMITS.doubts) };
}

/** The station without doubts about an order: it is paid or voided. */
export function dropDoubts(state: StationState, orderId: number): StationState {
  const doubts = state.doubts.filter((doubt) => doubt.orderId !== orderId);
  return doubts.length === state.doubts.length ? state : { ...state, doubts };
}

/** The newest doubt about an order. */
export function newestDoubt(state: StationState, orderId: number): Doubt | undefined {
  return state.doubts.findLast((doubt) => doubt.orderId === orderId);
}
