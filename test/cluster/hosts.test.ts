/** Hosts on three NATS servers, while one server lags or is lost: no wrong answer, and no needless take-over. */
import { setTimeout as delay } from "node:timers/promises";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Actor } from "../../machines/actor.ts";
import { PARTITION_COUNT } from "../../machines/partition.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import { decodeCommit, MACHINE_VERSION } from "../../machines/station/commit.ts";
import { step } from "../../machines/station/step.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import type {
  RequestedCommand,
  StationFailure,
  StationResponse,
} from "../../services/bus/messages/station-commands.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { LEASES } from "../../services/bus/streams.ts";
import { stationCommandSubject } from "../../services/bus/subjects.ts";
import { followSwitches } from "../../services/bus/switches-replica.ts";
import { createLog } from "../../services/runtime/log.ts";
import { StationHost } from "../../services/stations/host.ts";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import { addHostMetrics } from "../../services/stations/metrics.ts";
import { readStationsSettings } from "../../services/stations/settings.ts";
import { StationLog } from "../../services/stations/station-log.ts";
import { ONE_LOG, STATION_LOG, stationLogSubject } from "../support/one-log.ts";
import { allStreams, moveLeaders } from "./leaders.ts";
import { NatsCluster, type NodeName } from "./nats-cluster.ts";

let host: StationHost;
const SILENT = createLog({ service: "test", level: "silent" });
const LEADER: NodeName = "n0";
const OTHER: NodeName = "n1";
const LAGGING: NodeName = "n2";
const LEASE_STREAM = `KV_${LEASES.name}`;
/** Any of the three servers may answer a read. The chance that the lagging one answers none of these is 1 in 16,000. */
const STATION_IDS = Array.from({ length: 24 }, (_, index) => index + 1);
const ANA: Actor = { kind: "cashier", id: 7, name: "Ana" };
const BEN: Actor = { kind: "cashier", id: 8, name: "Ben" };
const WAIT = { timeout: 20_000, interval: 50 };

let cluster: NatsCluster;
let bus: Bus;
const stops: (() => Promise<void>)[] = [];

const connect = async (): Promise<Bus> => {
  const connected = await connectBus({ url: cluster.nodeUrl(LEADER), name: "test", log: SILENT });
  stops.push(() => connected.close());
  return connected;
};

const lines: { readonly msg: string }[] = [];
const LOG = pino({ level: "info" }, { write: (line: string) => lines.push(JSON.parse(line)) });

/** A host that keeps no state in memory. */
async function startHost(): Promise<StationHost> {
  const [hostBus, leaseBus, scanBus] = [await connect(), await connect(), await connect()];
  const switches = await followSwitches(hostBus, SILENT);
  const settings = readStationsSettings({ STATION_PASSIVATE_MS: "0" });
  const metrics = addHostMetrics(new Registry());
  const deps = {
    bus: hostBus,
    leaseBus,
    scanBus,
    log: LOG,
    logs: ONE_LOG,
    hostId: "host",
    switches,
    settings,
    metrics,
  };
  const started = new StationHost(deps);
  await started.start();
  stops.push(async () => {
    await started.stop();
    switches.stop();
  });
  await vi.waitFor(() => expect(started.owned().size).toBe(PARTITION_COUNT), WAIT);
  // For ten seconds after its scan a host also receives the commits of other hosts.
  await scanBus.close();
  return started;
}

async function askOnce(
  stationId: number,
  actor: Actor,
  command: RequestedCommand,
): Promise<StationResponse | StationFailure> {
  const request = JSON.stringify({ commandId: `test:${Math.random()}`, actor, command });
  const answer = await bus.nc.request(stationCommandSubject(stationId), request, { timeout: 5_000 });
  return answer.json<StationResponse | StationFailure>();
}

/** Runs a command on another host. Resolves when a majority has stored its commit. */
async function releaseElsewhere(log: StationLog, stationId: number): Promise<void> {
  const query = { last_by_subj: stationLogSubject(stationId) };
  const stored = await bus.jsm.streams.getMessage(STATION_LOG.name, query);
  if (stored === null) throw new Error("The station has no commit.");
  const { state, version } = decodeCommit(stored.string());
  const facts = { atMs: Date.now(), commandId: "elsewhere:1", actor: ANA };
  const next = step(state, {
    ...facts,
    command: { type: "lease_release" },
    recordedConfirmation: "none",
    switches: NO_KILL_SWITCHES,
    settings: DEFAULT_MACHINE_SETTINGS,
  });
  if (next.state === null) throw new Error("The station has a state.");
  const commit = { ...facts, ...next, machineVersion: MACHINE_VERSION, version: version + 1 };
  expect(await log.append(stationId, stored.seq, commit)).toMatchObject({ kind: "stored" });
}

