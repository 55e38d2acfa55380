/** The order that a reference has settled before, for the wire. */
import { formatAmount } from "../../machines/currency.ts";
import type { EarlierSale } from "../../machines/payment-intent.ts";
import { type ErrorBody, toTimestamp } from "../http/shared-schemas.ts";

export function earlierOrderWire(sale: EarlierSale): NonNullable<ErrorBody["earlier_order"]> {
  return {
    order_id: sale.orderId,
    order_display_number: sale.orderDisplayNumber,
    station_name: sale.stationName,
    amount: formatAmount(sale.amountMinor, sale.currency),
    currency: sale.currency,
    settled_at: toTimestamp(sale.settledAtMs),
  };
}
