/** A station's orders, newest first. */
import type { z } from "zod";
import { listOrders } from "../../../services/bus/messages/orders.ts";
import type { ordersQuerySchema } from "../../contract/cashier.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { orderWire } from "./order-wire.ts";

export const listCashierOrders: SessionHandler<undefined, z.infer<typeof ordersQuerySchema>> = async (context) => {
  const station = await ownStation(context);
  const { stationId } = station;
  const { caller, deps, query } = context;
  const { status, before_id: beforeId, limit } = query;
  const { orders, hasMore } = await deps.bus.call(listOrders, { caller, stationId, status, beforeId, limit });
  return ok({ orders: orders.map((order) => orderWire(order, station)), has_more: hasMore });
};
