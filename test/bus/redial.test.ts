/** How often a process dials a NATS server that accepts connections and does not serve them. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { connectBus } from "../../services/bus/connection.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import { Link } from "../cluster/link.ts";
import { startFaultyServer } from "../support/faulty-server.ts";
import { QUIET } from "../support/quiet-log.ts";
import { startNats, type TestServer } from "../support/servers.ts";

const OBSERVED_MS = 1_200;
/** The number of dials with the shortest possible random pauses: 0, 50, 100 and 200 ms, then 250 ms each. */
const MOST_DIALS = 8;

let nats: TestServer;
beforeAll(async () => {
  nats = await startNats();
});
afterAll(() => nats.stop());

describe("a server that accepts connections", () => {
  test.each([
    ["close", "the server there does not answer as a NATS server does (nats_no_greeting)"],
    ["silent", "the server does not answer (ETIMEDOUT)"],
  ] as const)("with the fault %s at the start: the number of dials is bounded", async (fault, why) => {
    const server = await startFaultyServer("nats://hidden@127.0.0.1:1", fault);
    const startedAtMs = performance.now();
    const failure = await connectBus({ url: server.url, name: "test", log: QUIET, withinMs: OBSERVED_MS }).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({
      code: "nats_unreachable",
      message: expect.stringContaining(`The NATS at 127.0.0.1:${server.port} (NATS_URL) cannot be used: ${why}; `),
    });
    expect(performance.now() - startedAtMs).toBeLessThan(OBSERVED_MS + BUS_LIMITS.dialMs + 500);
    expect(server.dials()).toBeLessThanOrEqual(MOST_DIALS);
    await server.stop();
  });

  test("and later closes them: the number of dials is bounded, and the bus is up soon after the server", async () => {
    const server = await startFaultyServer(nats.url, "none");
    const bus = await connectBus({ url: server.url, name: "test", log: QUIET });
    const dialsBefore = server.dials();
    server.become("close");
    server.cut();
    await delay(OBSERVED_MS);
    expect(bus.isUp()).toBe(false);
    expect(server.dials() - dialsBefore).toBeGreaterThan(2);
    expect(server.dials() - dialsBefore).toBeLessThanOrEqual(MOST_DIALS);
    server.become("none");
    await expect.poll(() => bus.isUp(), { timeout: BUS_LIMITS.redial.longestMs + 500, interval: 20 }).toBe(true);
    await bus.close();
    await server.stop();
  });

  test("and closes each one as soon as it is established: the number of dials is bounded", async () => {
    const server = await startFaultyServer(nats.url, "none");
    const bus = await connectBus({ url: server.url, name: "test", log: QUIET });
    const dialsBefore = server.dials();
    const cutting = bus.onChange((isUp) => {
      if (isUp) server.cut();
    });
    server.cut();
    await delay(OBSERVED_MS);
    expect(server.dials() - dialsBefore).toBeGreaterThan(2);
    expect(server.dials() - dialsBefore).toBeLessThanOrEqual(MOST_DIALS);
    cutting();
    await bus.close();
    await server.stop();
  });
});

describe("a server that is lost", () => {
  /** More messages than sockets and a link can hold. */
  const MESSAGES = 64;
  const BYTES = 512 * 1_024;
  const NOTICED_MS = BUS_LIMITS.pingMs * (BUS_LIMITS.unansweredPings + 1) + BUS_LIMITS.dialMs;
  /** For the connection to the other server, and for timers that fire late: the process needs all of `NOTICED_MS` before. */
  const CONNECTED_MS = 500;

  test("and does not read, so that the socket is full: the process connects to another server", async () => {
    const links = await Promise.all([Link.open(nats.port), Link.open(nats.port)]);
    const urls = links.map(({ port }) => nats.url.replace(`:${nats.port}`, `:${port}`));
    const bus = await connectBus({ url: urls.join(), name: "test", log: QUIET });
    const first = bus.nc.getServer();
    links.find(({ port }) => first.endsWith(`:${port}`))?.cut();
    for (let index = 0; index < MESSAGES; index += 1) bus.nc.publish("lost", new Uint8Array(BYTES));
    const isElsewhere = (): boolean => bus.isUp() && bus.nc.getServer() !== first;
    await expect.poll(isElsewhere, { timeout: NOTICED_MS + CONNECTED_MS, interval: 100 }).toBe(true);
    await bus.close();
    await Promise.all(links.map((link) => link.close()));
  });

  test("after the clock of the process was set back: the bus is up soon after the server is back", async () => {
    const server = await startNats();
    const bus = await connectBus({ url: server.url, name: "test", log: QUIET });
    const now = Date.now.bind(Date);
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now() - 3_600_000);
    await server.halt();
    await server.restart();
    await expect.poll(() => bus.isUp(), { timeout: 5_000, interval: 50 }).toBe(true);
    clock.mockRestore();
    await bus.close();
    await server.stop();
  });
});

describe("a start that is stopped", () => {
  test("while a server is silent: ends at once", async () => {
    const server = await startFaultyServer("nats://hidden@127.0.0.1:1", "silent");
    const stopping = new AbortController();
    const connecting = connectBus({ url: server.url, name: "test", log: QUIET, signal: stopping.signal });
    setTimeout(() => stopping.abort(), 200);
    const startedAtMs = performance.now();
    await expect(connecting).rejects.toMatchObject({ code: "start_stopped" });
    expect(performance.now() - startedAtMs).toBeLessThan(500);
    await server.stop();
  });
});

describe("close", () => {
  test("the server no longer answers: it takes no longer than its limit", async () => {
    const server = await startFaultyServer(nats.url, "none");
    const bus = await connectBus({ url: server.url, name: "test", log: QUIET });
    server.become("silent");
    const startedAtMs = performance.now();
    await bus.close();
    expect(performance.now() - startedAtMs).toBeLessThan(BUS_LIMITS.closeMs + 500);
    await server.stop();
  });
});
