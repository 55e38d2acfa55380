/** The open orders of a customer display: it shows the one that changed last, and the others wait. */
import { STATE_LIMITS } from "../settings.ts";
import type { ShownOrder, StationState } from "./state.ts";

/**
 * The station with this order on its display. The order that was shown before waits. It is shown later than the newest
 * collection was paid, also while the station's time stands still, so it ends the `paid` of that collection.
 */
export function showOrder(state: StationState, order: ShownOrder): StationState {
  const before = state.order === null ? state.waitingOrders : [...state.waitingOrders, state.order];
  const waitingOrders = without(before, order.orderId).slice(-STATE_LIMITS.waitingOrders);
  const [newest] = state.ended;
  const paidAtMs = newest?.status === "succeeded" ? (newest.endedAtMs ?? 0) : 0;
  const shownAtMs = Math.max(order.shownAtMs, paidAtMs + 1);
  return { ...state, order: { ...order, shownAtMs }, waitingOrders };
}

/**
 * The station without this order. If the display showed it, it shows the newest waiting order. That order ends a `paid` only
 * if the order before it has ended it.
 */
export function takeOrderOff(state: StationState, orderId: number): StationState {
  const { order: before } = state;
  if (before?.orderId !== orderId) return { ...state, waitingOrders: without(state.waitingOrders, orderId) };
  const next = state.waitingOrders.at(-1);
  const order = next === undefined ? null : { ...next, shownAtMs: Math.max(next.shownAtMs, before.shownAtMs) };
  return { ...state, order, waitingOrders: state.waitingOrders.slice(0, -1) };
}

function without(orders: readonly ShownOrder[], orderId: number): readonly ShownOrder[] {
  return orders.filter((order) => order.orderId !== orderId);
}
