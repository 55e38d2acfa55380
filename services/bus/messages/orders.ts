/** Orders, as the settlement service stores them. Amounts are minor units as strings of digits. */
import { z } from "zod";
import { ROUTES } from "../../../machines/payment-intent.ts";
import { ORDER_STATUSES } from "../../../machines/station/state.ts";
import { BOUNDS } from "../bounds.ts";
import { once, repeatable, repeatableWithKey } from "../operation.ts";
import { pageBefore } from "../page.ts";
import { amountMinorSchema as amountMinor } from "./amount.ts";
import { barrierSchema, callerSchema } from "./caller.ts";
import { idempotencyKeySchema } from "./creation.ts";
import { nameSchema } from "./name.ts";

const id = z.int().positive();

const orderLineInputSchema = z.object({
  name: nameSchema,
  quantity: z.int().min(1).max(BOUNDS.lineQuantity),
  unitAmountMinor: amountMinor,
});
/** A line by its catalogue item: the service uses the current name and price of the item. */
const itemLineSchema = z.object({ itemId: id, quantity: z.int().min(1).max(BOUNDS.lineQuantity) });
const askedLinesSchema = z.array(z.union([itemLineSchema, orderLineInputSchema])).max(BOUNDS.orderLines);
export type AskedLine = z.infer<typeof askedLinesSchema>[number];
/** A stored line. The rules for names may have changed since, so it has none. */
const orderLineSchema = orderLineInputSchema.extend({ name: z.string() });

export const transactionSchema = z.object({
  transactionId: id,
  intentId: id,
  route: z.enum(ROUTES),
  amountMinor,
  currency: z.string(),
  reference: z.string(),
  settledAtMs: z.number(),
});

export const orderSchema = z.object({
  orderId: id,
  orderDisplayNumber: id,
  stationId: id,
  status: z.enum(ORDER_STATUSES),
  revision: id,
  currency: z.string(),
  totalMinor: amountMinor,
  lines: z.array(orderLineSchema),
  transaction: transactionSchema.nullable(),
  openedAtMs: z.number(),
});
export type Order = z.infer<typeof orderSchema>;
const orderWithBarrier = z.object({ order: orderSchema, barrier: barrierSchema });

/**
 * Opens an order at a station of the caller's organization that is neither suspended nor closed. The order has the
 * station's currency. Orders need no lease: the lease guards collections.
 */
export const openOrder = repeatableWithKey(
  "settlement.openOrder",
  z.object({
    caller: callerSchema,
    stationId: id,
    lines: askedLinesSchema,
    idempotencyKey: idempotencyKeySchema.optional(),
  }),
  orderWithBarrier,
);
export const getOrder = repeatable(
  "settlement.getOrder",
  z.object({ caller: callerSchema, orderId: id }),
  z.object({ order: orderSchema }),
);
/** Newest first, of one station or of all. A page may be shorter than `limit` although `hasMore` is true. */
export const listOrders = repeatable(
  "settlement.listOrders",
  z.object({
    caller: callerSchema,
    stationId: id.optional(),
    status: z.enum(ORDER_STATUSES).optional(),
    ...pageBefore,
  }),
  z.object({ orders: z.array(orderSchema), hasMore: z.boolean() }),
);
/**
 * Replaces the lines. Refuses with `conflict` for a paid or voided order, and with the standing of a suspended or
 * closed station.
 */
export const changeOrder = once(
  "settlement.changeOrder",
  z.object({ caller: callerSchema, orderId: id, lines: askedLinesSchema }),
  orderWithBarrier,
);
/**
 * Voids an order, also at a suspended or closed station, so that no order stays open there. Refuses with `conflict` for
 * a paid order.
 */
export const voidOrder = repeatable(
  "settlement.voidOrder",
  z.object({ caller: callerSchema, orderId: id }),
  orderWithBarrier,
);
