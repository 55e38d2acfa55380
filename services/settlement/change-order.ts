/**
 * Changes to an open order. They are allowed while a collection of it is under way: the payment seam then finds that the
 * order is no longer what the guest was shown, and refuses.
 */
import { isDeepStrictEqual } from "node:util";
import type { changeOrderLines, Order, voidOrder } from "../bus/messages/settlement.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { Transaction } from "../db/pool.ts";
import { actorOf, requireCollector } from "./access.ts";
import type { SettlementDeps } from "./deps.ts";
import { orderTotal } from "./order-total.ts";
import { findOrder, lockOrder } from "./sql/read-orders.ts";
import { deleteLines, insertLines, markVoided, updateTotal } from "./sql/write-orders.ts";
import { noteForStation, tellStation } from "./station-notice.ts";

interface OrderKey {
  readonly organizationId: number;
  readonly orderId: number;
}

/**
 * Replaces the lines. The same lines again change nothing, so that a repetition is harmless. Refuses with
 * `permission_denied`, `not_found`, `conflict` (paid or voided) or `invalid_request`.
 */
export async function changeLines(
  deps: SettlementDeps,
  request: RequestOf<typeof changeOrderLines>,
): Promise<ReplyOf<typeof changeOrderLines>> {
  const { caller, orderId, lines } = request;
  requireCollector(caller);
  const order = await deps.database.begin(async (sql) => {
    const key = { organizationId: caller.organizationId, orderId };
    const before = await lockKnownOrder(sql, key);
    if (before.status !== "open") throw closedOrder(before);
    if (isDeepStrictEqual(before.lines, lines)) return before;
    const total = orderTotal(lines, before.currency);
    if ("errors" in total) throw new RefusedError({ code: "invalid_request", errors: [...total.errors] });
    await deleteLines(sql, orderId);
    await insertLines(sql, orderId, lines);
    await updateTotal(sql, orderId, total.totalMinor);
    const changed = await readBack(sql, key);
    await noteForStation(sql, changed, actorOf(caller));
    return changed;
  });
  return { order, barrier: await tellStation(deps, order.stationId) };
}

/**
 * Voids the order; voiding it again changes nothing. Refuses with `permission_denied`, `not_found` or `conflict` (paid).
 */
export async function voidOpenOrder(
  deps: SettlementDeps,
  request: RequestOf<typeof voidOrder>,
): Promise<ReplyOf<typeof voidOrder>> {
  const { caller, orderId } = request;
  requireCollector(caller);
  const order = await deps.database.begin(async (sql) => {
    const key = { organizationId: caller.organizationId, orderId };
    const before = await lockKnownOrder(sql, key);
    if (before.status === "voided") return before;
    if (before.status === "paid") throw closedOrder(before);
    await markVoided(sql, orderId);
    const voided = await readBack(sql, key);
    await noteForStation(sql, voided, actorOf(caller));
    return voided;
  });
  return { order, barrier: await tellStation(deps, order.stationId) };
}

async function lockKnownOrder(sql: Transaction, key: OrderKey): Promise<Order> {
  const order = await lockOrder(sql, key);
  if (order === undefined) throw new RefusedError({ code: "not_found" });
  return order;
}

async function readBack(sql: Transaction, key: OrderKey): Promise<Order> {
  const order = await findOrder(sql, key);
  if (order === undefined) throw new Error("An order that was just written cannot be read.");
  return order;
}

function closedOrder(order: Order): RefusedError {
  const detail = order.status === "paid" ? "This order is paid." : "This order is voided.";
  return new RefusedError({ code: "conflict", detail });
}
