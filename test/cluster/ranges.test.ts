/**
 * One of three servers dies: stations whose log another server leads notice little, whatever else the dead one led (design
 * §2.5).
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CREDENTIALS, INSTALLATION, LEASES, LIVENESS, SESSIONS, SWITCHES } from "../../services/bus/streams.ts";
import { Random } from "../chaos/random.ts";
import { addCanaries, type Canary, watchCanary } from "./canaries.ts";
import { type ClusterWorld, startClusterWorld } from "./cluster-world.ts";
import { History } from "./history.ts";
import { leaderNow, metaLeader, moveLeaders } from "./leaders.ts";
import { NODES, type NodeName } from "./nats-cluster.ts";
import { StationDriver } from "./station-driver.ts";
import { PAUSE_MS } from "./trial-client.ts";

const SEED = 20261123;
const STATIONS = 9;
/** Work at every station before the fault. */
const CALM_MS = 5_000;
/** An election, and what follows it. */
const ELECTED_MS = 12_000;
/** The longest gap at a station whose log has its leader. */
const GAP_MS = 2_000;
/** The server's copies are complete, and the relay has checked the leaders often enough to move those that it should. */
const SPREAD_WITHIN_MS = 90_000;
/** Everything that stations have in common. */
const IN_COMMON = [...[CREDENTIALS, SESSIONS, SWITCHES, LEASES].map(({ name }) => `KV_${name}`), LIVENESS.name];

let world: ClusterWorld;
let canary: Canary;
/** Leads the cluster itself, too: no consumer can be made while it is away. */
let victim: NodeName;
beforeAll(async () => {
  world = await startClusterWorld(STATIONS);
  victim = await metaLeader(world.nats);
  [canary] = (await addCanaries(world, 1)) as [Canary];
}, 300_000);
afterAll(() => world.stop());

const leaderOfEachLog = async (): Promise<Map<string, NodeName | undefined>> => {
  const leaders = new Map<string, NodeName | undefined>();
  for (const { name } of world.logs.all) leaders.set(name, await leaderNow(world.bus, name));
  return leaders;
};

test("a server is killed that leads the cluster, logs, and all that stations have in common: the stations of the other logs go on", async () => {
  const history = new History();
  const drivers = world.stations.map((one, index) => new StationDriver(world, one, history, new Random(SEED + index)));
  const work = Promise.all(drivers.map((driver) => driver.run()));
  work.catch(() => undefined);
  await delay(CALM_MS);
  for (const { name, index } of world.logs.all) {
    await moveLeaders(world.bus, NODES[index % NODES.length] as NodeName, [name]);
  }
  // Where a server leads all buckets, processes leave their servers to search for a majority.
  const other = NODES.find((node) => node !== victim) as NodeName;
  await moveLeaders(world.bus, other, [`KV_${INSTALLATION.name}`]);
  await moveLeaders(world.bus, victim, IN_COMMON);
  await delay(1_000);
  const leaders = await leaderOfEachLog();
  const fromMs = performance.now();
  const over = new AbortController();
  const watched = watchCanary(world, canary, over.signal);
  await world.nats.killNode(victim);
  await delay(ELECTED_MS);
  const toMs = performance.now();
  await world.nats.startNode(victim);
  for (const driver of drivers) driver.stop();
  await work;
  over.abort();
  const isHit = (stationId: number): boolean => leaders.get(world.logs.of(stationId).name) === victim;
  const late: string[] = [];
  for (const kind of ["display", "heartbeat", "command"] as const) {
    const kindOf = (step: string): string => (step === "display" || step === "heartbeat" ? step : "command");
    const during = history.steps.filter(
      ({ step, startedAtMs, endedAtMs }) => kindOf(step) === kind && endedAtMs >= fromMs && startedAtMs <= toMs,
    );
    for (const { stationId } of world.stations) {
      // From the request to its good answer: a slow answer is a gap as well as a failure.
      const ofStation = during.filter((one) => one.stationId === stationId);
      const gapMs = Math.round(Math.max(0, ...ofStation.map((one) => one.endedAtMs - one.startedAtMs)));
      const line = `${kind} at station ${stationId} (${isHit(stationId) ? "the log elects" : "the log has its leader"}): ${gapMs} ms`;
      process.stderr.write(`${line}\n`);
      if (!isHit(stationId) && gapMs > GAP_MS + PAUSE_MS) late.push(line);
    }
  }
  const { wrongErrors: wrong, stuck } = history;
  expect(new Set(world.stations.map(({ stationId }) => isHit(stationId)))).toEqual(new Set([true, false]));
  expect({ late, wrong, stuck, revoked: await watched }).toEqual({ late: [], wrong: [], stuck: [], revoked: [] });
}, 240_000);

test("the server is back: the relay gives it its share of the logs again", async () => {
  await vi.waitFor(
    async () => {
      const counts = Map.groupBy((await leaderOfEachLog()).values(), (leader) => leader);
      expect(NODES.map((node) => counts.get(node)?.length)).toEqual([2, 2, 2]);
    },
    { timeout: SPREAD_WITHIN_MS, interval: 1_000 },
  );
}, 120_000);
