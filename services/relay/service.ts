/** The relay: delivers what services wrote into the outbox to the stations' actors and the buckets (design §3). */
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "../bus/connection.ts";
import { relayHealth } from "../bus/messages/health.ts";
import { readDelivered } from "../bus/messages/outbox.ts";
import { serve } from "../bus/operation.ts";
import { databaseHealth } from "../db/health.ts";
import { nameDatabase } from "../db/installation.ts";
import { closeDatabase, openDatabase } from "../db/pool.ts";
import { databaseSilence } from "../db/silence.ts";
import { sample, shared } from "../runtime/repeat.ts";
import { startRetention } from "../runtime/retention.ts";
import type { Service, ServiceDeps } from "../runtime/service.ts";
import { requireDatabaseUrl } from "../runtime/settings.ts";
import type { RelayDeps } from "./deps.ts";
import { standForElection } from "./election.ts";
import { lead } from "./lead.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { addRelayMetrics } from "./metrics.ts";
import { outboxRetention } from "./retention.ts";
import { listDeliveredEntries, summarizePendingRows } from "./sql/outbox.ts";
import { watchStreams } from "./watch-streams.ts";

/** Starts a relay. Several processes may run it: one delivers, the others stand by. */
export async function startRelayService(deps: ServiceDeps): Promise<Service> {
  const databaseUrl = requireDatabaseUrl(deps.settings);
  const sql = openDatabase({
    url: databaseUrl,
    name: "relay",
    // The election has a separate connection (`election.ts`).
    maxConnections: deps.connections === undefined ? undefined : deps.connections - 1,
    statementDeadlineMs: RELAY_LIMITS.statementMs,
    idleInTransactionMs: RELAY_LIMITS.idleInTransactionMs,
  });
  const { bus, log, logs } = deps;
  const pending = sample(() => summarizePendingRows(sql, RELAY_LIMITS.summaryRows), RELAY_LIMITS.summaryMs);
  let isLeader = false;
  const streams = watchStreams(deps);
  const facts = { isLeader: () => isLeader, missingStreams: () => streams.missingCount(), pending };
  const metrics = addRelayMetrics(deps.metrics, facts);
  const relayDeps: RelayDeps = { bus, logs, sql, database: nameDatabase(databaseUrl), log, metrics, fail: deps.fail };
  const election = standForElection({
    databaseUrl,
    log,
    isBusUp: () => answers(bus),
    lead: async (term) => {
      isLeader = true;
      await lead(relayDeps, term).finally(() => {
        isLeader = false;
      });
    },
  });
  const findFault = async () => {
    const known = await pending();
    if (streams.missingCount() > 0) return "streams_missing";
    return known !== undefined && known.oldestAgeMs > RELAY_LIMITS.lateMs ? "delivery_late" : null;
  };
  const responder = { nc: bus.nc, log, queue: "relay" };
  const health = serve(responder, relayHealth, databaseHealth(bus.nc, sql, findFault));
  const delivered = shared(() => listDeliveredEntries(sql, RELAY_LIMITS.deliveredWithinMs));
  const positions = serve({ ...responder, isSilent: databaseSilence(sql) }, readDelivered, async ({ stream }) => ({
    sequence: (await delivered()).get(stream) ?? 0,
  }));
  const retention = startRetention(outboxRetention(relayDeps), log);
  // A caller may write and flush as soon as this has started; the subscription must be there by then.
  await election.firstAttempt;
  await bus.nc.flush();
  return {
    stop: async () => {
      await Promise.all([health.drain(), positions.drain(), election.stop(), retention.stop(), streams.stop()]);
      await closeDatabase(sql);
    },
  };
}

/** Whether the bus answers in time, and can store what the relay delivers. */
async function answers(bus: Bus): Promise<boolean> {
  if (!bus.hasQuorum()) return false;
  const late = delay(RELAY_LIMITS.busProbeMs, false, { ref: false });
  const answered = bus.nc.flush().then(
    () => true,
    () => false,
  );
  return await Promise.race([answered, late]);
}
