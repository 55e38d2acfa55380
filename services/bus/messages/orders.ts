/** Orders, as the settlement service keeps them. Amounts are minor units as strings of digits. */
import { z } from "zod";
import { ROUTES } from "../../../machines/payment-intent.ts";
import { ORDER_STATUSES } from "../../../machines/station/state.ts";
import { AMOUNT_MINOR_PATTERN, BOUNDS } from "../bounds.ts";
import { once, repeatable, repeatableWithKey } from "../operation.ts";
import { pageBefore } from "../page.ts";
import { barrierSchema, callerSchema } from "./caller.ts";
import { nameSchema } from "./name.ts";

const id = z.int().positive();
const amountMinor = z.string().regex(AMOUNT_MINOR_PATTERN);

export const orderLineInputSchema = z.object({
  name: nameSchema,
  quantity: z.int().min(1).max(BOUNDS.lineQuantity),
  unitAmountMinor: amountMinor,
});
/** A line by its item: the service takes the item's name and price of this moment. */
const itemLineSchema = z.object({ itemId: id, quantity: z.int().min(1).max(BOUNDS.lineQuantity) });
const askedLinesSchema = z.array(z.union([itemLineSchema, orderLineInputSchema])).max(BOUNDS.orderLines);
export type AskedLine = z.infer<typeof askedLinesSchema>[number];
/** A stored line: without the rules for names, which may have changed since. */
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
 * The station must be one of the caller's organization, and neither suspended nor closed; its currency is the order's.
 * Writing orders needs no lease: the lease guards collections.
 */
export const openOrder = repeatableWithKey(
  "settlement.openOrder",
  z.object({
    caller: callerSchema,
    stationId: id,
    lines: askedLinesSchema,
    idempotencyKey: z.string().optional(),
  }),
  orderWithBarrier,
);
export const getOrder = repeatable(
  "settlement.getOrder",
  z.object({ caller: callerSchema, orderId: id }),
  z.object({ order: orderSchema }),
);
/** Newest first, of one station or of all. A page may be shorter than `limit` although there are more: see `hasMore`. */
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
/** Replaces the lines; a paid or voided order refuses with `conflict`, a suspended or closed station with its standing. */
export const changeOrder = once(
  "settlement.changeOrder",
  z.object({ caller: callerSchema, orderId: id, lines: askedLinesSchema }),
  orderWithBarrier,
);
/** Also at a suspended or closed station, so that nothing is left open there; a paid order refuses with `conflict`. */
export const voidOrder = repeatable(
  "settlement.voidOrder",
  z.object({ caller: callerSchema, orderId: id }),
  orderWithBarrier,
);
