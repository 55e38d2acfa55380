/**
 * Changes to an open order. They are allowed while a collection of it is under way: the payment seam then finds that the
 * order is no longer what the guest was shown, and refuses.
 */
import { isDeepStrictEqual } from "node:util";
import type { changeOrder, Order, voidOrder } from "../bus/messages/orders.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { Transaction } from "../db/pool.ts";
import { actorOf, requireCollector, requireOpenStation } from "./access.ts";
import type { SettlementDeps } from "./deps.ts";
import { orderTotal } from "./order-total.ts";
import { lockOrder } from "./sql/read-orders.ts";
import { findStation, markVoided, replaceLines } from "./sql/write-orders.ts";
import { noteForStation, tellStation } from "./station-notice.ts";

/**
 * Replaces the lines. The same lines again change nothing, so that a repetition is harmless. Refuses with
 * `permission_denied`, `not_found`, `conflict` (paid or voided), `station_suspended`, `station_closed` or
 * `invalid_request`.
 */
export async function changeLines(
  deps: SettlementDeps,
  request: RequestOf<typeof changeOrder>,
): Promise<ReplyOf<typeof changeOrder>> {
  const { caller, orderId, lines } = request;
  requireCollector(caller);
  const order = await deps.database.begin(async (sql) => {
    const before = await lockKnownOrder(sql, { organizationId: caller.organizationId, orderId });
    if (before.status !== "open") throw closedOrder(before);
    if (isDeepStrictEqual(before.lines, lines)) return before;
    const { organizationId } = caller;
    const station = await findStation(sql, { organizationId, stationId: before.stationId });
    if (station === undefined) throw new RefusedError({ code: "not_found" });
    requireOpenStation(station);
    const total = orderTotal(lines, before.currency);
    if ("errors" in total) throw new RefusedError({ code: "invalid_request", errors: [...total.errors] });
    const changed = await replaceLines(sql, before, { lines, totalMinor: total.totalMinor });
    await noteForStation(sql, changed, actorOf(caller));
    return changed;
  });
  return { order, barrier: await tellStation(deps, order.stationId) };
}

/**
 * Voids the order, also at a suspended or closed station, so that nothing is left open there; voiding it again changes
 * nothing. Refuses with `permission_denied`, `not_found` or `conflict` (paid).
 */
export async function voidOpenOrder(
  deps: SettlementDeps,
  request: RequestOf<typeof voidOrder>,
): Promise<ReplyOf<typeof voidOrder>> {
  const { caller, orderId } = request;
  requireCollector(caller);
  const order = await deps.database.begin(async (sql) => {
    const before = await lockKnownOrder(sql, { organizationId: caller.organizationId, orderId });
    if (before.status === "voided") return before;
    if (before.status === "paid") throw closedOrder(before);
    const voided = await markVoided(sql, before);
    await noteForStation(sql, voided, actorOf(caller));
    return voided;
  });
  return { order, barrier: await tellStation(deps, order.stationId) };
}

async function lockKnownOrder(
  sql: Transaction,
  key: { readonly organizationId: number; readonly orderId: number },
): Promise<Order> {
  const order = await lockOrder(sql, key);
  if (order === undefined) throw new RefusedError({ code: "not_found" });
  return order;
}

function closedOrder(order: Order): RefusedError {
  const detail = order.status === "paid" ? "This order is paid." : "This order is voided.";
  return new RefusedError({ code: "conflict", detail });
}
