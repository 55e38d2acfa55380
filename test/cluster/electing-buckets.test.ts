/**
 * The buckets that the relay writes have no leader: a gateway continues with its entries as long as PostgreSQL has no newer ones
 * (I8). Two of the three servers are away here, so that no election gives the buckets a leader.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Gateway, startGateway } from "../../gateway/app.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { CREDENTIALS, SWITCHES } from "../../services/bus/streams.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { startRelayService } from "../../services/relay/service.ts";
import { createLog } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import { noteBucketsComplete } from "../support/buckets-complete.ts";
import { GATEWAY_SETTINGS } from "../support/gateway-settings.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";
import { NatsCluster, NODES, type NodeName } from "./nats-cluster.ts";

const SILENT = createLog({ service: "test", level: "silent" });
const WAIT = { timeout: 30_000, interval: 20 };
const LEFT: NodeName = "n1";
const AWAY = NODES.filter((node) => node !== LEFT);
/** What a device may be shown is at most this old (I8). */
const STALE_AFTER_MS = 1_500;
/** Twice the time for which a gateway continues without any proof. */
const WATCHED_MS = 2 * STALE_AFTER_MS;
const FAR = 1_000_000;

let cluster: NatsCluster;
let database: TestDatabase;
let sql: Database;
let bus: Bus;
let relay: Service;
let gateway: Gateway;

const isFresh = (): boolean => gateway.replicas.isFreshForDevices(gateway.replicas.nowMs());

/** Records an entry as delivered, as the relay does. */
async function noteDelivered(stream: string, sequence: number): Promise<void> {
  await sql`
    insert into outbox (key, kind, payload, delivered_at, stream, sequence)
    values ('station.1', ${stream === `KV_${SWITCHES.name}` ? "switch_set" : "credential_delete"}, '{}', now(), ${stream}, ${sequence})`;
}

async function timeUntil(holds: () => boolean): Promise<number> {
  const startedAtMs = performance.now();
  await vi.waitFor(() => expect(holds()).toBe(true), WAIT);
  return performance.now() - startedAtMs;
}

beforeAll(async () => {
  [cluster, database] = await Promise.all([NatsCluster.start(), cloneDatabase()]);
  sql = openDatabase({ url: database.url, maxConnections: 1 });
  bus = await connectBus({ url: cluster.nodeUrl(LEFT), name: "test", log: SILENT });
  await vi.waitFor(() => ensureStreams(bus, { replicas: NODES.length, logs: 1 }), WAIT);
  // In a cluster this server does not reach the leader of a new stream for a moment.
  await vi.waitFor(() => noteBucketsComplete(bus), WAIT);
  const settings = { natsUrl: cluster.nodeUrl(LEFT), databaseUrl: database.url, logLevel: "silent" } as const;
  relay = await startRelayService({ bus, logs: ONE_LOG, log: SILENT, settings, environment: {} });
  gateway = await startGateway({ bus, log: SILENT, settings: GATEWAY_SETTINGS });
});
afterAll(async () => {
  await gateway.stop();
  await relay.stop();
  await Promise.all([bus.close(), closeDatabase(sql)]);
  await Promise.all([cluster.stop(), database.drop()]);
});

test.each([CREDENTIALS, SWITCHES])(
  "$name has no leader: fresh until an entry is noted that was not read",
  async ({ name }) => {
    await vi.waitFor(() => expect([isFresh(), gateway.replicas.areCredentialsComplete()]).toEqual([true, true]), WAIT);
    await Promise.all(AWAY.map((node) => cluster.killNode(node)));
    // No beat returns, so an entry that the gateway does not find may still wait to be stored.
    await vi.waitFor(() => expect(gateway.replicas.areCredentialsComplete()).toBe(false), WAIT);
    for (const endMs = performance.now() + WATCHED_MS; performance.now() < endMs; await delay(WAIT.interval)) {
      expect([isFresh(), gateway.replicas.areCredentialsComplete()]).toEqual([true, false]);
    }
    await noteDelivered(`KV_${name}`, FAR);
    const notedAtMs = performance.now();
    await timeUntil(() => !isFresh());
    expect(performance.now() - notedAtMs).toBeLessThan(STALE_AFTER_MS + 100);
    await sql`delete from outbox`;
    await Promise.all(AWAY.map((node) => cluster.startNode(node)));
  },
);
