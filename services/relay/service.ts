/** The relay: takes what services wrote into the outbox to the stations' actors and into the buckets (design §3). */
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "../bus/connection.ts";
import { relayHealth } from "../bus/messages/health.ts";
import { serve } from "../bus/operation.ts";
import { databaseHealth } from "../db/health.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { sample } from "../runtime/repeat.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { requireDatabaseUrl } from "../runtime/settings.ts";
import { standForElection } from "./election.ts";
import { lead } from "./lead.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { addRelayFigures } from "./metrics.ts";
import { outboxRetention } from "./retention.ts";
import { summarizePendingRows } from "./sql/outbox-rows.ts";

/** Starts a relay. Several processes may run it: one delivers, the others stand by to succeed it. */
export async function startRelayService(deps: ServiceDeps): Promise<Service> {
  const databaseUrl = requireDatabaseUrl(deps.settings);
  const sql = openDatabase({
    url: databaseUrl,
    name: "device-payments relay",
    // One of them holds the lease (`election.ts`).
    maxConnections: deps.connections === undefined ? undefined : deps.connections - 1,
    statementDeadlineMs: RELAY_LIMITS.statementMs,
    idleInTransactionMs: RELAY_LIMITS.idleInTransactionMs,
  });
  const { nc, js, jsm } = deps.bus;
  const pending = sample(() => summarizePendingRows(sql, RELAY_LIMITS.summaryRows), RELAY_LIMITS.summaryMs);
  let isLeader = false;
  const figures = addRelayFigures(deps.metrics, { isLeader: () => isLeader, pending });
  const { bus, log, logs } = deps;
  const work = { nc, js, jsm, sql, log, logs, figures, bus };
  const election = standForElection({
    databaseUrl,
    log: deps.log,
    isBusThere: () => answers(bus),
    lead: async (term) => {
      isLeader = true;
      await lead(work, term).finally(() => {
        isLeader = false;
      });
    },
  });
  const findFault = async () => {
    const known = await pending();
    return known !== undefined && known.oldestAgeMs > RELAY_LIMITS.lateMs ? "delivery_late" : null;
  };
  const health = serve({ nc, log: deps.log, queue: "relay" }, relayHealth, databaseHealth(nc, sql, findFault));
  const retention = startRetention(outboxRetention(work), log);
  // Whoever is told that this has started may write and flush at once; the subscription must be there by then.
  await election.stood;
  await nc.flush();
  return {
    stop: async () => {
      await Promise.all([health.drain(), election.stop(), retention.stop()]);
      await closeDatabase(sql);
    },
  };
}

/** Whether the bus answers in time. */
async function answers(bus: Bus): Promise<boolean> {
  if (!bus.isUp()) return false;
  const late = delay(RELAY_LIMITS.busProbeMs, false, { ref: false });
  const answered = bus.nc.flush().then(
    () => true,
    () => false,
  );
  return await Promise.race([answered, late]);
}
