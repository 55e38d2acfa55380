/** A client does not read its answers: the gateway's memory stays bounded, and it closes the connection. */

import { App, us_socket_local_port } from "uWebSockets.js";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { UnsentAnswers } from "../../../gateway/http/answer-writer.ts";
import { residentBytes } from "../../bench/cpu-time.ts";
import { HANGS } from "../../support/hangs.ts";
import { send } from "../../support/http.ts";
import { type GatewayProcess, startGatewayProcess } from "../gateway-process.ts";
import { type GatewayWorld, startGatewayWorld } from "../gateway-world.ts";

const DISPLAY = "/api/payments/v1/devices/display/";
/** Other causes, such as compiled code, also make the memory grow. The kernel's memory is not counted. */
const GROWTH_BYTES = 48 * 1_024 * 1_024;

let world: GatewayWorld;
let gateway: GatewayProcess;
beforeAll(async () => {
  world = await startGatewayWorld();
  gateway = await startGatewayProcess(world.nats.url);
  // The gateway reads and compresses each file once, so this happens before the measurements.
  for (const encoding of ["identity", "br"]) await get("/openapi.json", { "accept-encoding": encoding });
});
afterAll(async () => {
  await gateway.stop();
  await world.stop();
});

const get = (path: string, headers: Record<string, string> = {}) => send(gateway.baseUrl, "GET", path, { headers });
/** A client that reads nothing. */
interface SilentClient {
  readonly socket: Socket;
}

/** Sends requests in one piece and reads nothing. */
async function sendUnread(request: string, count: number, port: number = gateway.port): Promise<SilentClient> {
  const socket = connect(port, "127.0.0.1");
  socket.pause();
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write(request.repeat(count));
  return { socket };
}

const request = (path: string, lines: readonly string[] = [], method = "GET"): string =>
  [`${method} ${path} HTTP/1.1`, "Host: x", ...lines, "", ""].join("\r\n");

/** The largest growth of the gateway's memory during one attack. */
async function growthWhile(attack: () => Promise<readonly SilentClient[]>): Promise<number> {
  const before = residentBytes(gateway.pid);
  const sockets = await attack();
  let most = 0;
  for (let round = 0; round < 8; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    most = Math.max(most, residentBytes(gateway.pid) - before);
  }
  for (const { socket } of sockets) socket.destroy();
  return most;
}

describe("many answers that a client does not read", () => {
  it.each([
    ["the whole document, 1,000 times on one connection", request("/openapi.json"), 1_000],
    ["a small answer, 8,000 times on one connection", request("/healthz"), 8_000],
    ["an answer to HEAD, 8,000 times on one connection", request("/healthz", [], "HEAD"), 8_000],
    ["an answer to OPTIONS, 8,000 times on one connection", request("/healthz", [], "OPTIONS"), 8_000],
    ["a path that does not exist, 8,000 times on one connection", request("/nothing/"), 8_000],
    ["a poll without a credential, 8,000 times on one connection", request(DISPLAY), 8_000],
  ])("%s: memory grows by less than 48 MB", async (_name, one, count) => {
    expect(await growthWhile(async () => [await sendUnread(one, count)])).toBeLessThan(GROWTH_BYTES);
  });

  it("20 requests on each of 200 connections: memory grows by less than 48 MB", async () => {
    const growth = await growthWhile(() =>
      Promise.all(Array.from({ length: 200 }, () => sendUnread(request("/openapi.json"), 20))),
    );
    expect(growth).toBeLessThan(GROWTH_BYTES);
    expect((await get("/healthz")).status).toBe(200);
  });
});

