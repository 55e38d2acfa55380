/**
 * How a station learns of an order: an outbox row in the order's own transaction, and afterwards one bounded request to
 * the relay to deliver it now. The row is delivered in any case; the request is only so that the caller reads what it wrote.
 */
import type { Actor } from "../../machines/actor.ts";
import type { Bus } from "../bus/connection.ts";
import { flushKeys } from "../bus/flush-outbox.ts";
import type { Barrier } from "../bus/messages/caller.ts";
import type { Order } from "../bus/messages/orders.ts";
import { insertOutbox, stationKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";

/** Writes the row. Comes last in its transaction, as every outbox row does. */
export async function noteForStation(sql: Transaction, order: Order, actor: Actor): Promise<void> {
  const { orderId, orderDisplayNumber, stationId, currency, status } = order;
  await insertOutbox(sql, {
    key: stationKey(stationId),
    kind: "station_command",
    stationId,
    command: {
      type: "order_put",
      order: { orderId, orderDisplayNumber, amountMinor: order.totalMinor, currency, status, revision: order.revision },
    },
    actor,
  });
}

/** Asks the relay to deliver now; when it does not in time, the barrier says so and the station follows later. */
export async function tellStation(
  { bus, log }: { readonly bus: Bus; readonly log: Log },
  stationId: number,
): Promise<Barrier> {
  const { flushTimeoutMs: timeoutMs } = SETTLEMENT_LIMITS;
  return await flushKeys({ nc: bus.nc, log, timeoutMs }, [stationKey(stationId)]);
}
