/** Processes at two servers that are cut off from each other, while a third server reaches both. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import { detoursOf } from "../../services/bus/server-links.ts";
import { BUCKETS, CREDENTIALS } from "../../services/bus/streams.ts";
import { PROCESS_HERE } from "../../services/bus/subjects.ts";
import { startSpreading } from "../../services/relay/spread-leaders.ts";
import { createLog } from "../../services/runtime/log.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { QUIET } from "../support/quiet-log.ts";
import { ELECTION_MS } from "./faults.ts";
import { allStreams, leaderNow, moveLeaders } from "./leaders.ts";
import { NatsCluster, NODES, type NodeName } from "./nats-cluster.ts";

/** When one direction is cut, one side misses the other only after the other has left. So silence and check count twice. */
const LEFT = { timeout: 7_000, interval: 50 };
/** A process asks each bucket in its turn, one a second. */
const LEADER_MISSED = { timeout: 1_500 * BUCKETS.length + 4_000, interval: 50 };
/** A follower elects 4 to 9 s after its leader's last message. A relay that only misses reports learns of the cut after 5 s. */
const LED_BY_THIRD = { timeout: 4_000, interval: 50 };
const CONNECTED = { timeout: 5_000, interval: 50 };
/** Until the servers have connected again and a check has found this. */
const REJOINED = { timeout: 20_000, interval: 200 };
/** Until the connections of the checks have ended. */
const CLOSED = { timeout: 20_000, interval: 100 };
const CUT = "two NATS servers are cut off from each other; the process goes to one that reaches both";
const PROCESSES_AT_EACH = 3;

interface Process {
  readonly bus: Bus;
  /** The warnings that it has logged, with the servers that they name. */
  readonly warnings: { readonly message: string; readonly between: unknown }[];
}

const SILENT = createLog({ service: "test", level: "silent" });

let cluster: NatsCluster;
const processes: Process[] = [];

const serverOf = ({ bus }: Process): NodeName | undefined =>
  NODES.find((node) => new URL(cluster.nodeUrl(node)).port === bus.nc.getServer().split(":")[1]);
const at = (node: NodeName): Process[] => processes.filter((process) => serverOf(process) === node);
const cutsLogged = () => processes.flatMap(({ warnings }) => warnings).filter(({ message }) => message === CUT);

/** Connects processes to random servers until each server has its number of them. */
async function fill(nodes: readonly NodeName[] = NODES): Promise<void> {
  while (nodes.some((node) => at(node).length < PROCESSES_AT_EACH)) {
    const warnings: Process["warnings"] = [];
    const warn = (fields: { between?: unknown }, message: string): void =>
      void warnings.push({ message, between: fields.between });
    // One server has two addresses, as in a list with its name and its IP address.
    const bus = await connectBus({
      url: `${cluster.url()},${cluster.nodeUrl("n1").replace("127.0.0.1", "localhost")}`,
      name: "test",
      log: { info: () => undefined, warn },
      awaitsQuorum: true,
    });
    const node = serverOf({ bus, warnings });
    if (node !== undefined && nodes.includes(node) && at(node).length < PROCESSES_AT_EACH)
      processes.push({ bus, warnings });
    else await bus.close();
  }
}

async function closeAll(): Promise<void> {
  await Promise.all(processes.splice(0).map(({ bus }) => bus.close()));
}

beforeAll(async () => {
  cluster = await NatsCluster.start();
  // Without buckets no majority could answer.
  const bus = await connectBus({ url: cluster.url(), name: "test", log: QUIET });
  await vi.waitFor(() => ensureStreams(bus, { replicas: NODES.length, logs: 1 }), { timeout: 20_000 });
  await bus.close();
});
afterAll(() => cluster.stop());
afterEach(async () => {
  for (const node of NODES) {
    cluster.signalNode(node, "SIGCONT");
    cluster.reunite(node);
  }
  await closeAll();
});

async function connectionsOfChecks(): Promise<readonly string[]> {
  type Connections = { readonly connections: readonly { readonly name?: string }[] };
  const all = await Promise.all(NODES.map((node) => cluster.monitor<Connections>(node, "connz")));
  const names = all.flatMap(({ connections }) => connections.map(({ name = "" }) => name));
  return names.filter((name) => name.endsWith("(links)"));
}

