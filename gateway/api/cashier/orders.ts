/** Orders in the cashier's API: create, read, change and void. */
import { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import { ORDER_STATUSES, type StationState } from "../../../machines/station/state.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import type { FieldError } from "../../../services/bus/field-errors.ts";
import * as orders from "../../../services/bus/messages/orders.ts";
import { idempotencyHeaderSchema, idempotencyKey, sessionCommandId } from "../../http/command-id.ts";
import { ApiError, created, type HandlerDeps, ok, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { hasMoreBefore, pageBeforeQuery, pageOnWire } from "../../http/page.ts";
import { priceMinor, priceSchema } from "../../http/price.ts";
import { cashierRoute } from "../../http/route.ts";
import {
  amountSchema,
  currencySchema,
  idSchema,
  nameSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { paymentRouteSchema } from "./intent-json.ts";
import { UNCLEAR_DESCRIPTION, unclearCollectionSchema, unclearCollections } from "./unclear-collections.ts";

export const orderStatusSchema = z.enum(ORDER_STATUSES).meta({ id: "OrderStatus" });

/** With a check per field, so that an error names the field. */
const lineSchema = z
  .strictObject({
    item_id: idSchema.optional().meta({
      description:
        "An item of the station's catalogue, instead of name and price: the order takes the current name and price of the item.",
    }),
    name: nameSchema.optional().meta({ examples: ["Soup of the day"] }),
    quantity: z
      .int()
      .min(1)
      .max(BOUNDS.lineQuantity)
      .meta({ examples: [2] }),
    unit_amount: priceSchema.optional(),
  })
  .superRefine((line, context) => {
    for (const field of ["name", "unit_amount"] as const) {
      const isGiven = line[field] !== undefined;
      if (isGiven === (line.item_id === undefined)) continue;
      const message = isGiven ? "Cannot be given together with item_id." : "Is missing.";
      const params = { code: isGiven ? "does_not_fit" : "missing" };
      context.addIssue({ code: "custom", path: [field], message, params });
    }
  })
  .meta({
    description:
      "Either `item_id`, or `name` and `unit_amount`. To change an order, send its other lines unchanged, by name and price: a line with `item_id` takes the current price.",
  });

export const orderLinesBodySchema = z
  .strictObject({
    lines: z.array(lineSchema).max(BOUNDS.orderLines),
  })
  .meta({
    id: "OrderLines",
    examples: [
      {
        lines: [
          { name: "Soup of the day", quantity: 2, unit_amount: "12.50" },
          { item_id: 42, quantity: 1 },
        ],
      },
    ],
  });

const transactionSchema = z
  .object({
    transaction_id: idSchema,
    intent_id: idSchema,
    route: paymentRouteSchema,
    amount: amountSchema,
    currency: currencySchema,
    reference: z.string(),
    settled_at: timestampSchema,
  })
  .meta({ id: "Transaction" });

/** Every amount that a device shows comes from an order. */
export const orderSchema = z
  .object({
    order_id: idSchema,
    order_display_number: idSchema,
    station_id: idSchema,
    status: orderStatusSchema,
    revision: idSchema.meta({ description: "Grows with each change." }),
    currency: currencySchema,
    total: amountSchema,
    lines: z.array(
      z.object({ name: z.string(), quantity: z.int().min(1), unit_amount: amountSchema, line_amount: amountSchema }),
    ),
    transaction: transactionSchema.nullable().meta({ description: "The one sale that paid the order." }),
    unclear_collections: z.array(unclearCollectionSchema).meta({ description: UNCLEAR_DESCRIPTION }),
    opened_at: timestampSchema,
  })
  .meta({
    id: "Order",
    examples: [
      {
        order_id: 1200,
        order_display_number: 17,
        station_id: 1,
        status: "open",
        revision: 2,
        currency: "EUR",
        total: "25.00",
        lines: [{ name: "Soup of the day", quantity: 2, unit_amount: "12.50", line_amount: "25.00" }],
        transaction: null,
        unclear_collections: [],
        opened_at: "2026-11-20T12:00:00.000Z",
      },
    ],
  });

export const ordersSchema = z.object({ orders: z.array(orderSchema), has_more: hasMoreBefore });

const ordersQuerySchema = z.strictObject({
  status: orderStatusSchema.optional().meta({ description: "Only orders of this status; all when left out." }),
  ...pageBeforeQuery,
});

type OrderJson = z.infer<typeof orderSchema>;

/**
 * An order in JSON. Its unclear collections come from `station`. Without a station the list is empty: only the answer to a
 * change may leave it out, and a repetition of the change is answered like the first one.
 */
export function orderJson(order: orders.Order, station?: StationState): OrderJson {
  const unclear = station === undefined ? [] : unclearCollections(station);
  return {
    order_id: order.orderId,
    order_display_number: order.orderDisplayNumber,
    station_id: order.stationId,
    status: order.status,
    revision: order.revision,
    currency: order.currency,
    total: formatAmount(order.totalMinor, order.currency),
    lines: order.lines.map((line) => ({
      name: line.name,
      quantity: line.quantity,
      unit_amount: formatAmount(line.unitAmountMinor, order.currency),
      line_amount: formatAmount(BigInt(line.unitAmountMinor) * BigInt(line.quantity), order.currency),
    })),
    transaction: order.transaction === null ? null : transactionJson(order.transaction),
    unclear_collections: unclear.filter(({ order_id }) => order_id === order.orderId),
    opened_at: toTimestamp(order.openedAtMs),
  };
}

function transactionJson(transaction: NonNullable<orders.Order["transaction"]>): OrderJson["transaction"] {
  return {
    transaction_id: transaction.transactionId,
    intent_id: transaction.intentId,
    route: transaction.route,
    amount: formatAmount(transaction.amountMinor, transaction.currency),
    currency: transaction.currency,
    reference: transaction.reference,
    settled_at: toTimestamp(transaction.settledAtMs),
  };
}

/**
 * The entered lines, with prices in minor units of the order's currency. Throws `invalid_request` with a pointer to each price
 * that has too many decimals for the currency, because the service never rounds.
 */
export function orderLinesOf({ lines }: z.infer<typeof orderLinesBodySchema>, currency: string): orders.AskedLine[] {
  const errors: FieldError[] = [];
  const inputs = lines.map((line, index): orders.AskedLine => {
    const { item_id: itemId, name = "", unit_amount = "", quantity } = line;
    if (itemId !== undefined) return { itemId, quantity };
    const minor = priceMinor(unit_amount, currency, `/lines/${index}/unit_amount`);
    if (typeof minor !== "string") errors.push(minor);
    return { name, quantity, unitAmountMinor: typeof minor === "string" ? minor : "0" };
  });
  if (errors.length > 0) throw new ApiError("invalid_request", { errors });
  return inputs;
}

const openOrder: SessionHandler<z.infer<typeof orderLinesBodySchema>> = async (context) => {
  const { stationId, currency } = await ownStation(context);
  const { order } = await context.deps.bus.call(orders.openOrder, {
    caller: context.caller,
    stationId,
    lines: orderLinesOf(context.body, currency),
    idempotencyKey: idempotencyKey(context) && sessionCommandId(context, "order_open", stationId),
  });
  return created(orderJson(order));
};

const listOrders: SessionHandler<undefined, z.infer<typeof ordersQuerySchema>> = async (context) => {
  const station = await ownStation(context);
  const { stationId } = station;
  const { caller, deps, query } = context;
  const { status, before_id: beforeId, limit } = query;
  const found = await deps.bus.call(orders.listOrders, { caller, stationId, status, beforeId, limit });
  const json = found.orders.map((order) => orderJson(order, station));
  const { page, hasMore } = pageOnWire(json, found.hasMore);
  return ok({ orders: page, has_more: hasMore });
};

/**
 * The order in JSON for a read. The order proves that its station exists: without the station, the bus has lost it, and the
 * answer is `replica_stale` until the relay has restored it.
 */
export function readOrderJson(order: orders.Order, station: StationState | undefined): OrderJson {
  if (station === undefined) throw new ApiError("replica_stale");
  return orderJson(order, station);
}

export const getOrder: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { order } = await deps.bus.call(orders.getOrder, { caller, orderId: context.id("order_id") });
  return ok(readOrderJson(order, deps.station(order.stationId)));
};

/**
 * Replaces the lines. When the total changes, a dynamic QR ends; another collection continues with its amount, and attesting
 * it is refused (`order_changed`). Errors: `conflict` (paid or voided), `station_suspended`, `station_closed`.
 */
const changeOrder: SessionHandler<z.infer<typeof orderLinesBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const orderId = context.id("order_id");
  // Converting the prices needs the order's currency, which never changes.
  const { order: before } = await deps.bus.call(orders.getOrder, { caller, orderId });
  const lines = orderLinesOf(body, before.currency);
  const { order } = await deps.bus.call(orders.changeOrder, { caller, orderId, lines });
  return ok(changedOrderJson(deps, order));
};

/** Error: `conflict` for a paid order. */
const voidOrder: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { order } = await deps.bus.call(orders.voidOrder, { caller, orderId: context.id("order_id") });
  return ok(changedOrderJson(deps, order));
};