describe("an answer that waits for its client", () => {
  const LIMITS = {
    unsentBytesPerConnection: 32 * 1_024 * 1_024,
    unsentBytes: 40 * 1_024 * 1_024,
    unsentAnswers: 8,
    stalledMs: 300,
    unsentMs: 60_000,
  };
  /** More than the kernel buffers for a connection on both sides (10 MB with its usual settings). */
  const TEXT = "a".repeat(24 * 1_024 * 1_024);

  /** Starts a server: `/text` answers with a text, `/bytes` with the same bytes for all clients. */
  async function startServer(
    limits: Partial<typeof LIMITS>,
    use: (port: number, unsent: UnsentAnswers) => Promise<void>,
  ) {
    const unsent = new UnsentAnswers({ ...LIMITS, ...limits });
    const bytes = Buffer.from(TEXT);
    const app = App()
      .get("/text", (res) => unsent.send(res, TEXT))
      .get("/bytes", (res) => unsent.send(res, bytes));
    const { promise, resolve } = Promise.withResolvers<number>();
    app.listen("127.0.0.1", 0, (socket) => resolve(socket === false ? 0 : us_socket_local_port(socket)));
    try {
      await use(await promise, unsent);
    } finally {
      app.close();
      expect([unsent.size, unsent.bytes]).toEqual([0, 0]);
    }
  }
  async function getUnread(port: number, path: string): Promise<SilentClient> {
    return await sendUnread(request(path), 1, port);
  }

  it("a client that reads slowly: receives the whole answer", () =>
    // The client runs in the same process, so a busy machine may delay both for a part of a second.
    startServer({ stalledMs: 1_500 }, async (port, unsent) => {
      const startedAtMs = performance.now();
      const { socket } = await getUnread(port, "/text");
      await vi.waitFor(() => expect(unsent.bytes).toBeGreaterThan(0), HANGS);
      let received = 0;
      socket.on("data", (chunk: Buffer) => {
        received += chunk.length;
        socket.pause();
        setTimeout(() => socket.resume(), 6);
      });
      socket.resume();
      await vi.waitFor(() => expect(received).toBeGreaterThan(TEXT.length), { timeout: 20_000 });
      expect([unsent.size, unsent.bytes, unsent.closed.stalled]).toEqual([0, 0, 0]);
      expect(performance.now() - startedAtMs).toBeGreaterThan(1_500);
      socket.destroy();
    }));

  it("a client that reads nothing: its connection is closed after the time limit", () =>
    startServer({}, async (port, unsent) => {
      const { socket } = await getUnread(port, "/text");
      await vi.waitFor(() => expect(unsent.closed.stalled).toBe(1), { timeout: 15_000 });
      socket.destroy();
    }));

  it("a client that sends another request before it reads: its connection is closed at once", () =>
    startServer({ stalledMs: 60_000 }, async (port, unsent) => {
      const { socket } = await getUnread(port, "/text");
      await vi.waitFor(() => expect(unsent.size).toBe(1), HANGS);
      socket.write(request("/text"));
      await vi.waitFor(() => expect(unsent.size).toBe(0), HANGS);
      socket.destroy();
    }));

  it("more text than one connection's limit: closed; the bytes of a file count for no connection", () =>
    startServer({ unsentBytesPerConnection: 1_024, stalledMs: 60_000 }, async (port, unsent) => {
      const text = await getUnread(port, "/text");
      await vi.waitFor(() => expect(unsent.closed.connection_full).toBe(1), HANGS);
      const bytes = await getUnread(port, "/bytes");
      await vi.waitFor(() => expect([unsent.size, unsent.bytes]).toEqual([1, 0]), HANGS);
      for (const { socket } of [text, bytes]) socket.destroy();
      await vi.waitFor(() => expect(unsent.size).toBe(0), HANGS);
    }));

  it("more text than the limit in all: the newest connection is closed, and others stay", () =>
    startServer({ stalledMs: 60_000 }, async (port, unsent) => {
      const clients: SilentClient[] = [];
      for (let count = 0; count < 4; count += 1) clients.push(await getUnread(port, "/text"));
      await vi.waitFor(() => expect(unsent.closed.all_full).toBeGreaterThan(0), HANGS);
      await vi.waitFor(() => expect(unsent.bytes).toBeLessThanOrEqual(LIMITS.unsentBytes), HANGS);
      expect(unsent.size).toBeGreaterThan(0);
      for (const { socket } of clients) socket.destroy();
      await vi.waitFor(() => expect(unsent.size).toBe(0), HANGS);
    }));
});
