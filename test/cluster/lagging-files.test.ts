/** Statement files on three NATS servers of which one lags: data that its copy lacks is not lost. */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import { readFile, storeFile } from "../../services/bus/statement-files.ts";
import { STATEMENT_FILES } from "../../services/bus/streams.ts";
import { createLog } from "../../services/runtime/log.ts";
import { ONE_LOG } from "../support/one-log.ts";
import { allStreams, moveLeaders } from "./leaders.ts";
import { NatsCluster, type NodeName } from "./nats-cluster.ts";

const STREAM = `OBJ_${STATEMENT_FILES.name}`;
const LEADER: NodeName = "n0";
const LAGGING: NodeName = "n2";
/** Any of the three servers may answer a read. The chance that the lagging one answers none of these is 1 in 16,000. */
const READS = 24;
/** The lagging copy lacks this many messages: a copy that works may lack the newest few. */
const SEVERAL = 6;
/** A server checks each second whether its copy is complete, and answers reads from then on. */
const READABLE_AFTER_MS = 2_500;
const WAIT = { timeout: 20_000, interval: 50 };

let cluster: NatsCluster;
let bus: Bus;
beforeAll(async () => {
  cluster = await NatsCluster.start();
  const log = createLog({ service: "test", level: "silent" });
  bus = await connectBus({ url: cluster.nodeUrl(LEADER), name: "test", log });
  await vi.waitFor(() => ensureStreams(bus, { replicas: 3, logs: 1 }), WAIT);
  // One server leads everything, so that the lag of another server causes no election.
  await moveLeaders(bus, LEADER, [...allStreams(ONE_LOG), STREAM]);
  await delay(READABLE_AFTER_MS);
});
afterAll(async () => {
  await bus.close();
  await cluster.stop();
});

async function* pieces(...parts: readonly Uint8Array[]): AsyncIterable<Uint8Array> {
  yield* parts;
}

test("a file is read while one of the three servers is stalled", async () => {
  const content = randomBytes(1);
  const { name } = await storeFile(bus, pieces(content));
  cluster.signalNode(LAGGING, "SIGSTOP");
  try {
    for (let nth = 0; nth < READS; nth += 1) {
      const parts: Uint8Array[] = [];
      for await (const part of readFile(bus, name)) parts.push(part);
      expect(Buffer.concat(parts).equals(content)).toBe(true);
    }
  } finally {
    cluster.signalNode(LAGGING, "SIGCONT");
  }
}, 60_000);

test("a file that a majority has stored is read, whichever copy answers", async () => {
  cluster.lag(LAGGING);
  await vi.waitFor(async () => {
    await storeFile(bus, pieces(randomBytes(1)));
    const { replicas = [] } = (await bus.jsm.streams.info(STREAM)).cluster ?? {};
    expect(replicas.find((replica) => replica.name === LAGGING)?.lag).toBeGreaterThan(SEVERAL);
  }, WAIT);
  const content = randomBytes(3 * BUS_LIMITS.fileChunkBytes + 1);
  const { name } = await storeFile(bus, pieces(content));
  for (let nth = 0; nth < READS; nth += 1) {
    const parts: Uint8Array[] = [];
    for await (const part of readFile(bus, name)) parts.push(part);
    expect(Buffer.concat(parts).equals(content)).toBe(true);
  }
}, 60_000);
