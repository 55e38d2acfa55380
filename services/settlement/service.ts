/** The settlement service: orders, and the payment seam through which all money is recorded (I2). */
import { SETTLEMENT_REFUSALS } from "../../machines/station/command.ts";
import { announceOrders } from "../bus/messages/announce.ts";
import { settlementHealth } from "../bus/messages/health.ts";
import { findEndedIntent, prepareIntent, settleIntent } from "../bus/messages/intents.ts";
import { changeOrder, getOrder, listOrders, openOrder, voidOrder } from "../bus/messages/orders.ts";
import { serve } from "../bus/operation.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { addCount } from "../runtime/metrics.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { requireDatabaseUrl } from "../runtime/settings.ts";
import { announce } from "./announce.ts";
import { changeLines, voidOpenOrder } from "./change-order.ts";
import type { SettlementDeps } from "./deps.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";
import { open } from "./open-order.ts";
import { findIntent, prepare } from "./prepare-intent.ts";
import { startPurge } from "./purge.ts";
import { get, list } from "./read-order.ts";
import { settleOnce } from "./settle.ts";

const NAME = "settlement";

/** Starts answering; several processes share the work as one queue group. */
export async function startSettlementService({
  bus,
  log,
  settings,
  metrics,
  connections = SETTLEMENT_LIMITS.databaseConnections,
}: ServiceDeps): Promise<Service> {
  const database = openDatabase({
    url: requireDatabaseUrl(settings),
    name: NAME,
    maxConnections: connections,
  });
  const settlements = addCount(metrics, {
    name: "settlement_answers_total",
    help: "Answers of the payment seam by result; a repeated question counts again.",
    labels: { result: ["settled", ...SETTLEMENT_REFUSALS] },
  });
  const deps: SettlementDeps = { bus, database, log };
  const responder = { nc: bus.nc, log, queue: NAME, claim: requestClaims(database) };
  const serving = [
    serve(responder, openOrder, (request) => open(deps, request)),
    serve(responder, getOrder, (request) => get(deps, request)),
    serve(responder, listOrders, (request) => list(deps, request)),
    serve(responder, changeOrder, (request) => changeLines(deps, request)),
    serve(responder, voidOrder, (request) => voidOpenOrder(deps, request)),
    serve(responder, prepareIntent, (request) => prepare(deps, request)),
    serve(responder, findEndedIntent, (request) => findIntent(deps, request)),
    serve(responder, settleIntent, async (request) => {
      const outcome = await settleOnce(deps, request);
      settlements.add({ result: outcome.settled ? "settled" : outcome.code });
      return outcome;
    }),
    serve(responder, settlementHealth, databaseHealth(responder.nc, database)),
    serve(responder, announceOrders, (request) => announce(deps, request)),
  ];
  const purge = startPurge(deps);
  return {
    async stop() {
      await Promise.all(serving.map((served) => served.drain()));
      await purge.stop();
      await closeDatabase(database);
    },
  };
}
