/** How a command and a process start while most servers of the cluster are down, or while a stream has too few copies. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { connectBus } from "../../services/bus/connection.ts";
import { checkStreams, ensureStreams } from "../../services/bus/ensure-streams.ts";
import { checkOwner } from "../../services/bus/installation.ts";
import { readInstallation } from "../../services/db/installation.ts";
import { checkPulse } from "../../services/db/pulse.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";
import { NatsCluster, NODES, type NodeName } from "./nats-cluster.ts";

let cluster: NatsCluster;
let database: TestDatabase;
/** The servers that are away, and the one that is left. */
let away: readonly NodeName[];
let left: NodeName;
/** The errors of preparations that did not name what never changes afterwards. */
const refusals: unknown[] = [];
const lines: string[] = [];
const WAITS: unknown = expect.stringMatching(/^warn .* reaches no majority of .* goes on by itself\.$/);
const log = {
  info: (_fields: object, message: string) => void lines.push(`info ${message}`),
  warn: (_fields: object, message: string) => void lines.push(`warn ${message}`),
};

beforeAll(async () => {
  [cluster, database] = await Promise.all([NatsCluster.start(), cloneDatabase()]);
  for (const layout of [{}, { replicas: NODES.length }, { logs: 1 }])
    refusals.push(await prepareBus(cluster.url(), database.url, layout).catch((error: unknown) => error));
  await prepareBus(cluster.url(), database.url, { replicas: NODES.length, logs: 1 });
  // A former leader of JetStream answers for ten more seconds when it is alone. So another server stays.
  const leader = await cluster.leader();
  left = leader === "n0" ? "n1" : "n0";
  away = NODES.filter((node) => node !== left);
  await Promise.all(away.map((node) => cluster.killNode(node)));
});
afterAll(async () => {
  await cluster.stop();
  await database.drop();
});

describe("the first preparation of a cluster", () => {
  it("no number of copies or of logs: refused with an example of both, because the number of logs never changes", () => {
    const sentence =
      /^The NATS at \S+ \(NATS_URL\) is a new cluster: choose how many copies it keeps of each stream, and among how many logs the stations are divided, for example `npm run migrate -- --replicas 3 --logs 6`; the number of logs never changes\.$/;
    const refused = { code: "layout_needed", message: expect.stringMatching(sentence) as string };
    expect(refusals).toMatchObject([refused, refused, refused]);
  });
});

describe("a start while the cluster has no quorum", () => {
  it("a command: ends with one sentence and the next step", async () => {
    const url = cluster.nodeUrl(left);
    await expect(connectBus({ url, name: "test", log, withinMs: 500 })).rejects.toMatchObject({
      code: "nats_no_quorum",
      message: `The NATS at ${new URL(url).host} (NATS_URL) runs, but reaches no majority of its cluster: start the servers that are down, and check that all reach each other.`,
    });
  });

  it("a command that searches for a majority while the last server ends: ends too", async () => {
    lines.length = 0;
    const started = connectBus({ url: cluster.url(), name: "test", log, withinMs: 4_000 }).catch((error) => error);
    await vi.waitFor(() => expect(lines).toEqual([WAITS]), { timeout: 10_000 });
    await cluster.killNode(left);
    const late = new Promise((resolve) => setTimeout(() => resolve("late"), 20_000));
    const ended: unknown = await Promise.race([started, late]);
    await cluster.startNode(left);
    expect(ended).toMatchObject({ code: "nats_unreachable" });
  });

  it("a process: waits with one line in the log, and continues by itself when the quorum is back", async () => {
    lines.length = 0;
    const url = cluster.url();
    const started = (async () => {
      const bus = await connectBus({ url, name: "test", log, awaitsQuorum: true });
      const layout = await checkStreams(bus, { log });
      await bus.close();
      return layout;
    })();
    const isWaiting = started.then(
      () => false,
      () => false,
    );
    await vi.waitFor(() => expect(lines).toHaveLength(1), { timeout: 10_000 });
    // Long enough for several attempts, and for a change of the server that finds no other one.
    const late = new Promise((resolve) => setTimeout(() => resolve(true), 3_000));
    expect(await Promise.race([isWaiting, late])).toBe(true);
    expect(lines).toEqual([WAITS]);
    await cluster.startNode(away[0] as NodeName);
    expect(await started).toMatchObject({ replicas: NODES.length });
    expect(lines).toContain("info NATS stores messages again");
    expect(lines.filter((line) => line.startsWith("warn"))).not.toContainEqual(expect.stringMatching(/lost|switched/));
  });

  it("a process that loses the quorum between its checks: waits with a line in the log, and continues by itself", async () => {
    const installation = await readInstallation(database.url);
    // The leader of the bucket would answer for ten more seconds when it is alone. So the process is at the other server.
    const running = [left, away[0] as NodeName];
    const leader = await bucketLeader();
    const bus = await connectBus({
      url: cluster.nodeUrl(running.find((node) => node !== leader) ?? left),
      name: "test",
      log,
      awaitsQuorum: true,
    });
    await checkStreams(bus, { log });
    lines.length = 0;
    await cluster.killNode(leader);
    const owner = { bus, installation, log };
    const checked = Promise.all([checkOwner(owner), checkPulse(owner, database.url)]);
    checked.catch(() => undefined);
    await vi.waitFor(() => expect(lines).toContainEqual(WAITS), { timeout: 20_000 });
    await cluster.startNode(leader);
    await checked;
    await bus.close();
  });
});

/** The server that leads the bucket of the installation. */
async function bucketLeader(): Promise<NodeName> {
  const bus = await connectBus({ url: cluster.nodeUrl(left), name: "test", log });
  const { cluster: group } = await bus.jsm.streams.info("KV_INSTALLATION");
  await bus.close();
  return NODES.find((node) => node === group?.leader) ?? left;
}

describe("a preparation while one of three servers is down", () => {
  it("refused with the name of that server and the next step", async () => {
    const bus = await connectBus({ url: cluster.nodeUrl(left), name: "test", log });
    // The leader may have been restarted: then it knows only the id of the peer that is down.
    const sentence = new RegExp(
      `has no complete copy of the stream KV_INSTALLATION on (${away[1]}|peer \\w{8}): start those that are down, remove one that is gone for good \\(\`nats server cluster peer-remove\`\\), and try again\\.$`,
    );
    const layout = { replicas: NODES.length, logs: 1, withinMs: 0 };
    const settled = { timeout: 30_000, interval: 100 };
    const refused = { code: "nats_incomplete", message: expect.stringMatching(sentence) as string };
    await vi.waitFor(() => expect(ensureStreams(bus, layout)).rejects.toMatchObject(refused), settled);
    await bus.close();
  });
});

describe("a start while a stream has fewer copies than the bus was given", () => {
  it("refused with the setting's name and the next step, and the stream stays as it is", async () => {
    const bus = await connectBus({ url: cluster.nodeUrl(left), name: "test", log });
    const settled = { timeout: 30_000, interval: 100 };
    await vi.waitFor(() => bus.jsm.streams.update("KV_LEASES", { num_replicas: 1 }), settled);
    const reason = "has a stream KV_LEASES whose num_replicas is not what this version needs";
    await expect(checkStreams(bus)).rejects.toMatchObject({
      code: "bus_not_migrated",
      message: `The NATS at ${bus.nc.getServer()} (NATS_URL) ${reason}: run \`npm run migrate\`, and start again.`,
    });
    expect((await bus.jsm.streams.info("KV_LEASES")).config.num_replicas).toBe(1);
    await bus.close();
  });
});
