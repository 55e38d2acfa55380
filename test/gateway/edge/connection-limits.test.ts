/** Floods of connections, from one address and from many: the gateway still serves known devices and `/healthz`. */

import { connect, type Socket } from "node:net";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { connectionsByAddress, openFileLimit } from "../../../gateway/http/connection-counts.ts";
import { connectionBounds } from "../../../gateway/http/connections.ts";
import { HANGS } from "../../support/hangs.ts";
import { bearer as bearerHeaders, openLive } from "../../support/live-socket.ts";
import { onlyWhere } from "../../support/only-where.ts";
import { metricSum, parseSeries } from "../../support/scrape.ts";
import { DISPLAY_SCOPES, type GatewayWorld, startGatewayWorld, type TestStation } from "../gateway-world.ts";

const IN_ALL = 60;
const PER_ADDRESS = 20;
const PROXY = "127.0.0.9";
const DISPLAY = "/api/payments/v1/devices/display/";
/** What other systems cannot test: only Linux accepts each address of 127.0.0.0/8 as a local one. */
const BY_ADDRESS = "bounds of connections by address";

let world: GatewayWorld;
let station: TestStation;
const metrics = new Registry();
beforeAll(async () => {
  const limits = { maxConnections: IN_ALL, maxConnectionsPerAddress: PER_ADDRESS };
  world = await startGatewayWorld({ ...limits, trustedProxies: [PROXY], metrics });
  station = await world.openStation(1);
});
afterAll(() => world.stop());
const metric = async (name: string, bound?: string): Promise<number | undefined> =>
  metricSum(parseSeries(await metrics.metrics()), name, bound === undefined ? {} : { bound });
afterEach(async () => {
  for (const client of clients.splice(0)) client.socket.destroy();
  await vi.waitFor(async () => expect(await metric("gateway_connections")).toBe(0), HANGS);
});

interface Client {
  readonly socket: Socket;
  isOpen(): boolean;
  /** Sends one request. Resolves with the head of its answer, or with an empty text when the server closes the connection. */
  get(path: string, lines?: readonly string[]): Promise<string>;
}
const clients: Client[] = [];

/** Connects from an address of the loopback network. Resolves when the kernel has connected it. */
async function open(address: string): Promise<Client> {
  const socket = connect({ port: world.gateway.port, host: "127.0.0.1", localAddress: address });
  let isOpen = true;
  let text = "";
  let onText = (): void => undefined;
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    onText();
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    isOpen = false;
    onText();
  });
  const client: Client = {
    socket,
    isOpen: () => isOpen,
    async get(path, lines = []) {
      text = "";
      if (isOpen) socket.write([`GET ${path} HTTP/1.1`, "Host: x", ...lines, "", ""].join("\r\n"));
      await new Promise<void>((resolve) => {
        onText = () => {
          if (text.includes("\r\n\r\n") || !isOpen) resolve();
        };
        onText();
      });
      return text;
    },
  };
  clients.push(client);
  await new Promise((resolve) => socket.once("connect", resolve).once("close", resolve));
  return client;
}
async function openMany(address: string, count: number): Promise<Client[]> {
  const opened: Client[] = [];
  for (let index = 0; index < count; index += 1) opened.push(await open(address));
  return opened;
}
const openCount = (of: readonly Client[]): number => of.filter((client) => client.isOpen()).length;
const statusOf = (head: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0);
const bearer = async (): Promise<string> =>
  `Authorization: Bearer ${await world.credential(station.displayId, 1, DISPLAY_SCOPES)}`;

