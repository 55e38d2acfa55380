/** The scan of a host on three NATS servers, of which one lags: the scan misses no commit that a majority has stored. */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { partitionOf } from "../../machines/partition.ts";
import { DEFAULT_MACHINE_SETTINGS } from "../../machines/settings.ts";
import { NO_KILL_SWITCHES } from "../../machines/standing.ts";
import { MACHINE_VERSION } from "../../machines/station/commit.ts";
import { step } from "../../machines/station/step.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { createLog } from "../../services/runtime/log.ts";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import type { Partition } from "../../services/stations/partition.ts";
import { LateWaits, type ScanDeps, scanStations } from "../../services/stations/scan.ts";
import { StationLog } from "../../services/stations/station-log.ts";
import { ONE_LOG, STATION_LOG } from "../support/one-log.ts";
import { allFollow, allStreams, moveLeaders } from "./leaders.ts";
import { NatsCluster, type NodeName } from "./nats-cluster.ts";

const SILENT = createLog({ service: "test", level: "silent" });
const LEADER: NodeName = "n0";
const LAGGING: NodeName = "n2";
const WAIT = { timeout: 20_000, interval: 50 };

let cluster: NatsCluster;
let bus: Bus;
let log: StationLog;
beforeAll(async () => {
  cluster = await NatsCluster.start();
  bus = await connectBus({ url: cluster.nodeUrl(LEADER), name: "test", log: SILENT });
  await vi.waitFor(() => ensureStreams(bus, { replicas: 3, logs: 1 }), WAIT);
  // One server leads everything, so that the lag of another one makes no election.
  await moveLeaders(bus, LEADER, allStreams(ONE_LOG));
  log = new StationLog(bus, ONE_LOG);
});
beforeEach(async () => {
  cluster.reunite(LAGGING);
  await allFollow(bus, [STATION_LOG.name]);
});
afterAll(async () => {
  log.close();
  await bus.close();
  await cluster.stop();
});

/** Stores the first commit of a station. A majority has stored it when this resolves. */
async function putStation(stationId: number): Promise<void> {
  const names = { organizationId: 1, filialId: 1, name: "Bar", currency: "EUR" };
  const station = { ...names, status: "active", revision: 1 } as const;
  const facts = { atMs: Date.now(), commandId: "test:put", actor: { kind: "registry", id: 0 } } as const;
  const next = step(null, {
    ...facts,
    command: { type: "station_put", stationId, station },
    recordedConfirmation: "none",
    switches: NO_KILL_SWITCHES,
    settings: DEFAULT_MACHINE_SETTINGS,
  });
  if (next.state === null) throw new Error("The station has a state.");
  const commit = { ...facts, ...next, state: next.state, machineVersion: MACHINE_VERSION, version: 1 };
  expect(await log.append(stationId, 0, commit)).toMatchObject({ kind: "stored" });
}

/** The bus, but its next consumer is at this server. `onAdded` runs before the scan learns of the consumer. */
function busWithConsumerAt(node: NodeName, onAdded: () => Promise<void>): Bus {
  const { consumers } = bus.jsm;
  const add: typeof consumers.add = async (stream, config) => {
    for (;;) {
      const added = await consumers.add(stream, config);
      if (added.cluster?.leader === node) {
        await onAdded();
        return added;
      }
      await consumers.delete(stream, added.name);
    }
  };
  const wrapped = { add, delete: consumers.delete.bind(consumers) };
  const jsm = { streams: bus.jsm.streams, consumers: wrapped } as unknown as Bus["jsm"];
  return { ...bus, jsm };
}

interface Seen {
  readonly wakes: number[];
  readonly late: number[];
}

function scanDeps(scanBus: Bus, lateCommitsMs = 0): ScanDeps & Seen {
  const [wakes, late]: number[][] = [[], []];
  const partition = { noteWake: (stationId: number) => void wakes?.push(stationId) } as unknown as Partition;
  return {
    bus: scanBus,
    log: SILENT,
    logs: ONE_LOG,
    partition: () => partition,
    lateWaits: new LateWaits(lateCommitsMs),
    onLateCommit: (stationId) => void late?.push(stationId),
    wakes: wakes ?? [],
    late: late ?? [],
  };
}

test("the scan reads a copy that lags: it fails, and the repeated scan has the newest commit", async () => {
  const stationId = 11;
  const scanBus = busWithConsumerAt(LAGGING, async () => {
    cluster.lag(LAGGING);
    await putStation(stationId);
  });
  const lagging = scanDeps(scanBus);
  const { signal } = new AbortController();
  const partitions = [partitionOf(stationId)];
  await expect(scanStations(lagging, STATION_LOG, partitions, signal)).rejects.toThrow("lags behind the leader");
  cluster.reunite(LAGGING);
  await allFollow(bus, [STATION_LOG.name]);
  const current = scanDeps(bus);
  await scanStations(current, STATION_LOG, partitions, signal);
  expect(current.wakes).toEqual([stationId]);
}, 60_000);

test("the copy lags after the scan: a late commit is received when the copy has it", async () => {
  const stationId = 12;
  const lateCommitsMs = 300;
  const deps = scanDeps(
    busWithConsumerAt(LAGGING, async () => undefined),
    lateCommitsMs,
  );
  const ended = new AbortController();
  await scanStations(deps, STATION_LOG, [partitionOf(stationId)], ended.signal);
  cluster.lag(LAGGING);
  await putStation(stationId);
  await pause(2 * lateCommitsMs);
  expect(deps.late).toEqual([]);
  cluster.reunite(LAGGING);
  await vi.waitFor(() => expect(deps.late).toEqual([stationId]), WAIT);
  ended.abort();
}, 60_000);

/** From this many partitions on, a scan has one consumer of the whole log. */
const WHOLE = Array.from({ length: STATION_LIMITS.scanWholeFrom }, (_, partition) => partition);

async function consumerCount(): Promise<number> {
  const { state } = await bus.jsm.streams.info(STATION_LOG.name);
  return state.consumer_count;
}

test("scans while an earlier one waits for late commits: one consumer, which waits for all of them", async () => {
  const stationId = 13;
  const lateCommitsMs = 3_000;
  const deps = scanDeps(bus, lateCommitsMs);
  const { signal } = new AbortController();
  await scanStations(deps, STATION_LOG, WHOLE, signal);
  await pause(500);
  const scannedAt = performance.now();
  for (const partitions of [[partitionOf(stationId)], WHOLE]) await scanStations(deps, STATION_LOG, partitions, signal);
  await vi.waitFor(async () => expect(await consumerCount()).toBe(1), { timeout: 1_500, interval: 50 });
  await putStation(stationId);
  await vi.waitFor(() => expect(deps.late).toEqual([stationId]), WAIT);
  await vi.waitFor(async () => expect(await consumerCount()).toBe(0), WAIT);
  expect(performance.now() - scannedAt).toBeGreaterThan(lateCommitsMs);
}, 60_000);

test("the log is made again while a scan waits for late commits: the wait ends, and no commit is late", async () => {
  const deps = scanDeps(bus, 60_000);
  await scanStations(deps, STATION_LOG, WHOLE, new AbortController().signal);
  await bus.jsm.streams.delete(STATION_LOG.name);
  await vi.waitFor(() => ensureStreams(bus, { replicas: 3, logs: 1 }), WAIT);
  await putStation(14);
  await vi.waitFor(() => expect(deps.lateWaits.leftMs(STATION_LOG.commits)).toBeLessThan(0), WAIT);
  await vi.waitFor(async () => expect(await consumerCount()).toBe(0), WAIT);
  expect(deps.late).toEqual([]);
}, 60_000);
