/** Processes whose server is cut off from the majority, and processes whose consumers are at a server that stalls. */
import { hash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { type Gateway, startGateway } from "../../gateway/app.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { openFeed } from "../../services/bus/feed.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import type { LineLog } from "../../services/runtime/log.ts";
import { createLog } from "../../services/runtime/log.ts";
import { DISPLAY_SCOPES, openStation, type TestStation } from "../gateway/gateway-world.ts";
import { noteBucketsComplete } from "../support/buckets-complete.ts";
import { GATEWAY_SETTINGS } from "../support/gateway-settings.ts";
import { type Refused, send } from "../support/http.ts";
import { ONE_LOG, STATION_LOG } from "../support/one-log.ts";
import { allStreams, metaLeader, moveConsumers, moveLeaders } from "./leaders.ts";
import { NatsCluster, NODES, type NodeName } from "./nats-cluster.ts";

const SILENT = createLog({ service: "test", level: "silent" });
const WAIT = { timeout: 20_000, interval: 20 };
/** What a device may be shown is at most this old (I8). */
const STALE_AFTER_MS = 1_500;
/** The longest time for which a stalled follower may delay cashiers and devices. */
const FOLLOWER_MS = 2_000;
/** A process leaves a server without a majority within this time. */
const LEFT_WITHIN_MS = 3_000;
/** How long the start of many connections may take on a busy machine. */
const STARTED_MS = 10_000;
const STARTS = 12;
/** Long enough for two changes of the server. */
const NO_MAJORITY_MS = 6_500;
const QUORUM_LOST = "this NATS server reaches no majority of its cluster; the process goes to another one";
const STATION_ID = 1;

let cluster: NatsCluster;
/** The gateway's server. */
let local: NodeName;
/** The server that leads the cluster itself, and so decides where consumers are made. */
let meta: NodeName;
/** The third server. */
let other: NodeName;
let bus: Bus;
let gatewayBus: Bus;
let gateway: Gateway;
let station: TestStation;

const subjectOf = (credential: string): string => `$KV.CREDENTIALS.${hash("sha256", credential, "hex")}`;

async function addCredential(credential: string): Promise<string> {
  const entry = JSON.stringify({ deviceId: station.displayId, stationId: STATION_ID, scopes: DISPLAY_SCOPES });
  const { seq } = await bus.js.publish(subjectOf(credential), entry);
  expect(await gateway.replicas.feeds.credentials.waitFor(seq, 5_000)).toBe(true);
  return credential;
}

const ask = async (token: string): Promise<number> => {
  const url = `http://127.0.0.1:${gateway.port}`;
  return (await send<Refused>(url, "GET", "/api/payments/v1/devices/me/", { token })).status;
};
const isFresh = (): boolean => {
  const nowMs = gateway.replicas.nowMs();
  return gateway.replicas.isFreshForDevices(nowMs) && gateway.replicas.isStationFresh(STATION_ID, nowMs);
};

const hostOf = (node: NodeName): string => new URL(cluster.nodeUrl(node)).host;

/** Connects a process that serves, first to this server. The client chooses a server of its list by chance. */
async function connectTo(node: NodeName, log: LineLog, url: string = cluster.url()): Promise<Bus> {
  for (;;) {
    const connected = await connectBus({ url, name: "served", log, awaitsQuorum: true });
    if (connected.nc.getServer() === hostOf(node)) return connected;
    await connected.close();
  }
}

/** Resolves when every stream's copies are complete. */
async function untilJoined(): Promise<void> {
  for (const name of allStreams(ONE_LOG)) {
    await vi.waitFor(async () => {
      const group = (await bus.jsm.streams.info(name)).cluster;
      expect(group?.replicas?.map(({ current }) => current)).toEqual([true, true]);
    }, WAIT);
  }
}

/** Milliseconds until the condition holds. */
async function timeUntil(holds: () => boolean): Promise<number> {
  const startedAtMs = performance.now();
  await vi.waitFor(() => expect(holds()).toBe(true), WAIT);
  return Math.round(performance.now() - startedAtMs);
}

beforeAll(async () => {
  cluster = await NatsCluster.start();
  meta = await metaLeader(cluster);
  [local, other] = NODES.filter((node) => node !== meta) as [NodeName, NodeName];
  bus = await connectBus({ url: cluster.nodeUrl(other), name: "test", log: SILENT });
  await vi.waitFor(() => ensureStreams(bus, { replicas: NODES.length, logs: 1 }), WAIT);
  await moveLeaders(bus, other, allStreams(ONE_LOG));
  // In a cluster this server does not reach a new leader for a moment.
  await vi.waitFor(() => noteBucketsComplete(bus), WAIT);
  gatewayBus = await connectBus({ url: cluster.nodeUrl(local), name: "gateway", log: SILENT });
  gateway = await startGateway({ bus: gatewayBus, log: SILENT, settings: GATEWAY_SETTINGS });
  station = await openStation({ bus, gateway }, STATION_ID, 1);
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all([gatewayBus.close(), bus.close()]);
  await cluster.stop();
});

// This runs after a failed test too: a server that stays stalled or cut off would make all later tests fail.
afterEach(() => {
  for (const node of NODES) {
    cluster.signalNode(node, "SIGCONT");
    cluster.reunite(node);
  }
});

describe("a gateway whose server is cut off", () => {
  // All places of leader and consumers, because a consumer at the cut-off server continues its heartbeats during the cut.
  test.each([
    { leads: "local", consumers: "local" },
    { leads: "local", consumers: "other" },
    { leads: "other", consumers: "local" },
    { leads: "other", consumers: "other" },
    { leads: "meta", consumers: "other" },
  ] as const)(
    "leaders at the $leads server, consumers at the $consumers one: 503 within 1.5 s, and no answer to a device that is revoked elsewhere",
    async ({ leads, consumers }) => {
      const nodes = { local, meta, other };
      await moveLeaders(bus, nodes[leads], allStreams(ONE_LOG));
      for (const stream of ["KV_CREDENTIALS", STATION_LOG.name]) await moveConsumers(bus, nodes[consumers], stream);
      const token = await addCredential(`dp_00_${leads}_${consumers}`);
      await vi.waitFor(async () => expect(await ask(token)).toBe(200), WAIT);
      cluster.isolate(local);
      const becameStale = timeUntil(() => !isFresh());
      becameStale.catch(() => undefined);
      await delay(STALE_AFTER_MS);
      expect([isFresh(), await ask(token)]).toEqual([false, 503]);
      const staleMs = await becameStale;
      const { body } = await send<{ ready: boolean }>(`http://127.0.0.1:${gateway.port}`, "GET", "/readyz");
      expect(body.ready).toBe(false);
      // The majority continues, after an election when the leader is away.
      await vi.waitFor(() => bus.js.publish(subjectOf(token), "", { timeout: 1_000 }), WAIT);
      await delay(STALE_AFTER_MS);
      expect(await ask(token)).toBe(503);
      cluster.reunite(local);
      const freshMs = await timeUntil(isFresh);
      process.stderr.write(`isolated: stale after ${staleMs} ms, fresh ${freshMs} ms after it is back\n`);
      expect(await ask(token)).toBe(401);
    },
    60_000,
  );
});

describe("a gateway whose consumers are at a server that stalls", () => {
  test("the server leads the cluster and no stream: the gateway has new messages within 2 s", async () => {
    await moveLeaders(bus, other, allStreams(ONE_LOG));
    // The third server must have complete copies: without it there is no majority while this server stalls.
    await untilJoined();
    await moveConsumers(bus, meta, STATION_LOG.name);
    await vi.waitFor(() => expect(isFresh()).toBe(true), WAIT);
    cluster.signalNode(meta, "SIGSTOP");
    await delay(FOLLOWER_MS);
    expect(isFresh()).toBe(true);
    const startedAtMs = performance.now();
    await station.handOver();
    process.stderr.write(
      `stalled: three commits are visible after ${Math.round(performance.now() - startedAtMs)} ms\n`,
    );
    expect(gateway.replicas.stations.state(STATION_ID)?.intent).not.toBeNull();
    expect(isFresh()).toBe(true);
    cluster.signalNode(meta, "SIGCONT");
    // The earlier consumers deliver their messages now. These are not new.
    await delay(BUS_LIMITS.feedHeartbeatMs * 2);
    expect(gateway.replicas.stations.state(STATION_ID)).toEqual(station.state());
  });
});

describe("a feed whose server stalls", () => {
  test("no consumer can be made: the feed continues at another server, and does not start over", async () => {
    await moveLeaders(bus, other, allStreams(ONE_LOG));
    await untilJoined();
    const served = await connectTo(meta, SILENT);
    const subject = "$KV.LEASES.host.test";
    let [newest, resets, stored] = [0, 0, 0];
    const feed = openFeed(served, {
      stream: "KV_LEASES",
      filter: "$KV.LEASES.host.>",
      onMessage: ({ sequence }) => {
        newest = sequence;
      },
      onReset: () => {
        resets += 1;
      },
      log: SILENT,
    });
    await bus.js.publish(subject, "");
    await feed.caughtUp;
    cluster.signalNode(meta, "SIGSTOP");
    // The bucket keeps one message of a subject. So the last message that the feed has read is gone when it reads elsewhere.
    const endMs = performance.now() + LEFT_WITHIN_MS;
    while (performance.now() < endMs) {
      stored = (await bus.js.publish(subject, "")).seq;
      await delay(250);
    }
    await vi.waitFor(() => expect(newest).toBe(stored), { timeout: 1_000, interval: 20 });
    expect([served.nc.getServer() === hostOf(meta), resets]).toEqual([false, 0]);
    cluster.signalNode(meta, "SIGCONT");
    feed.stop();
    await served.close();
  });
});

test("a process that goes to another server while it asks: the silence of the first one does not count there", async () => {
  const url = [local, other].map((node) => cluster.nodeUrl(node)).join();
  // Some of the connections leave at the moment of the next check, which would also make them leave.
  const leaving = Array.from({ length: 16 }, async (_, index) => {
    let lost = 0;
    const warn = (_fields: object, message: string): void => void (lost += Number(message === QUORUM_LOST));
    const served = await connectTo(local, { info: () => undefined, warn }, url);
    return async (): Promise<number> => {
      await delay(BUS_LIMITS.quorumFreshMs + index * 100);
      const hasLeft = served.nc.getServer() === hostOf(other);
      lost = 0;
      if (!hasLeft) await served.nc.reconnect();
      await delay(BUS_LIMITS.quorumFreshMs);
      await served.close();
      return lost;
    };
  });
  const processes = await Promise.all(leaving);
  cluster.isolate(local);
  expect(await Promise.all(processes.map((leave) => leave()))).toEqual(processes.map(() => 0));
  cluster.reunite(local);
  await untilJoined();
});

test("starts while a server is cut off: all processes and commands work at another server, and their warning is true", async () => {
  await moveLeaders(bus, other, allStreams(ONE_LOG));
  const leader = await metaLeader(cluster);
  // The leader of the cluster would answer for ten more seconds.
  const cutOff = NODES.find((node) => node !== leader && node !== other) ?? local;
  const warnings: string[] = [];
  const log = { info: () => undefined, warn: (_fields: object, message: string) => void warnings.push(message) };
  cluster.isolate(cutOff);
  const startedAtMs = performance.now();
  // The client chooses the first server by chance: about four of them begin at the cut-off one.
  const started = await Promise.all(
    Array.from({ length: STARTS }, (_, index) =>
      connectBus({ url: cluster.url(), name: "started", log, awaitsQuorum: index % 2 === 0 }),
    ),
  );
  const tookMs = performance.now() - startedAtMs;
  process.stderr.write(`started: ${Math.round(tookMs)} ms\n`);
  expect(started.map(({ nc }) => nc.getServer())).not.toContain(hostOf(cutOff));
  expect(tookMs).toBeLessThan(STARTED_MS);
  const sentence = `The NATS at ${hostOf(cutOff)} (NATS_URL) runs, but reaches no majority of its cluster: start the servers that are down, and check that all reach each other. This process tries the other servers of NATS_URL, and goes on by itself.`;
  expect(warnings.filter((warning) => warning !== sentence)).toEqual([]);
  await Promise.all(started.map((each) => each.close()));
  cluster.reunite(cutOff);
  await untilJoined();
}, 60_000);

describe("a process whose server is cut off", () => {
  const lines: string[] = [];
  const log = {
    info: (_fields: object, message: string) => void lines.push(message),
    warn: (_fields: object, message: string) => void lines.push(`warn: ${message}`),
  };
  let served: Bus;
  beforeAll(async () => {
    served = await connectTo(local, log);
    await moveLeaders(bus, other, allStreams(ONE_LOG));
    await untilJoined();
  });
  afterAll(() => served.close());

  test("the other servers have a majority: the process works at another server within 3 s", async () => {
    cluster.isolate(local);
    const startedAtMs = performance.now();
    await delay(LEFT_WITHIN_MS);
    expect([served.nc.getServer() === hostOf(local), served.isUp()]).toEqual([false, true]);
    await served.js.publish(subjectOf("dp_00_majority"), "", { timeout: 2_000 });
    process.stderr.write(`left: works after ${Math.round(performance.now() - startedAtMs)} ms at most\n`);
    await vi.waitFor(() => expect(lines).toContain("a majority of the NATS cluster answers again"), WAIT);
    expect(lines.filter((line) => line.startsWith("warn"))).toEqual([`warn: ${QUORUM_LOST}`]);
    cluster.reunite(local);
    await untilJoined();
  });

  test("no server has a majority: the process logs it once, and waits longer before each change of the server", async () => {
    lines.length = 0;
    let changes = 0;
    const stop = served.onChange((isUp) => {
      if (isUp) changes += 1;
    });
    for (const node of NODES) cluster.isolate(node);
    await delay(NO_MAJORITY_MS);
    expect(served.hasQuorum()).toBe(false);
    for (const node of NODES) cluster.reunite(node);
    stop();
    expect(changes).toBeGreaterThan(0);
    // After 2 s and 5 s; the next time would be after 11 s.
    expect(changes).toBeLessThanOrEqual(2);
    expect(lines.filter((line) => line.startsWith("warn"))).toEqual([`warn: ${QUORUM_LOST}`]);
    await vi.waitFor(() => expect(served.hasQuorum()).toBe(true), WAIT);
  });
});
