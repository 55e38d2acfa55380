/** The audit copy on a cluster: the copier's server and the leader of the log are killed, and a server is stalled. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startAuditService } from "../../services/audit/service.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { createLog } from "../../services/runtime/log.ts";
import type { Service } from "../../services/runtime/service.ts";
import { moveLeaders } from "../cluster/leaders.ts";
import { NatsCluster, NODES, type NodeName } from "../cluster/nats-cluster.ts";
import { ONE_LOG, STATION_LOG, stationLogSubject } from "../support/one-log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { cloneDatabase, type TestDatabase } from "../support/servers.ts";
import { committedEvents, copiedEvents, newStation } from "./audit-world.ts";
import type { ScriptedStation } from "./scripted-station.ts";

const log = createLog({ service: "audit", level: "silent" });
const ELECTION = { timeout: 30_000, interval: 20 };
/** The longest time after the election until the copy is complete. */
const RECOVERED_MS = 5_000;

/** The copier reads each collection by several requests, of which a third goes to the stalled server. */
const COLLECTIONS = 12;

/** No station has this id. Messages at its subject are not commits. */
const NO_STATION = 900_000;

let cluster: NatsCluster;
let testDatabase: TestDatabase;
let database: Database;
let writer: Bus;
let reader: Bus;
let audit: Service;
let station: ScriptedStation;
let intents = 0;
/** What the audit service has logged. */
const lines: string[] = [];
const note = (_fields: object, message: string): void => void lines.push(message);

beforeAll(async () => {
  [cluster, testDatabase] = await Promise.all([NatsCluster.start(), cloneDatabase()]);
  await prepareBus(cluster.url(), testDatabase.url, { replicas: NODES.length, logs: 1 });
  database = openDatabase({ url: testDatabase.url });
  writer = await connectBus({ url: cluster.nodeUrl("n0"), name: "test", log });
  // The reader does not use the server of the writer, which no test kills.
  const natsUrl = [cluster.nodeUrl("n1"), cluster.nodeUrl("n2")].join(",");
  reader = await connectBus({ url: natsUrl, name: "audit", log });
  const settings = { natsUrl, databaseUrl: testDatabase.url, logLevel: "silent" as const };
  const noted = Object.assign(createLog({ service: "audit", level: "silent" }), { info: note, warn: note });
  audit = await startAuditService({ bus: reader, logs: ONE_LOG, log: noted, settings, environment: {} });
  await elected();
  station = await (await newStation(writer, database)).open();
});
afterAll(async () => {
  await audit.stop();
  await Promise.all([reader.close(), writer.close(), closeDatabase(database)]);
  await cluster.stop();
  await testDatabase.drop();
});

async function collect(): Promise<void> {
  intents += 1;
  await station.collectCash(intents);
}

async function untilCopied(timeout: number): Promise<number> {
  const startedAtMs = performance.now();
  const copied = (): Promise<string[]> => copiedEvents(database, station.facts.stationId);
  await expect.poll(copied, { timeout, interval: 20 }).toEqual(committedEvents(station));
  return performance.now() - startedAtMs;
}

/** Resolves when the log has a leader and stores a message. */
async function elected(): Promise<void> {
  const subject = stationLogSubject(NO_STATION);
  await vi.waitFor(() => writer.js.publish(subject, "no commit", { timeout: 500, retries: 0 }), ELECTION);
}

async function leader(): Promise<NodeName> {
  const { cluster: known } = await writer.jsm.streams.info(STATION_LOG.name);
  return NODES.find((node) => node === known?.leader) ?? "n0";
}

/** The server that the copier is connected to. */
function serverOfReader(): NodeName {
  return reader.nc.getServer() === new URL(cluster.nodeUrl("n1")).host ? "n1" : "n2";
}

async function kill(node: NodeName): Promise<void> {
  await collect();
  await untilCopied(RECOVERED_MS);
  await cluster.killNode(node);
  await elected();
  await collect();
  const tookMs = await untilCopied(RECOVERED_MS);
  process.stderr.write(`${node} killed: copied ${Math.round(tookMs)} ms after the election\n`);
  await cluster.startNode(node);
  await vi.waitFor(async () => {
    const { cluster: known } = await writer.jsm.streams.info(STATION_LOG.name);
    expect(known?.replicas?.every(({ current }) => current)).toBe(true);
  }, ELECTION);
}

describe("the audit copy on a cluster", () => {
  it("the copier's server is killed: the copy is complete within 5 s of the election", async () => {
    await kill(serverOfReader());
  });

  it("the leader of the log is killed: the copy is complete within 5 s of the election", async () => {
    const node = await leader();
    // The writer's server must keep running, so another server becomes the leader.
    if (node === "n0") await writer.nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${STATION_LOG.name}`, "");
    await vi.waitFor(async () => expect(await leader()).not.toBe("n0"), ELECTION);
    await kill(await leader());
  });

  it("a server with a copy of the log is stalled: the copier reads the other copies, and logs nothing", async () => {
    await moveLeaders(writer, "n0", [STATION_LOG.name]);
    await untilCopied(RECOVERED_MS);
    lines.length = 0;
    const stalled = serverOfReader() === "n1" ? "n2" : "n1";
    cluster.signalNode(stalled, "SIGSTOP");
    try {
      for (let nth = 0; nth < COLLECTIONS; nth += 1) {
        await collect();
        await untilCopied(RECOVERED_MS);
      }
      expect(lines).toEqual([]);
    } finally {
      cluster.signalNode(stalled, "SIGCONT");
    }
  });
});
