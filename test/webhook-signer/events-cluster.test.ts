/** The events of robotics on a cluster: the server that leads the signers' consumer dies. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ROBOTICS_EVENTS } from "../../services/bus/streams.ts";
import { roboticsEventSubject } from "../../services/bus/subjects.ts";
import { createLog } from "../../services/runtime/log.ts";
import { type EventFollower, followEvents } from "../../services/webhook-signer/intake.ts";
import { NatsCluster, NODES, type NodeName } from "../cluster/nats-cluster.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";

const log = createLog({ service: "test", level: "silent" });
const CONSUMER = "webhook-signer";
const ELECTION = { timeout: 30_000, interval: 50 };
/** Longer than the timeout of a request for the consumer. */
const WITHOUT_LEADER_MS = 6_000;
/** How long after the election an event may wait. */
const RECOVERED_MS = 5_000;

let cluster: NatsCluster;
let database: TestDatabase;
let bus: Bus;
let follow: () => EventFollower;
let follower: EventFollower | undefined;
const taken: number[] = [];

beforeAll(async () => {
  [cluster, database] = await Promise.all([NatsCluster.start(), cloneDatabase()]);
  await prepareBus(cluster.url(), database.url, { replicas: NODES.length, logs: 1 });
  // No test kills the server to which the signer is connected.
  bus = await connectBus({ url: cluster.nodeUrl("n0"), name: "test", log });
  const take = async (events: readonly { eventId: number }[]): Promise<void> => {
    taken.push(...events.map(({ eventId }) => eventId));
  };
  follow = () => followEvents({ bus, log, take });
});
afterAll(async () => {
  await follower?.stop();
  await bus.close();
  await cluster.stop();
  await database.drop();
});

async function publish(eventId: number): Promise<void> {
  const event = {
    organizationId: 1,
    filialId: 1,
    consumerId: null,
    createdAt: new Date().toISOString(),
    eventType: "robotics.paused",
    payload: { filial_id: 1 },
  };
  const text = JSON.stringify({ eventId, event });
  await vi.waitFor(() => bus.js.publish(roboticsEventSubject(1), text, { timeout: 500, retries: 0 }), ELECTION);
}

async function leader(): Promise<NodeName> {
  const { cluster: known } = await bus.jsm.consumers.info(ROBOTICS_EVENTS.name, CONSUMER);
  return NODES.find((node) => node === known?.leader) ?? "n0";
}

it("no server leads the stream when the signer starts: events are taken once a server leads it", async () => {
  await publish(1);
  await Promise.all([cluster.killNode("n1"), cluster.killNode("n2")]);
  follower = follow();
  await delay(WITHOUT_LEADER_MS);
  expect(taken).toEqual([]);
  await Promise.all([cluster.startNode("n1"), cluster.startNode("n2")]);
  await expect.poll(() => taken, ELECTION).toEqual([1]);
});

it("the server that leads the consumer is killed: events are taken within 5 s of the election", async () => {
  await publish(2);
  await expect.poll(() => taken, ELECTION).toEqual([1, 2]);
  await vi.waitFor(async () => {
    if ((await leader()) !== "n0") return;
    await bus.nc.request(`$JS.API.CONSUMER.LEADER.STEPDOWN.${ROBOTICS_EVENTS.name}.${CONSUMER}`, "");
    throw new Error("The consumer is led by the signer's own server.");
  }, ELECTION);
  await cluster.killNode(await leader());
  await publish(3);
  await vi.waitFor(leader, ELECTION);
  const electedAtMs = performance.now();
  await expect.poll(() => taken, { timeout: RECOVERED_MS, interval: 20 }).toContain(3);
  process.stderr.write(`taken ${Math.round(performance.now() - electedAtMs)} ms after the election\n`);
});
