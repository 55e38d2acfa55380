/** An order for the wire, and the lines that a cashier typed as minor units. */
import type { z } from "zod";
import { amountFitsWire, currencyExponent, formatAmount, parseAmount } from "../../../machines/currency.ts";
import type { StationState } from "../../../machines/station/state.ts";
import type { Order, orderLineInputSchema, transactionSchema } from "../../../services/bus/messages/orders.ts";
import type { FieldError } from "../../../services/bus/refusals.ts";
import type { orderLinesBodySchema, orderSchema } from "../../contract/cashier.ts";
import { Refusal } from "../../http/handler-context.ts";
import { toTimestamp } from "../../http/shared-schemas.ts";
import { unclearCollections } from "./unclear-wire.ts";

export type OrderWire = z.infer<typeof orderSchema>;
type OrderLineInput = z.infer<typeof orderLineInputSchema>;

/**
 * `station` is the order's station, which lists the unclear collections. It is left out where the order has no collection yet,
 * and where the gateway's replica does not have the station; then none is listed.
 */
export function orderWire(order: Order, station?: StationState): OrderWire {
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
    transaction: order.transaction === null ? null : transactionWire(order.transaction),
    unclear_collections: unclear.filter(({ order_id }) => order_id === order.orderId),
    opened_at: toTimestamp(order.openedAtMs),
  };
}

function transactionWire(transaction: z.infer<typeof transactionSchema>): OrderWire["transaction"] {
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
 * Typed lines as minor units of the order's currency. Throws `invalid_request` with a pointer to each price that this
 * currency cannot have, so that nothing is rounded on anybody's behalf.
 */
export function orderLinesFromWire(
  { lines }: z.infer<typeof orderLinesBodySchema>,
  currency: string,
): readonly OrderLineInput[] {
  const errors: FieldError[] = [];
  const inputs = lines.map((line, index) => {
    const unitAmountMinor = parseAmount(line.unit_amount, currency);
    if (unitAmountMinor === undefined || !amountFitsWire(unitAmountMinor, currency)) {
      const detail = `${currency} has ${currencyExponent(currency) ?? 0} decimals.`;
      errors.push({ pointer: `/lines/${index}/unit_amount`, detail });
    }
    return { name: line.name, quantity: line.quantity, unitAmountMinor: String(unitAmountMinor ?? 0n) };
  });
  if (errors.length > 0) throw new Refusal("invalid_request", { errors });
  return inputs;
}
