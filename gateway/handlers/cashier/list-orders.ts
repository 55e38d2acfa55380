/** A station's orders, newest first. */
import type { z } from "zod";
import { listOrders } from "../../../services/bus/messages/settlement.ts";
import type { ordersQuerySchema } from "../../contract/cashier.ts";
import { ok, type SessionHandler } from "../context.ts";
import { ownStation } from "../own-station.ts";
import { orderWire } from "./order-wire.ts";

export const listCashierOrders: SessionHandler<undefined, z.infer<typeof ordersQuerySchema>> = async (context) => {
  const { stationId } = ownStation(context);
  const { orders } = await context.deps.bus.call(listOrders, { caller: context.caller, stationId, ...context.query });
  return ok({ orders: orders.map(orderWire) });
};
