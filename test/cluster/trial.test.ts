/**
 * Collections on three NATS servers while servers and processes fail: the short form of a trial. Then, in the same world, one
 * server dies, and stations whose log another server leads have only a short gap (design §2.5). The long form of the trial is
 * `npm run chaos`.
 *
 *   CLUSTER_SEED=42 CLUSTER_FAULTS=20 npx vitest run test/cluster/trial.test.ts
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CREDENTIALS, INSTALLATION, LEASES, LIVENESS, SESSIONS, SWITCHES } from "../../services/bus/streams.ts";
import { Random } from "../chaos/random.ts";
import { expectOlderGateways } from "../support/contract-check.ts";
import { addCanaries, watchCanary } from "./canaries.ts";
import { type ClusterWorld, CORE_KINDS, startClusterWorld } from "./cluster-world.ts";
import { drawFaults, TARGETS, type Targets } from "./draw-faults.ts";
import { History } from "./history.ts";
import { leaderNow, metaLeader, moveLeaders } from "./leaders.ts";
import { NODES, type NodeName } from "./nats-cluster.ts";
import { checkOut, type OlderCheckout } from "./older-checkout.ts";
import { kindOf, SLOW_MS, waitedMs } from "./outages.ts";
import { StationDriver } from "./station-driver.ts";
import { runTrial } from "./trial.ts";
import { PAUSE_MS } from "./trial-client.ts";
import { upgradeSteps } from "./upgrade.ts";

const FAULTS = Number(process.env.CLUSTER_FAULTS ?? "2");
const SEED = Number(process.env.CLUSTER_SEED ?? "20261122");
const TARGET = (process.env.CLUSTER_TARGETS ?? "all") as Targets;
if (!(TARGET in TARGETS)) throw new Error(`CLUSTER_TARGETS is none of ${Object.keys(TARGETS).join(", ")}.`);

/** An existing folder that receives the logs of all processes. */
const LOGS = process.env.CLUSTER_LOGS;
/** A commit. When it is set, the trial is a rolling upgrade from this commit. */
const UPGRADE_FROM = process.env.CLUSTER_UPGRADE_FROM;
const WHAT = UPGRADE_FROM === undefined ? `${FAULTS} faults (CLUSTER_SEED=${SEED})` : `an upgrade from ${UPGRADE_FROM}`;
const UPGRADE_MS = 30 * 60_000;
const IS_SHORT = UPGRADE_FROM === undefined && process.env.CLUSTER_FAULTS === undefined;
/**
 * The short form has one log for each server and one process for the core services. It leaves out the other services, payments
 * by QR, and all kinds of faults but these: a server and a host that are stopped in good order, and a server that is killed.
 */
const SHORT = { kinds: CORE_KINDS, logs: NODES.length } as const;
/** In the short form one station at each log. */
const STATIONS = Number(process.env.CLUSTER_STATIONS ?? (IS_SHORT ? SHORT.logs : "6"));

/** Every station works for this time before the test moves the leaders, which takes some seconds. */
const CALM_MS = 1_000;
/** An election takes this long, with the work after it. */
const ELECTED_MS = 12_000;
/** Until the copies of the server are complete and the relay has checked the leaders often enough to move them. */
const SPREAD_WITHIN_MS = 90_000;
/** The streams that all stations use. */
const IN_COMMON = [...[CREDENTIALS, SESSIONS, SWITCHES, LEASES].map(({ name }) => `KV_${name}`), LIVENESS.name];

let world: ClusterWorld;
let older: OlderCheckout | undefined;
beforeAll(async () => {
  older = UPGRADE_FROM === undefined ? undefined : await checkOut(UPGRADE_FROM);
  if (older !== undefined) expectOlderGateways();
  world = await startClusterWorld(STATIONS, { older, ...(IS_SHORT ? SHORT : {}) });
}, 300_000);
afterAll(async () => {
  if (LOGS !== undefined)
    for (const name of world.processes.keys()) writeFileSync(join(LOGS, `${name}.log`), world.log(name));
  await world.stop();
  await older?.remove();
});

const leaderOfEachLog = async (): Promise<Map<string, NodeName | undefined>> => {
  const leaders = new Map<string, NodeName | undefined>();
  for (const { name } of world.logs.all) leaders.set(name, await leaderNow(world.bus, name));
  return leaders;
};

test(
  `${WHAT}: nothing is lost, doubled, stuck, wrong, stale, late or slow`,
  async () => {
    const print = (line: string): void => void process.stderr.write(`${line}\n`);
    const options = { targets: TARGET, kinds: world.kinds };
    const draws = older === undefined ? drawFaults(FAULTS, new Random(SEED), options) : upgradeSteps(older);
    const trial = await runTrial(world, { seed: SEED, draws, fitsMachine: !IS_SHORT, print });
    const { lost, doubled, stuck, stale, late, history } = trial;
    const wrong = [...history.wrongErrors, ...trial.wrong];
    for (const sentence of trial.slow) print(sentence);
    // The short form runs beside other tests, so it would measure the machine.
    const slow = IS_SHORT ? [] : trial.slow;
    print(`${history.ended.length} collections; later: ${JSON.stringify(Object.fromEntries(history.later))}`);
    expect({ lost, doubled, stuck, stale, late, slow, wrong }).toEqual({
      lost: [],
      doubled: [],
      stuck: [],
      stale: [],
      late: [],
      slow: [],
      wrong: [],
    });
    expect(history.ended.length).toBeGreaterThan(STATIONS);
  },
  UPGRADE_FROM === undefined ? 60_000 + FAULTS * 150_000 : UPGRADE_MS,
);

// The long form does not need this test: its faults include deaths of servers.
if (IS_SHORT) {
  test("the server that leads the cluster, logs and all shared streams is killed: stations of other logs go on", async () => {
    const history = new History();
    const drivers = world.stations.map(
      (one, index) => new StationDriver(world, one, history, new Random(SEED + index)),
    );
    const work = Promise.all(drivers.map((driver) => driver.run()));
    work.catch(() => undefined);
    // The victim also leads the cluster itself: no consumer can be made while it is away.
    const victim = await metaLeader(world.nats);
    const [canary] = await addCanaries(world, 1);
    if (canary === undefined) throw new Error("There is no canary.");
    await delay(CALM_MS);
    for (const { name, index } of world.logs.all) {
      await moveLeaders(world.bus, NODES[index % NODES.length] as NodeName, [name]);
    }
    // When the killed server led all buckets, processes leave their servers to search for a majority.
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
      const during = history.steps.filter(
        ({ step, startedAtMs, endedAtMs }) => kindOf(step) === kind && endedAtMs >= fromMs && startedAtMs <= toMs,
      );
      for (const { stationId } of world.stations) {
        // The gap is the time from the request to its good answer: a slow answer counts like a failure.
        const ofStation = during.filter((one) => one.stationId === stationId);
        const gapMs = Math.round(Math.max(0, ...ofStation.map(waitedMs)));
        const line = `${kind} at station ${stationId} (${isHit(stationId) ? "the log elects" : "the log has its leader"}): ${gapMs} ms`;
        process.stderr.write(`${line}\n`);
        if (!isHit(stationId) && gapMs > SLOW_MS + PAUSE_MS) late.push(line);
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
        expect(NODES.map((node) => counts.get(node)?.length)).toEqual(NODES.map(() => SHORT.logs / NODES.length));
      },
      { timeout: SPREAD_WITHIN_MS, interval: 1_000 },
    );
  }, 120_000);
}