describe.runIf(onlyWhere(process.platform === "linux", BY_ADDRESS))("connections from one address", () => {
  it("more idle connections than its limit: the oldest are closed, and the address is still served", async () => {
    const flood = await openMany("127.0.0.2", PER_ADDRESS + 15);
    await vi.waitFor(() => expect(openCount(flood)).toBe(PER_ADDRESS), HANGS);
    expect(flood.slice(0, 15).some((client) => client.isOpen())).toBe(false);
    expect(statusOf(await (await open("127.0.0.2")).get("/healthz"))).toBe(200);
    expect(statusOf(await (await open("127.0.0.3")).get("/healthz"))).toBe(200);
  });

  it("its limit used up by known devices: the next connection is closed at once, until one of the devices' ends", async () => {
    const devices = await openMany("127.0.0.2", PER_ADDRESS);
    const authorization = await bearer();
    const credentials = [authorization, await bearer(), await bearer()];
    for (const [index, device] of devices.entries()) {
      const head = await device.get(DISPLAY, [credentials[index % credentials.length] as string]);
      expect(statusOf(head)).toBe(200);
    }
    const refusedBefore = (await metric("gateway_connections_refused_total", "address")) ?? 0;
    const next = await open("127.0.0.2");
    await vi.waitFor(() => expect(next.isOpen()).toBe(false), HANGS);
    expect(await metric("gateway_connections_refused_total", "address")).toBe(refusedBefore + 1);
    expect(openCount(devices)).toBe(PER_ADDRESS);
    expect(statusOf(await (await open("127.0.0.3")).get("/healthz"))).toBe(200);

    devices[0]?.socket.destroy();
    await vi.waitFor(async () => expect(await metric("gateway_connections")).toBe(PER_ADDRESS), HANGS);
    expect(statusOf(await (await open("127.0.0.2")).get(DISPLAY, [await bearer()]))).toBe(200);
  });

  it("connections that open and end without pause: none is refused", async () => {
    const refusedBefore = (await metric("gateway_connections_refused_total", "address")) ?? 0;
    for (let index = 0; index < 5 * PER_ADDRESS; index += 1) {
      const client = await open("127.0.0.2");
      expect(statusOf(await client.get("/healthz"))).toBe(200);
      client.socket.destroy();
    }
    expect(await metric("gateway_connections_refused_total", "address")).toBe(refusedBefore);
  });

  it("half of its limit used: an unknown caller's connection ends after its answer, a known device's stays", async () => {
    const [stranger, device, ...others] = await openMany("127.0.0.2", PER_ADDRESS / 2);
    expect(await stranger?.get("/healthz")).toMatch(/\r\nConnection: close\r\n/);
    expect(await device?.get(DISPLAY, [await bearer()])).not.toMatch(/\r\nConnection: close/i);
    await vi.waitFor(() => expect([stranger?.isOpen(), device?.isOpen()]).toEqual([false, true]), HANGS);
    expect(openCount(others)).toBe(others.length);
    expect(await (await open("127.0.0.3")).get("/healthz")).not.toMatch(/\r\nConnection: close/i);
  });

  it("all of its limit used by a trusted proxy: the proxy still gets files, also after a recount", async () => {
    const proxied = await openMany(PROXY, PER_ADDRESS);
    for (let index = 0; index < PER_ADDRESS; index += 1) {
      const client = await open("127.0.0.2");
      await client.get("/healthz");
      client.socket.destroy();
    }
    // Until a recount the gateway cannot know which connections have ended: it may be these. The next one starts the recount.
    await openMany("127.0.0.3", PER_ADDRESS / 2 + 3);
    const recounted = async (): Promise<void> => {
      const next = await open("127.0.0.3");
      const head = await next.get("/healthz");
      next.socket.destroy();
      expect(head).toMatch(/\r\nConnection: close\r\n/);
    };
    await vi.waitFor(recounted, HANGS);
    const head = await proxied[0]?.get("/openapi.json");
    expect(statusOf(head ?? "")).toBe(200);
    expect(head).not.toMatch(/\r\nConnection: close/i);
  });
});

