/** The settlement service: orders, and the payment seam through which all money is recorded (I2). */
import {
  changeOrderLines,
  getOrder,
  listOrders,
  openOrder,
  prepareIntent,
  settle,
  voidOrder,
} from "../bus/messages/settlement.ts";
import { serve } from "../bus/operation.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { requireDatabaseUrl } from "../runtime/settings.ts";
import { changeLines, voidOpenOrder } from "./change-order.ts";
import type { SettlementDeps } from "./deps.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";
import { open } from "./open-order.ts";
import { startPurge } from "./purge.ts";
import { get, list } from "./read-order.ts";
import { prepare, settleOnce } from "./settle.ts";

const NAME = "settlement";

/** Starts answering; several processes share the work as one queue group. */
export async function startSettlementService({ bus, log, settings }: ServiceDeps): Promise<Service> {
  const database = openDatabase({
    url: requireDatabaseUrl(settings),
    name: NAME,
    maxConnections: SETTLEMENT_LIMITS.databaseConnections,
  });
  const deps: SettlementDeps = { bus, database, log };
  const responder = { nc: bus.nc, log, queue: NAME };
  const subscriptions = [
    serve(responder, openOrder, (request) => open(deps, request)),
    serve(responder, getOrder, (request) => get(deps, request)),
    serve(responder, listOrders, (request) => list(deps, request)),
    serve(responder, changeOrderLines, (request) => changeLines(deps, request)),
    serve(responder, voidOrder, (request) => voidOpenOrder(deps, request)),
    serve(responder, prepareIntent, (request) => prepare(deps, request)),
    serve(responder, settle, (request) => settleOnce(deps, request)),
  ];
  const purge = startPurge(deps);
  return {
    async stop() {
      await Promise.allSettled(subscriptions.map((subscription) => subscription.drain()));
      await purge.stop();
      await closeDatabase(database);
    },
  };
}
