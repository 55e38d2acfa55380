/** One order: read it, replace its lines, void it. A foreign order is `not_found`. */
import type { z } from "zod";
import { changeOrder, getOrder, type Order, voidOrder } from "../../../services/bus/messages/orders.ts";
import type { orderLinesBodySchema } from "../../contract/cashier.ts";
import { type HandlerDeps, ok, type SessionHandler } from "../../http/handler-context.ts";
import { type OrderWire, orderLinesFromWire, orderWire } from "./order-wire.ts";

export const getCashierOrder: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { order } = await deps.bus.call(getOrder, { caller, orderId: context.id("order_id") });
  return ok(orderWire(order, deps.station(order.stationId)));
};

/** A collection under way is not stopped: attesting it is refused with `order_changed`. Refusals: `conflict`, and the station's standing. */
export const changeCashierOrder: SessionHandler<z.infer<typeof orderLinesBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const orderId = context.id("order_id");
  // The typed amounts mean nothing without the order's currency, which never changes.
  const { order: before } = await deps.bus.call(getOrder, { caller, orderId });
  const lines = [...orderLinesFromWire(body, before.currency)];
  const { order } = await deps.bus.call(changeOrder, { caller, orderId, lines });
  return ok(changedOrderWire(deps, order));
};

/** Refusal: `conflict` for a paid or voided order. */
export const voidCashierOrder: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { order } = await deps.bus.call(voidOrder, { caller, orderId: context.id("order_id") });
  return ok(changedOrderWire(deps, order));
};

/** An order that was changed just now: without its station while that is not known to be current. */
function changedOrderWire(deps: HandlerDeps, order: Order): OrderWire {
  return orderWire(order, deps.isFresh(order.stationId) ? deps.station(order.stationId) : undefined);
}
