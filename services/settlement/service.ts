/** The settlement service: orders, intents, and the payment seam, which alone writes transactions (I2 in machines/SPEC.md). */
import { SETTLEMENT_REFUSALS } from "../../machines/station/reply.ts";
import { announceOrders } from "../bus/messages/announce.ts";
import { settlementHealth } from "../bus/messages/health.ts";
import { findEndedIntent, prepareIntent, settleIntent } from "../bus/messages/intents.ts";
import { changeOrder, getOrder, listOrders, openOrder, voidOrder } from "../bus/messages/orders.ts";
import { serve, serveWith } from "../bus/operation.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { requestClaims } from "../db/request-claims.ts";
import { databaseSilence } from "../db/silence.ts";
import { addCount } from "../runtime/metrics.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { requireDatabaseUrl } from "../runtime/settings.ts";
import type { SettlementDeps } from "./deps.ts";
import * as intents from "./intents.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";
import * as orders from "./orders.ts";
import * as seam from "./payment-seam.ts";
import { keyRetention } from "./retention.ts";

const NAME = "settlement";

/** Starts the service. Several processes may run it: the bus gives each request to one of them. */
export async function startSettlementService({
  bus,
  logs,
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
    help: "Answers of the payment seam by result; a repeated request counts again.",
    labels: { result: ["settled", ...SETTLEMENT_REFUSALS] },
  });
  const deps: SettlementDeps = { bus, logs, database, log };
  const responder = {
    nc: bus.nc,
    log,
    queue: NAME,
    claim: requestClaims(database),
    isSilent: databaseSilence(database),
  };
  const on = serveWith(responder, deps);
  const serving = [
    on(openOrder, orders.openOrder),
    on(getOrder, orders.getOrder),
    on(listOrders, orders.listOrders),
    on(changeOrder, orders.changeOrder),
    on(voidOrder, orders.voidOrder),
    on(announceOrders, orders.announceOrders),
    on(prepareIntent, intents.prepareIntent),
    on(findEndedIntent, intents.findEndedIntent),
    serve(responder, settleIntent, async (request) => {
      const outcome = await seam.settleIntent(deps, request);
      settlements.add({ result: outcome.settled ? "settled" : outcome.code });
      return outcome;
    }),
    serve(responder, settlementHealth, databaseHealth(responder.nc, database)),
  ];
  const retention = startRetention(keyRetention(deps), log);
  return {
    async stop() {
      await Promise.all(serving.map((served) => served.drain()));
      await retention.stop();
      await closeDatabase(database);
    },
  };
}