/** Every process answers every other one. A process that has just gone to a server may not be connected yet. */
async function expectAllReached(): Promise<void> {
  await vi.waitFor(() => Promise.all(processes.map(({ bus }) => bus.nc.flush())), CONNECTED);
  const serving = processes.map(({ bus }, index) =>
    bus.nc.subscribe(`asked.${index}`, { callback: (_, message) => void message.respond("here") }),
  );
  const all = processes.flatMap(({ bus }) => processes.map((_, index) => ({ bus, subject: `asked.${index}` })));
  await vi.waitFor(
    () => Promise.all(all.map(({ bus, subject }) => bus.nc.request(subject, "", { timeout: 500 }))),
    CONNECTED,
  );
  for (const each of serving) each.unsubscribe();
}

describe("two servers that are cut off from each other", () => {
  it.each([
    ["in both directions", () => cluster.cut("n0", "n2"), NODES],
    ["in one direction, without a process at the third", () => cluster.cutOneWay("n2", "n0"), ["n0", "n2"]],
  ] as const)("%s: their processes go to the third, and all reach each other", async (_, cut, nodes) => {
    await fill(nodes);
    const [{ bus }] = processes as [Process];
    // Spreads the leaders as the relay does: a process whose buckets all have their leader at the other side leaves unchecked.
    for (const [index, { name }] of BUCKETS.entries())
      await moveLeaders(bus, NODES[index % NODES.length] as NodeName, [`KV_${name}`]);
    await delay(2 * BUS_LIMITS.processHereMs);
    cut();
    await vi.waitFor(() => expect(at("n1")).toHaveLength(processes.length), LEFT);
    await expectAllReached();
    // Each process changes its server once.
    const between = ["n0", "n2"];
    expect(cutsLogged()).toEqual(Array.from({ length: 2 * PROCESSES_AT_EACH }, () => ({ message: CUT, between })));
  });

  it("only the relay at the third one knows it, where others report already: their processes go there", async () => {
    await fill(["n0", "n1"]);
    const bus = at("n1").at(-1)?.bus as Bus;
    const buckets = BUCKETS.map(({ name }) => `KV_${name}`);
    await moveLeaders(bus, "n1", buckets);
    await delay(2 * BUS_LIMITS.processHereMs);
    const stopWatching = bus.watchLinks();
    cluster.cut("n0", "n2");
    await vi.waitFor(() => expect(at("n1")).toHaveLength(processes.length), LEFT);
    stopWatching();
  });

  it("without a process at the other one, which leads a bucket: the processes go to the third", async () => {
    await fill(["n0"]);
    const [{ bus }] = processes as [Process];
    await moveLeaders(bus, "n2", [`KV_${CREDENTIALS.name}`]);
    cluster.cut("n0", "n2");
    await vi.waitFor(() => expect(at("n1")).toHaveLength(processes.length), LEADER_MISSED);
    expect(cutsLogged()).toHaveLength(PROCESSES_AT_EACH);
  });
});

it("a server without processes, a stalled one, and other messages: no process leaves", async () => {
  await fill();
  const [{ bus }] = at("n2") as [Process];
  const stopWatching = bus.watchLinks();
  for (const payload of ["", "no JSON", "{}"]) bus.nc.publish(PROCESS_HERE, payload);
  let received = 0;
  bus.nc.subscribe(PROCESS_HERE, { callback: () => void (received += 1) });
  const turns = (2 * BUS_LIMITS.serverMissedMs) / BUS_LIMITS.processHereMs;
  await delay(turns * BUS_LIMITS.processHereMs);
  // About two processes at each server send, and not all.
  expect(received).toBeGreaterThan(NODES.length);
  expect(received).toBeLessThan(processes.length * turns);
  await Promise.all(at("n0").map((process) => process.bus.close()));
  await delay(BUS_LIMITS.serverMissedMs + 2 * BUS_LIMITS.linksMs);
  cluster.signalNode("n1", "SIGSTOP");
  await delay(BUS_LIMITS.serverMissedMs + 2 * BUS_LIMITS.linksMs);
  cluster.signalNode("n1", "SIGCONT");
  expect(cutsLogged()).toEqual([]);
  // The one that watches keeps its connections, one to each other address.
  const kept = bus.nc.getServers().length - 1;
  await vi.waitFor(async () => expect(await connectionsOfChecks()).toHaveLength(kept), CLOSED);
  stopWatching();
  await vi.waitFor(async () => expect(await connectionsOfChecks()).toEqual([]), CLOSED);
});

