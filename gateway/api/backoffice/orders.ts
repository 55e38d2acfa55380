/** The orders of the owner's organization. Only cashiers write orders. */
import { z } from "zod";
import * as orders from "../../../services/bus/messages/orders.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { requireOwnStation } from "../../http/own-station.ts";
import { pageBeforeQuery, pageOnWire, queryId, stationsOfList } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { getOrder, orderSchema, orderStatusSchema, ordersSchema, readOrderJson } from "../cashier/orders.ts";

const ordersQuerySchema = z.strictObject({
  station_id: queryId().optional().meta({
    description: "Only orders of this station, by its id in the list of stations; of all stations when left out.",
  }),
  status: orderStatusSchema.optional().meta({ description: "Only orders of this status; all when left out." }),
  ...pageBeforeQuery,
});

/** Error: `not_found` for another organization's station. */
const listOrders: SessionHandler<undefined, z.infer<typeof ordersQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { station_id: stationId, status, before_id: beforeId, limit } = query;
  if (stationId !== undefined) await requireOwnStation(context, stationId);
  const found = await deps.bus.call(orders.listOrders, { caller, stationId, status, beforeId, limit });
  const stationOf = stationsOfList(deps);
  const json = found.orders.map((order) => readOrderJson(order, stationOf(order.stationId)));
  const { page, hasMore } = pageOnWire(json, found.hasMore);
  return ok({ orders: page, has_more: hasMore });
};

const root = "/api/backoffice/v1/orders/";

export const backofficeOrderRoutes = [
  backofficeRoute({
    method: "GET",
    path: root,
    operation: "listOrders",
    summary: "List the orders",
    description:
      "The orders of all stations or of one. Without `before_id`, the newest orders. Only cashiers write orders.",
    query: ordersQuerySchema,
    replies: { 200: { description: "Newest first.", schema: ordersSchema } },
    errors: ["not_found"],
    handler: listOrders,
  }),
  backofficeRoute({
    method: "GET",
    path: `${root}{order_id}/`,
    operation: "getOrder",
    summary: "Read an order",
    description: "The order with its lines and with the transaction that paid it.",
    replies: { 200: { description: "The order.", schema: orderSchema } },
    errors: ["not_found"],
    handler: getOrder,
  }),
];
