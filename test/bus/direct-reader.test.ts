/** Reads by direct get: a request may reach the copy of a stalled server, which never answers. */
import type { NatsConnection } from "nats";
import { beforeAll, describe, expect, test } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { readBatch } from "../../services/bus/direct-reader.ts";
import { QUIET } from "../support/quiet-log.ts";
import type { TestServer } from "../support/servers.ts";
import { startPreparedBus } from "../support/start-bus.ts";

const STREAM = "STATION_LOG_0";
const READ = { stream: STREAM, from: 1, most: 10 };

let nats: TestServer;
let bus: Bus;

beforeAll(async () => {
  const started = await startPreparedBus();
  ({ nats, bus } = started);
  for (const station of [1, 2, 3]) await bus.js.publish(`station.log.0.00.${station}`, "commit");
  return started.stop;
});

/** The same connection, but its first requests never arrive. It counts all requests. */
function losing(lost: number, real = bus.nc): { nc: NatsConnection; requests: () => number } {
  let requests = 0;
  const nc = Object.create(real) as NatsConnection;
  nc.subscribe = real.subscribe.bind(real);
  nc.publish = (...message) => {
    requests += 1;
    if (requests > lost) real.publish(...message);
  };
  return { nc, requests: () => requests };
}

describe("readBatch", () => {
  test("two requests reach a copy that never answers: it asks again and returns each message once", async () => {
    const { nc, requests } = losing(2);
    const messages = await readBatch(nc, { ...READ, timeoutMs: 10_000, askAgainMs: 10 });
    expect(messages.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    expect(requests()).toBeGreaterThanOrEqual(3);
  });

  test("no copy answers: it throws `no_copy_answers` after its time, and asks no more", async () => {
    const { nc, requests } = losing(Number.POSITIVE_INFINITY);
    const read = readBatch(nc, { ...READ, timeoutMs: 100, askAgainMs: 10 });
    await expect(read).rejects.toMatchObject({ code: "no_copy_answers" });
    const asked = requests();
    await expect(readBatch(nc, { ...READ, timeoutMs: 100 })).rejects.toMatchObject({ code: "no_copy_answers" });
    expect(requests()).toBe(asked + 1);
  });

  test("the connection is closed during the read: it throws `no_copy_answers`, and no other error", async () => {
    const other = await connectBus({ url: nats.url, name: "closing", log: QUIET });
    const { nc } = losing(Number.POSITIVE_INFINITY, other.nc);
    const read = readBatch(nc, { ...READ, timeoutMs: 5_000, askAgainMs: 10 });
    await Promise.all([expect(read).rejects.toMatchObject({ code: "no_copy_answers" }), other.close()]);
  });
});