/** The answer to a change. It must not fail, so it leaves out a station that is not fresh. */
function changedOrderJson(deps: HandlerDeps, order: orders.Order): OrderJson {
  return orderJson(order, deps.isFresh(order.stationId) ? deps.station(order.stationId) : undefined);
}

const root = "/api/cashier/v1";
const stationOrders = `${root}/stations/{station_id}/orders/` as const;
const order = `${root}/orders/{order_id}/` as const;
const orderReply = { 200: { description: "The order after the change.", schema: orderSchema } };

export const orderRoutes = [
  cashierRoute({
    method: "POST",
    path: stationOrders,
    operation: "openOrder",
    summary: "Open an order",
    description:
      "Writing orders needs no lease of the station: the lease guards collections only. A suspended or closed station takes no order.",
    headers: idempotencyHeaderSchema,
    body: orderLinesBodySchema,
    replies: { 201: { description: "The order.", schema: orderSchema } },
    errors: ["not_found", "station_suspended", "station_closed", "idempotency_key_reused"],
    awaitsEffect: true,
    handler: openOrder,
  }),
  cashierRoute({
    method: "GET",
    path: stationOrders,
    operation: "listOrders",
    summary: "List a station's orders",
    description: "Without `before_id`, the newest orders.",
    query: ordersQuerySchema,
    replies: { 200: { description: "Newest first.", schema: ordersSchema } },
    errors: ["not_found"],
    handler: listOrders,
  }),
  cashierRoute({
    method: "GET",
    path: order,
    operation: "getOrder",
    summary: "Read an order",
    description: "The order may be of any station of the organization. `transaction` shows how it was paid.",
    replies: { 200: { description: "The order.", schema: orderSchema } },
    errors: ["not_found"],
    handler: getOrder,
  }),
  cashierRoute({
    method: "PUT",
    path: `${order}lines/`,
    operation: "changeOrder",
    summary: "Replace an order's lines",
    description:
      "Needs no lease of the station: the lease guards collections only. When the total changes, a dynamic QR that waits for its payment ends with `order_changed`. On the other routes the collection keeps the amount that the guest was shown, and attesting it is refused with `order_changed`. With the same total a collection continues. An order at a suspended or closed station cannot be changed.",
    body: orderLinesBodySchema,
    replies: orderReply,
    errors: ["not_found", "conflict", "station_suspended", "station_closed"],
    awaitsEffect: true,
    handler: changeOrder,
  }),
  cashierRoute({
    method: "POST",
    path: `${order}void/`,
    operation: "voidOrder",
    summary: "Void an order",
    description:
      "Needs no lease of the station: the lease guards collections only. A suspended or closed station allows it too, so that no order stays open there.",
    replies: orderReply,
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: voidOrder,
  }),
];
