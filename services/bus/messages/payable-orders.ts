/** The orders that an issue's payment can pay, for a person who attributes it. */
import { z } from "zod";
import { repeatable } from "../operation.ts";
import { callerSchema as caller } from "./caller.ts";

const id = z.int().positive();

/** An open order of the payment's amount, currency and mode, at a station of the filial that has the payment's account. */
export const payableOrderSchema = z.object({
  orderId: id,
  orderDisplayNumber: id,
  stationId: id,
  openedAtMs: z.number(),
});
export type PayableOrder = z.infer<typeof payableOrderSchema>;

/** More open orders of one amount do not help a person to choose. */
export const LISTED_PAYABLE_ORDERS = 100;
/** The newest first, up to this number. Refuses as `attributeIssue` where the payment can pay no order. */
export const listPayableOrders = repeatable(
  "providers.listPayableOrders",
  z.object({ caller, issueId: id }),
  z.object({ orders: z.array(payableOrderSchema) }),
);
