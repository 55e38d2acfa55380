/** The cluster of the trials: its servers reach each other only through the links, and a test can cut a link. */
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "nats";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { NatsCluster, NODES, type NodeName } from "./nats-cluster.ts";

const WAIT = { timeout: 20_000, interval: 50 };
let cluster: NatsCluster;
const connections = new Map<NodeName, NatsConnection>();

/** One connection to one server, which never goes elsewhere. */
async function clientOf(node: NodeName): Promise<NatsConnection> {
  const known = connections.get(node);
  if (known !== undefined) return known;
  const url = new URL(cluster.nodeUrl(node));
  const nc = await connect({ servers: url.host, token: url.username, ignoreClusterUpdates: true, timeout: 2_000 });
  connections.set(node, nc);
  return nc;
}

beforeAll(async () => {
  cluster = await NatsCluster.start();
  const jsm = await jetstreamManager(await clientOf("n0"));
  await vi.waitFor(() => jsm.streams.add({ name: "TRIAL", subjects: ["trial.>"], num_replicas: 3 }), WAIT);
});
afterAll(async () => {
  await Promise.all([...connections.values()].map((nc) => nc.close()));
  await cluster.stop();
});

async function append(node: NodeName, timeout = 1_000): Promise<number> {
  return (await jetstream(await clientOf(node), { timeout }).publish("trial.entry", "1", { timeout })).seq;
}

async function leader(): Promise<NodeName> {
  return await vi.waitFor(async () => {
    const jsm = await jetstreamManager(await clientOf("n0"), { timeout: 1_000 });
    const name = (await jsm.streams.info("TRIAL")).cluster?.leader;
    expect(NODES).toContain(name);
    return name as NodeName;
  }, WAIT);
}

describe("a cluster of three servers", () => {
  test("its routes: all go through the links", async () => {
    for (const node of NODES) {
      // A stream needs only a quorum, so the third server may still be joining.
      await vi.waitFor(async () => {
        const { routes } = await cluster.monitor<{ routes: { remote_name: string; port: number }[] }>(node, "routez");
        expect(new Set(routes.map(({ remote_name }) => remote_name)).size).toBe(2);
      }, WAIT);
    }
    expect(cluster.connectionsBetween("n0", "n1")).toBeGreaterThan(0);
    expect(cluster.connectionsBetween("n1", "n2")).toBeGreaterThan(0);
    expect(cluster.connectionsBetween("n0", "n2")).toBeGreaterThan(0);
  });

  test("a follower that is isolated: stores nothing, the others go on, and it catches up when it is back", async () => {
    const follower = NODES.find((node) => node !== "n0") === (await leader()) ? "n2" : "n1";
    const other = NODES.find((node) => node !== follower) as NodeName;
    // After an election the server may not know the new leader yet.
    await vi.waitFor(() => append(other), WAIT);
    cluster.isolate(follower);
    await expect(append(follower)).rejects.toThrow();
    const sequence = await vi.waitFor(() => append(other), WAIT);
    cluster.reunite(follower);
    expect(await vi.waitFor(() => append(follower), WAIT)).toBeGreaterThan(sequence);
  });

  test("a leader that is killed: another one is elected, and nothing acknowledged is lost", async () => {
    const killed = await leader();
    const other = NODES.find((node) => node !== killed) as NodeName;
    const before = await vi.waitFor(() => append(other), WAIT);
    await cluster.killNode(killed);
    const startedAtMs = performance.now();
    const after = await vi.waitFor(() => append(other), WAIT);
    process.stderr.write(`election after a kill: ${Math.round(performance.now() - startedAtMs)} ms\n`);
    expect(after).toBeGreaterThan(before);
    await cluster.startNode(killed);
  });
});
