/** nats-server on a disk that is, or becomes, full: whether it says that it cannot store, and what it keeps. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "nats";
import { afterAll, afterEach, expect, inject, test } from "vitest";
import { type NatsServer, startNats, untilUnhealthy } from "../../deploy/embedded/nats.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const KILOBYTE = 1_024;
const disk = mountSmallDisk("nats-health", 16);
const token = randomBytes(12).toString("hex");
const servers: NatsServer[] = [];
let nc: NatsConnection | undefined;

afterEach(async () => {
  await nc?.close();
  for (const server of servers.splice(0)) await server.child.stop();
});
afterAll(disk.remove);

async function start(): Promise<NatsServer> {
  const files = { folder: join(disk.path, "nats"), logFile: join(disk.path, "nats-server.log") };
  const server = await startNats({ binary: inject("natsBinary"), ...files, token });
  servers.push(server);
  nc = await connect({ servers: `127.0.0.1:${server.port}`, token });
  return server;
}

/** Publishes messages of 64 kilobytes until one is not acknowledged; returns the sequences of the others. */
async function publishUntilRefused(connection: NatsConnection, atMost: number): Promise<number[]> {
  const sequences: number[] = [];
  const js = jetstream(connection, { timeout: 5_000 });
  try {
    while (sequences.length < atMost) {
      sequences.push((await js.publish("kept", new Uint8Array(64 * KILOBYTE))).seq);
    }
  } catch {
    // The disk is full.
  }
  return sequences;
}

test("a stream that cannot be written: is noticed, and a new start has everything that was acknowledged", async () => {
  const server = await start();
  const connection = nc as NatsConnection;
  await (await jetstreamManager(connection)).streams.add({ name: "KEPT", subjects: ["kept"] });
  const over = new AbortController();
  const unhealthy = untilUnhealthy(server.healthUrl, over.signal);
  const sequences = await publishUntilRefused(connection, 10_000);
  expect(await unhealthy).toMatch(/no space left on device/);
  disk.grow(64);
  // It does not recover by itself, however much space there is.
  expect((await fetch(server.healthUrl)).status).toBe(503);
  over.abort();
  await connection.close();
  await server.child.stop();

  await start();
  const manager = await jetstreamManager(nc as NatsConnection);
  const { state } = await manager.streams.info("KEPT");
  expect([state.first_seq, state.last_seq, state.messages]).toEqual([1, sequences.at(-1), sequences.length]);
  expect(await publishUntilRefused(nc as NatsConnection, 10)).toHaveLength(10);
});

test("a start with little space: takes messages as long as there is any, and all of it later", async () => {
  // What is left is less than what is stored already: its own limit would be less than that, too.
  disk.fill(2 * KILOBYTE * KILOBYTE);
  const server = await start();
  expect(await publishUntilRefused(nc as NatsConnection, 20)).toHaveLength(20);
  disk.empty();
  expect(await publishUntilRefused(nc as NatsConnection, 100)).toHaveLength(100);
  const root = new URL("/varz", server.healthUrl);
  // The monitoring port answers below its secret path only.
  expect((await fetch(root)).status).toBe(404);
});