describe.runIf(onlyWhere(process.platform === "linux", BY_ADDRESS))("connections from many addresses", () => {
  const flood = async (count: number): Promise<Client[]> => {
    const opened: Client[] = [];
    for (let index = 0; index < count; index += 1) opened.push(await open(`127.0.1.${1 + (index % 10)}`));
    return opened;
  };

  it("more idle connections than the limit in all: the oldest are closed, and known devices stay", async () => {
    const known = await open("127.0.0.2");
    const authorization = await bearer();
    expect(statusOf(await known.get(DISPLAY, [authorization]))).toBe(200);
    const idle = await flood(2 * IN_ALL);
    await vi.waitFor(() => expect(openCount(idle)).toBe(IN_ALL - 1), HANGS);
    expect(idle.slice(0, IN_ALL).some((client) => client.isOpen())).toBe(false);
    expect(await metric("gateway_connections")).toBe(IN_ALL);

    expect(statusOf(await known.get(DISPLAY, [authorization]))).toBe(200);
    expect(statusOf(await (await open("127.0.0.3")).get("/healthz"))).toBe(200);
    const another = await open("127.0.0.4");
    expect(statusOf(await another.get(DISPLAY, [await bearer()]))).toBe(200);
    expect(await metric("gateway_connections_refused_total", "all")).toBe(0);
    expect(await metric("gateway_connections_made_room_total", "all")).toBeGreaterThan(IN_ALL);
  });

  it("requests of unknown callers: each answer ends its connection, which makes room for others", async () => {
    const known = await open("127.0.0.2");
    const authorization = await bearer();
    await known.get(DISPLAY, [authorization]);
    const idle = await flood(IN_ALL - 1);
    for (const client of idle) expect(await client.get("/nothing/")).not.toBe("");
    await vi.waitFor(() => expect(openCount(idle)).toBeLessThan(IN_ALL * 0.75), HANGS);
    expect(statusOf(await known.get(DISPLAY, [authorization]))).toBe(200);
  });

  it("the limit in all used up by known devices: the next connection is closed at once", async () => {
    const credentials = await Promise.all(Array.from({ length: 10 }, bearer));
    const devices = await flood(IN_ALL);
    for (const [index, device] of devices.entries()) {
      expect(statusOf(await device.get(DISPLAY, [credentials[index % 10] as string]))).toBe(200);
    }
    const next = await open("127.0.0.10");
    await vi.waitFor(() => expect(next.isOpen()).toBe(false), HANGS);
    expect(openCount(devices)).toBe(IN_ALL);
    expect(await metric("gateway_connections_refused_total", "all")).toBeGreaterThan(0);
  });

  it("more idle connections than the limit in all: a live socket does not count as idle, and stays", async () => {
    const live = await openLive(world.baseUrl, station.stationId, bearerHeaders(await world.session()));
    await live.until(() => true);
    await flood(2 * IN_ALL);
    const changed = live.until((message) => message.type === "state" && message.companions[0]?.readiness === "offline");
    await station.run({ type: "device_silent", deviceId: station.companionId, lastSeenAtMs: Date.now() });
    await changed;
    await live.close();
  });

  it("three quarters of the limit in all used: a file is refused with 503, because it can wait", async () => {
    await flood(IN_ALL * 0.75);
    expect(statusOf(await (await open("127.0.0.3")).get("/openapi.json"))).toBe(503);
    expect(statusOf(await (await open("127.0.0.3")).get("/healthz"))).toBe(200);
  });
});

describe("the limits of connections", () => {
  const bounds = (openFiles?: number, inAll?: number, perAddress?: number) =>
    connectionBounds({ openFiles, inAll, perAddress });

  it("any settings: the limits stay below the limit of open files", () => {
    expect(bounds(20_000)).toEqual({ inAll: 19_744, perAddress: 1_024 });
    expect(bounds(20_000, 50_000, 50_000)).toEqual({ inAll: 19_744, perAddress: 9_872 });
    expect(bounds(256)).toEqual({ inAll: 128, perAddress: 64 });
    expect(bounds(undefined)).toEqual({ inAll: 100_000, perAddress: 1_024 });
  });

  it("lower settings: they count, and one address may have half of all connections at most", () => {
    expect(bounds(20_000, 1_000)).toEqual({ inAll: 1_000, perAddress: 500 });
    expect(bounds(20_000, 1_000, 100)).toEqual({ inAll: 1_000, perAddress: 100 });
  });

  it("the limit of open files: read from this process", () => {
    expect(openFileLimit()).toBeGreaterThan(100);
  });
});

describe.runIf(onlyWhere(process.platform === "linux", BY_ADDRESS))("the kernel's table of connections", () => {
  it("several addresses: the open connections of each are counted, a closed one is not", async () => {
    const [first] = await openMany("127.0.0.2", 3);
    await openMany("127.0.0.3", 2);
    const counts = (): Promise<ReadonlyMap<string, number> | undefined> => connectionsByAddress(world.gateway.port);
    // The gateway may still be closing connections of earlier tests.
    const expected = { "127.0.0.2": 3, "127.0.0.3": 2 };
    await vi.waitFor(async () => expect(Object.fromEntries((await counts()) ?? [])).toEqual(expected), HANGS);
    first?.socket.destroy();
    await vi.waitFor(async () => expect((await counts())?.get("127.0.0.2")).toBe(2), HANGS);
  });
});