describe("the relay moves all leaders to the third server before the others elect", () => {
  it.each([
    ["its process is at one of the two", ["n0", "n2"], ["n0", "n2"]],
    ["all processes are at the third", ["n1"], ["n0", "n2"]],
    ["one of the two leads all", NODES, ["n0"]],
  ] as const)("%s", async (_, nodes, leading) => {
    await fill(nodes);
    const [{ bus }] = processes as [Process];
    const streams = allStreams(ONE_LOG);
    for (const [index, stream] of streams.entries()) {
      await moveLeaders(bus, leading[index % leading.length] as NodeName, [stream]);
    }
    const leaders = async () => await Promise.all(streams.map((stream) => leaderNow(bus, stream)));
    const byThird = streams.map(() => "n1");
    const spreading = startSpreading({ bus, log: SILENT, logs: ONE_LOG, metrics: { movedLeader: () => undefined } });
    cluster.cut("n0", "n2");
    await vi.waitFor(async () => expect(await leaders()).toEqual(byThird), LED_BY_THIRD);
    if (leading.length === 1) {
      // The leaders stay there. While the cluster itself elects, no server reports the leader of a stream.
      await delay(ELECTION_MS);
      expect((await leaders()).filter((leader) => leader !== undefined && leader !== "n1")).toEqual([]);
    }
    expect([...bus.cutOff()]).toEqual(["n0", "n2"]);
    cluster.join("n0", "n2");
    await vi.waitFor(() => expect(bus.cutOff().size).toBe(0), REJOINED);
    await spreading.stop();
    await vi.waitFor(async () => expect(await connectionsOfChecks()).toEqual([]), CLOSED);
  });
});

describe("the way around a cut", () => {
  const whole = { a: ["a", "b", "c"], b: ["a", "b", "c"], c: ["a", "b", "c"] };
  const of = (links: Record<string, readonly string[]>) =>
    detoursOf(new Map(Object.entries(links).map(([name, received]) => [name, new Set(received)])));

  it.each([
    ["none, while each receives from each", whole, undefined],
    ["c, when b does not receive from a", { ...whole, b: ["b", "c"] }, "c"],
    ["c, when a does not receive from b", { ...whole, a: ["a", "c"] }, "c"],
    ["none, when no third is linked to a", { a: ["a"], b: ["b", "c"], c: ["b", "c"] }, undefined],
    ["none, when no third is linked to b", { a: ["a", "c"], b: ["b"], c: ["a", "c"] }, undefined],
    ["none, when the third misses a in one direction", { ...whole, b: ["b", "c"], c: ["b", "c"] }, undefined],
    ["none, when no third was reached", { a: ["a"], b: ["b"] }, undefined],
    [
      "d, which reaches more than c",
      {
        a: ["a", "c", "d", "e"],
        b: ["b", "c", "d", "e"],
        c: ["a", "b", "c", "d"],
        d: ["a", "b", "c", "d", "e"],
        e: ["a", "b", "d", "e"],
      },
      "d",
    ],
    [
      "none, when each server is cut off from one",
      { a: ["a", "c", "d"], b: ["b", "c", "d"], c: ["a", "b", "c"], d: ["a", "b", "d"] },
      undefined,
    ],
    ["none, when a was not reached", { b: ["b", "c"], c: ["b", "c"] }, undefined],
  ] as const)("of a and b: %s", (_, links, through) => {
    const found = of(links).filter(({ between }) => between.join() === "a,b");
    expect(found).toEqual(through === undefined ? [] : [{ between: ["a", "b"], through }]);
  });
});