beforeAll(async () => {
  cluster = await NatsCluster.start();
  bus = await connect();
  await vi.waitFor(() => ensureStreams(bus, { replicas: 3, logs: 1 }), WAIT);
  // One server leads everything, so that the lag of another server causes no election.
  await moveLeaders(bus, LEADER, allStreams(ONE_LOG));
  host = await startHost();
});
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
  await cluster.stop();
});

test("one of three servers lags: the lease that another host has released is never answered as held", async () => {
  const registry: Actor = { kind: "registry", id: 0 };
  const names = { organizationId: 1, filialId: 1, name: "Bar", currency: "EUR" };
  const station = { ...names, status: "active", revision: 1 } as const;
  for (const stationId of STATION_IDS) {
    const put = { type: "station_put", stationId, station } as const;
    await askStation(bus.nc, stationId, { commandId: "test:put", actor: registry, command: put });
    await askStation(bus.nc, stationId, { commandId: "test:take", actor: ANA, command: { type: "lease_acquire" } });
  }
  // The host keeps no state for longer than a tick.
  await delay(200);
  cluster.lag(LAGGING);
  const log = new StationLog(bus, ONE_LOG);
  stops.push(async () => log.close());
  for (const stationId of STATION_IDS) await releaseElsewhere(log, stationId);
  for (const stationId of STATION_IDS) {
    const answer = await askOnce(stationId, BEN, { type: "lease_renew" });
    expect(answer).toMatchObject({ reply: { ok: false, code: "lease_required" } });
  }
  cluster.reunite(LAGGING);
});

test("the leader of the log moves: the outcome of an append that it has lost is unknown at once, not after the time-out", async () => {
  const log = new StationLog(bus, ONE_LOG);
  stops.push(async () => log.close());
  const appends = { longestAfterReportMs: 0, lost: 0 };
  const moves = new AbortController();
  const reportedAtMs: number[] = [];
  const reports = bus.nc.subscribe(`$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.${STATION_LOG.name}`, {
    callback: () => void reportedAtMs.push(performance.now()),
  });
  const appendAgain = async (stationId: number): Promise<void> => {
    while (!moves.signal.aborted) {
      const newest = await vi.waitFor(() => log.load(stationId), WAIT);
      if (newest === null) throw new Error("The station has a commit.");
      const commit = { ...newest.commit, version: newest.commit.version + 1 };
      const startMs = performance.now();
      const outcome = await log.append(stationId, newest.sequence, commit);
      const endMs = performance.now();
      // Without a report the duration of the append depends on the machine, so it does not count.
      const reportMs = reportedAtMs.find((atMs) => atMs > startMs) ?? endMs;
      appends.longestAfterReportMs = Math.max(appends.longestAfterReportMs, endMs - reportMs);
      if (outcome.kind === "unknown" && String(outcome.cause).includes("a new leader")) appends.lost += 1;
    }
  };
  const writers = STATION_IDS.map(appendAgain);
  // Only an append that is under way while the leader moves is lost.
  for (let move = 0; move < 6 || (appends.lost === 0 && move < 30); move += 1) {
    await moveLeaders(bus, move % 2 === 0 ? OTHER : LEADER, [STATION_LOG.name]);
    await delay(300);
  }
  moves.abort();
  await Promise.all(writers);
  reports.unsubscribe();
  expect(appends.lost).toBeGreaterThan(0);
  expect(appends.longestAfterReportMs).toBeLessThan(STATION_LIMITS.appendMs / 2);
});

test("the leader of the leases is killed: the host holds what it held, and goes on after the election", async () => {
  await moveLeaders(bus, OTHER, [LEASE_STREAM]);
  await vi.waitFor(() => expect(host.owned().size).toBe(PARTITION_COUNT), WAIT);
  lines.length = 0;
  await cluster.killNode(OTHER);
  await vi.waitFor(() => expect(host.owned().size).toBe(0), WAIT);
  await vi.waitFor(() => expect(host.owned().size).toBe(PARTITION_COUNT), WAIT);
  const ask = askStation(bus.nc, STATION_IDS[0] ?? 0, {
    commandId: "test:after",
    actor: BEN,
    command: { type: "lease_acquire" },
  });
  expect((await ask).reply.ok).toBe(true);
  const messages = lines.map(({ msg }) => msg);
  for (const message of messages) expect(message).not.toMatch(/acquired|dropped|silent/);
  expect(messages).toContain("the lease is renewed again");
});
