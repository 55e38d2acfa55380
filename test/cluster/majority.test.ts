/** Processes at a server that is cut off from the majority, or beside one that is stalled. */
import { hash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Gateway, startGateway } from "../../gateway/app.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { createLog } from "../../services/runtime/log.ts";
import { DISPLAY_SCOPES, openStation } from "../gateway/gateway-world.ts";
import { sayBucketsAreTold } from "../support/buckets-told.ts";
import { type Refused, send } from "../support/http.ts";
import { STATION_LOG } from "../support/one-log.ts";
import { consumeFrom, EVERYTHING, leadFrom } from "./leaders.ts";
import { NatsCluster, type NodeName } from "./nats-cluster.ts";

const SILENT = createLog({ service: "test", level: "silent" });
const WAIT = { timeout: 20_000, interval: 20 };
/** What a device may be shown is at most this old (I8). */
const STALE_AFTER_MS = 1_500;
/** One beat and its way back. */
const FRESH_AGAIN_MS = 1_000;
const STATION_ID = 1;
const FOLLOWED = [STATION_LOG.name, "KV_CREDENTIALS", "KV_SESSIONS", "KV_SWITCHES"];
const ISOLATED: NodeName = "n2";
const OTHER: NodeName = "n0";

let cluster: NatsCluster;
let bus: Bus;
let gatewayBus: Bus;
let gateway: Gateway;
let displayId = 0;

async function credential(name: string): Promise<string> {
  const entry = JSON.stringify({ deviceId: displayId, stationId: STATION_ID, scopes: DISPLAY_SCOPES });
  const { seq } = await bus.js.publish(subjectOf(name), entry);
  expect(await gateway.replicas.feeds.credentials.waitFor(seq, 5_000)).toBe(true);
  return name;
}
const subjectOf = (name: string): string => `$KV.CREDENTIALS.${hash("sha256", name, "hex")}`;

const ask = async (token: string): Promise<number> => {
  const url = `http://127.0.0.1:${gateway.port}`;
  return (await send<Refused>(url, "GET", "/api/payments/v1/devices/me/", { token })).status;
};
const isFresh = (): boolean => {
  const nowMs = gateway.replicas.nowMs();
  return gateway.replicas.isFreshForDevices(nowMs) && gateway.replicas.isStationFresh(STATION_ID, nowMs);
};

/** Milliseconds until it holds. */
async function timeUntil(holds: () => boolean): Promise<number> {
  const startedAtMs = performance.now();
  await vi.waitFor(() => expect(holds()).toBe(true), WAIT);
  return Math.round(performance.now() - startedAtMs);
}

beforeAll(async () => {
  cluster = await NatsCluster.start();
  bus = await connectBus({ url: cluster.nodeUrl(OTHER), name: "test", log: SILENT });
  await vi.waitFor(() => ensureStreams(bus, { replicas: 3, logs: 1 }), WAIT);
  await leadFrom(bus, OTHER, EVERYTHING);
  await sayBucketsAreTold(bus);
  gatewayBus = await connectBus({ url: cluster.nodeUrl(ISOLATED), name: "gateway", log: SILENT });
  gateway = await startGateway({
    bus: gatewayBus,
    log: SILENT,
    settings: {
      host: "127.0.0.1",
      port: 0,
      sharedPort: false,
      maxConnections: undefined,
      maxConnectionsPerAddress: undefined,
      trustedProxies: [],
      platformKey: undefined,
      tls: undefined,
    },
  });
  ({ displayId } = await openStation({ bus, gateway }, STATION_ID, 1));
}, 90_000);
afterAll(async () => {
  await gateway.stop();
  await Promise.all([gatewayBus.close(), bus.close()]);
  await cluster.stop();
});

describe("a gateway whose server is cut off", () => {
  test.each([
    ["follows", OTHER],
    ["leads", ISOLATED],
  ] as const)(
    "the server %s: 503 within 1.5 s, and no answer to a device that is revoked elsewhere",
    async (_, leader) => {
      await leadFrom(bus, leader, EVERYTHING);
      // A consumer there goes on with its heartbeats while its server is cut off.
      await Promise.all(FOLLOWED.map((stream) => consumeFrom(bus, ISOLATED, stream)));
      const token = await credential(`dp_00_${leader}`);
      await vi.waitFor(async () => expect(await ask(token)).toBe(200), WAIT);
      cluster.isolate(ISOLATED);
      const becameStale = timeUntil(() => !isFresh());
      becameStale.catch(() => undefined);
      await delay(STALE_AFTER_MS);
      expect([isFresh(), await ask(token)]).toEqual([false, 503]);
      const staleMs = await becameStale;
      const { body } = await send<{ ready: boolean }>(`http://127.0.0.1:${gateway.port}`, "GET", "/readyz");
      expect(body.ready).toBe(false);
      // The majority goes on, after an election where the leader is away.
      await vi.waitFor(() => bus.js.publish(subjectOf(token), "", { timeout: 1_000 }), WAIT);
      await delay(STALE_AFTER_MS);
      expect(await ask(token)).toBe(503);
      cluster.reunite(ISOLATED);
      const freshMs = await timeUntil(isFresh);
      process.stderr.write(`isolated: stale after ${staleMs} ms, fresh ${freshMs} ms after it is back\n`);
      if (leader === OTHER) expect(freshMs).toBeLessThanOrEqual(FRESH_AGAIN_MS);
      expect(await ask(token)).toBe(401);
    },
    60_000,
  );
});
