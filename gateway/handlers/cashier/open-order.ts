/** Opens an order at a station, in the station's currency. */
import type { z } from "zod";
import { openOrder } from "../../../services/bus/messages/orders.ts";
import type { orderLinesBodySchema } from "../../contract/cashier.ts";
import { idempotencyKey, sessionCommandId } from "../../http/command-id.ts";
import { created, type SessionHandler } from "../../http/handler-context.ts";
import { ownStation } from "../../http/own-station.ts";
import { orderLinesFromWire, orderWire } from "./order-wire.ts";

export const openCashierOrder: SessionHandler<z.infer<typeof orderLinesBodySchema>> = async (context) => {
  const { stationId, currency } = await ownStation(context);
  const { order } = await context.deps.bus.call(openOrder, {
    caller: context.caller,
    stationId,
    lines: [...orderLinesFromWire(context.body, currency)],
    idempotencyKey: idempotencyKey(context) && sessionCommandId(context, "order_open", stationId),
  });
  return created(orderWire(order));
};
