/** The bus takes its time from a server whose clock is wrong. The servers share one clock here, so the test changes answers. */
import type { NatsConnection } from "nats";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type BusClock, reportClock, startBusClock } from "../../services/bus/bus-clock.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { BUCKETS } from "../../services/bus/streams.ts";
import { QUIET } from "../support/quiet-log.ts";
import { moveLeaders } from "./leaders.ts";
import { NatsCluster, NODES, type NodeName } from "./nats-cluster.ts";

const WAIT = { timeout: 30_000, interval: 50 };
/** A measurement on a busy machine has at most this error. */
const ERROR_MS = 250;
const WRONG_MS = 60_000;

let cluster: NatsCluster;
let bus: Bus;
let clock: BusClock & { stop(): void };
/** By how much each server's clock is ahead. */
const aheadMs = new Map<string, number>();
const lines: string[] = [];

beforeAll(async () => {
  cluster = await NatsCluster.start({ isDirect: true });
  bus = await connectBus({ url: cluster.url(), name: "test", log: QUIET });
  await vi.waitFor(() => ensureStreams(bus, { replicas: NODES.length, logs: 1 }), WAIT);
  clock = startBusClock(withServerClocks(bus.nc));
  const note = (fields: object, message: string): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
  reportClock({ clock, log: { info: note, warn: note } });
});
afterAll(async () => {
  clock.stop();
  await bus.close();
  await cluster.stop();
});

/** The same connection; the time in each stream's info is that of its leader's clock. */
function withServerClocks(real: NatsConnection): NatsConnection {
  const nc = Object.create(real) as NatsConnection;
  nc.request = async (...asked) => {
    const answer = await real.request(...asked);
    const info = answer.json<{ ts: string; cluster: { leader: string } }>();
    const ts = new Date(Date.parse(info.ts) + (aheadMs.get(info.cluster.leader) ?? 0)).toISOString();
    return Object.assign(Object.create(answer), { json: () => ({ ...info, ts }) });
  };
  return nc;
}

async function lead(leaders: Readonly<Record<string, NodeName>>): Promise<void> {
  for (const { name } of BUCKETS) await moveLeaders(bus, leaders[name] ?? "n1", [`KV_${name}`]);
}

async function measuredErrorMs(): Promise<number> {
  await clock.measure();
  return Math.abs(clock.nowMs() - Date.now());
}

test.each([
  ["three servers lead", { LEASES: "n0", CREDENTIALS: "n1", SESSIONS: "n2" }],
  ["two servers lead: the clock of the machine decides", { LEASES: "n0" }],
] as const)(
  "%s: the time of one server that is wrong does not count, and a log line names the server",
  async (_, leaders) => {
    lines.length = 0;
    await lead(leaders);
    expect(await measuredErrorMs()).toBeLessThan(ERROR_MS);
    aheadMs.set("n0", WRONG_MS);
    expect(await measuredErrorMs()).toBeLessThan(ERROR_MS);
    expect([clock.wrongServer(), clock.isWrong()]).toEqual(["n0", false]);
    aheadMs.clear();
    expect(await measuredErrorMs()).toBeLessThan(ERROR_MS);
    expect(lines).toEqual([
      'the clock of this NATS server is wrong: the clock of another server counts; correct the clock {"server":"n0"}',
      'the clock of this NATS server is right again, or it leads LEASES no more {"server":"n0"}',
    ]);
  },
);

test("the machine's clock is wrong and those of all servers are right: the time of the servers counts", async () => {
  await lead({ LEASES: "n0" });
  for (const node of NODES) aheadMs.set(node, -WRONG_MS);
  await clock.measure();
  expect(Math.abs(clock.nowMs() - (Date.now() - WRONG_MS))).toBeLessThan(ERROR_MS);
  expect([clock.wrongServer(), clock.isWrong()]).toEqual([undefined, true]);
  aheadMs.clear();
});
