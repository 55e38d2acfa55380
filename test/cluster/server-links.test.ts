/** Processes at two servers that are cut off from each other, while a third server reaches both. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import { cutOffFrom, type ServerReport } from "../../services/bus/server-links.ts";
import { SERVER_REPORTS } from "../../services/bus/subjects.ts";
import { QUIET } from "../support/quiet-log.ts";
import { NatsCluster, NODES, type NodeName } from "./nats-cluster.ts";

/** Two servers miss each other for `serverMissedMs`, the process checks it twice, and connects again. */
const LEFT = { timeout: 6_000, interval: 50 };
const CUT = "this NATS server is cut off from another one of its cluster; the process goes to a third one";
const PROCESSES_AT_EACH = 3;

interface Process {
  readonly bus: Bus;
  /** What it has logged, with the server that it names. */
  readonly warnings: { readonly message: string; readonly cutOffFrom: unknown }[];
}

let cluster: NatsCluster;
const processes: Process[] = [];

const serverOf = ({ bus }: Process): NodeName | undefined =>
  NODES.find((node) => new URL(cluster.nodeUrl(node)).host === bus.nc.getServer());
const at = (node: NodeName): Process[] => processes.filter((process) => serverOf(process) === node);
const cutsLogged = () => processes.flatMap(({ warnings }) => warnings).filter(({ message }) => message === CUT);

/** Connects to servers by chance until each has its processes. */
async function fill(): Promise<void> {
  while (NODES.some((node) => at(node).length < PROCESSES_AT_EACH)) {
    const warnings: Process["warnings"] = [];
    const warn = (fields: { cutOffFrom?: unknown }, message: string): void =>
      void warnings.push({ message, cutOffFrom: fields.cutOffFrom });
    const bus = await connectBus({
      url: cluster.url(),
      name: "test",
      log: { info: () => undefined, warn },
      awaitsQuorum: true,
    });
    const node = serverOf({ bus, warnings });
    if (node !== undefined && at(node).length < PROCESSES_AT_EACH) processes.push({ bus, warnings });
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

/** Every process answers every other one. */
async function expectAllReached(): Promise<void> {
  const serving = processes.map(({ bus }, index) =>
    bus.nc.subscribe(`asked.${index}`, { callback: (_, message) => void message.respond("here") }),
  );
  await Promise.all(processes.map(({ bus }) => bus.nc.flush()));
  await vi.waitFor(
    () =>
      Promise.all(
        processes.flatMap(({ bus }) =>
          processes.map((_, index) => bus.nc.request(`asked.${index}`, "", { timeout: 500 })),
        ),
      ),
    { timeout: 2_000 },
  );
  for (const each of serving) each.unsubscribe();
}

describe("two servers that are cut off from each other", () => {
  it.each([
    ["in both directions", () => cluster.cut("n0", "n2")],
    ["in one direction", () => cluster.cutOneWay("n2", "n0")],
  ] as const)("%s: the processes at one of them go to another server, and all reach each other", async (_, cut) => {
    await fill();
    await delay(BUS_LIMITS.serverMissedMs);
    cut();
    await vi.waitFor(() => expect(at("n2").length).toBe(0), LEFT);
    await expectAllReached();
    expect(at("n0").length).toBeGreaterThanOrEqual(PROCESSES_AT_EACH);
    expect(cutsLogged()).toEqual(Array.from({ length: PROCESSES_AT_EACH }, () => ({ message: CUT, cutOffFrom: "n0" })));
  });
});

it("a server that stalls, and what is no report: no process leaves for a cut, and few processes of each server report", async () => {
  await fill();
  const [{ bus }] = processes as [Process];
  for (const payload of ["", "no JSON", "{}"]) bus.nc.publish(SERVER_REPORTS, payload);
  let reports = 0;
  bus.nc.subscribe(SERVER_REPORTS, { callback: () => void (reports += 1) });
  const turns = (2 * BUS_LIMITS.serverMissedMs) / BUS_LIMITS.serverReportMs;
  await delay(turns * BUS_LIMITS.serverReportMs);
  // All processes report in their first turns.
  const most = NODES.length * (BUS_LIMITS.serverReporters * turns + PROCESSES_AT_EACH);
  expect(reports).toBeGreaterThan(NODES.length * (turns - 2));
  expect(reports).toBeLessThan(most);
  cluster.signalNode("n0", "SIGSTOP");
  await delay(BUS_LIMITS.serverMissedMs + BUS_LIMITS.serverHeardMs);
  cluster.signalNode("n0", "SIGCONT");
  await delay(2 * BUS_LIMITS.serverReportMs);
  expect(cutsLogged()).toEqual([]);
  await expectAllReached();
});

describe("who is cut off from whom", () => {
  const report = (heardMs: Record<string, number>, connectedMs = 60_000): ServerReport => ({ connectedMs, heardMs });
  const whole = { a: report({ b: 100, c: 200 }), b: report({ a: 50, c: 100 }), c: report({ a: 300, b: 400 }) };
  const of = (server: string, reports: Record<string, ServerReport>) =>
    cutOffFrom(server, new Map(Object.entries(reports)));

  it.each([
    ["nobody, while all hear each other", whole, undefined],
    ["a, which b misses and c hears", { ...whole, b: report({ a: 3_100, c: 100 }) }, "a"],
    ["a, which b has never heard", { ...whole, b: report({ c: 100 }) }, "a"],
    ["a, which misses b", { ...whole, a: report({ b: 3_100, c: 100 }) }, "a"],
    ["nobody, when b is connected for a short time", { ...whole, b: report({ c: 100 }, 2_000) }, undefined],
    ["nobody, when a is connected for a short time", { ...whole, a: report({ c: 100 }, 2_000) }, undefined],
    ["nobody, when nobody hears a", { b: report({ a: 3_100, c: 100 }), c: report({ a: 3_000, b: 100 }) }, undefined],
    [
      "nobody, when the third does not hear b",
      { ...whole, b: report({ c: 100 }), c: report({ a: 100, b: 2_100 }) },
      undefined,
    ],
    ["nobody, without a third", { a: report({ b: 3_100 }), b: report({ a: 3_100 }) }, undefined],
  ] as const)("b: %s", (_, reports, expected) => {
    expect(of("b", reports)).toBe(expected);
    // Only the processes at one of the two leave.
    expect(of("a", reports)).toBe(undefined);
  });
});
