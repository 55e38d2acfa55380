/** The orders that an issue's payment can pay: a person chooses one, because people know numbers of orders and not ids. */
import { z } from "zod";
import * as bus from "../../../services/bus/messages/payable-orders.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { reconciliationRoute } from "../../http/route.ts";
import { idSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { ISSUE_CONFLICT_DESCRIPTION } from "./issues.ts";

const payableOrderSchema = z
  .object({
    order_id: idSchema,
    order_display_number: idSchema.meta({ description: "The number that tills and displays show." }),
    station_id: idSchema,
    opened_at: timestampSchema,
  })
  .meta({ id: "PayableOrder" });
const payableOrdersSchema = z.object({
  orders: z.array(payableOrderSchema).meta({ description: `The newest first, up to ${bus.LISTED_PAYABLE_ORDERS}.` }),
});

/** Errors: `not_found`, `conflict` with a reason. */
const listPayableOrders: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { orders } = await deps.bus.call(bus.listPayableOrders, { caller, issueId: context.id("issue_id") });
  return ok({
    orders: orders.map(({ orderId, orderDisplayNumber, stationId, openedAtMs }) => ({
      order_id: orderId,
      order_display_number: orderDisplayNumber,
      station_id: stationId,
      opened_at: toTimestamp(openedAtMs),
    })),
  });
};

export const payableOrderRoutes = [
  reconciliationRoute({
    method: "GET",
    path: "/api/reconciliation/v1/issues/{issue_id}/payable-orders/",
    operation: "listPayableOrders",
    summary: "List the orders that an issue's payment can pay",
    description: `The open orders with the payment's amount and currency, at stations of the same filial and mode. An order may be in a collection: an attribution is refused then. ${ISSUE_CONFLICT_DESCRIPTION}`,
    errors: ["not_found", "conflict"],
    replies: { 200: { description: "The newest first.", schema: payableOrdersSchema } },
    handler: listPayableOrders,
  }),
];
