/** Reading orders: for cashiers and owners. */
import { BOUNDS } from "../bus/bounds.ts";
import type { getOrder, listOrders } from "../bus/messages/orders.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import { firstPage } from "../bus/page.ts";
import { RefusedError } from "../bus/refusals.ts";
import { requireReader } from "./access.ts";
import type { SettlementDeps } from "./deps.ts";
import { findOrder, selectOrders } from "./sql/read-orders.ts";

/** Refuses with `permission_denied`, or with `not_found`, also for another organization's order. */
export async function get(
  deps: SettlementDeps,
  { caller, orderId }: RequestOf<typeof getOrder>,
): Promise<ReplyOf<typeof getOrder>> {
  requireReader(caller);
  const order = await findOrder(deps.database, { organizationId: caller.organizationId, orderId });
  if (order === undefined) throw new RefusedError({ code: "not_found" });
  return { order };
}

/** Newest first; empty for a station that is unknown or another organization's. Refuses with `permission_denied`. */
export async function list(
  deps: SettlementDeps,
  { caller, stationId, status, beforeId, limit = BOUNDS.listedUnlessAsked }: RequestOf<typeof listOrders>,
): Promise<ReplyOf<typeof listOrders>> {
  requireReader(caller);
  const { organizationId } = caller;
  const filter = { organizationId, stationId, status, beforeId, limit: limit + 1 };
  const { page, hasMore } = firstPage(await selectOrders(deps.database, filter), limit);
  return { orders: page, hasMore };
}
