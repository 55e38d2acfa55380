/**
 * Bodies that have not arrived do not count as running requests. Above their limit, the gateway closes the oldest one of an
 * unknown caller, then the oldest one.
 */

import { connect, type Socket } from "node:net";
import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  RequestSlots,
  type Slot,
  UnreadBodies,
  type UnreadBody,
  unreadBodyBounds,
} from "../../../gateway/http/request-bounds.ts";
import { HANGS } from "../../support/hangs.ts";
import { onlyWhere } from "../../support/only-where.ts";
import { metricSum, parseSeries } from "../../support/scrape.ts";
import { DISPLAY_SCOPES, type GatewayWorld, startGatewayWorld } from "../gateway-world.ts";

describe("the limits of bodies that have not arrived", () => {
  const closed: string[] = [];
  const bodies = (bounds: { inAll?: number; perAddress?: number; bytes?: number }) => {
    closed.length = 0;
    const unread = new UnreadBodies({ inAll: 100, perAddress: 100, bytes: 1_000, ...bounds });
    const begin = (name: string, block: string, isKnownCaller = false): UnreadBody => {
      const close = (): void => {
        closed.push(name);
        unread.end(body);
      };
      const body: UnreadBody = { block, isKnownCaller, close, bytes: 0 };
      unread.begin(body);
      return body;
    };
    return { unread, begin };
  };

  it("above an address's limit: the oldest body of an unknown caller at the address is closed, then its oldest body", () => {
    const { unread, begin } = bodies({ perAddress: 2 });
    begin("other", "b");
    begin("device", "a", true);
    begin("stranger", "a");
    begin("second", "a", true);
    expect(closed).toEqual(["stranger"]);
    begin("third", "a", true);
    expect([closed, unread.size, unread.closed]).toEqual([["stranger", "device"], 3, { address: 2, all: 0, bytes: 0 }]);
  });

  it("above the limit in all: the oldest body of an unknown caller is closed, at any address", () => {
    const { unread, begin } = bodies({ inAll: 3 });
    begin("device", "a", true);
    begin("first", "b");
    begin("second", "c");
    begin("third", "d");
    expect([closed, unread.size, unread.closed.all]).toEqual([["first"], 3, 1]);
  });

  it("bodies that have arrived: no longer counted", () => {
    const { unread, begin } = bodies({ perAddress: 1 });
    for (let count = 0; count < 3; count += 1) unread.end(begin("body", "a"));
    expect([closed, unread.size]).toEqual([[], 0]);
  });

  it("above the limit of bytes: the oldest bodies are closed until the bytes are no longer above it", () => {
    const { unread, begin } = bodies({ bytes: 100 });
    const [first, second, third] = ["first", "second", "third"].map((name) => begin(name, name));
    unread.add(first as UnreadBody, 60);
    unread.add(second as UnreadBody, 40);
    expect(closed).toEqual([]);
    unread.add(third as UnreadBody, 70);
    expect([closed, unread.size]).toEqual([["first", "second"], 1]);
    unread.add(third as UnreadBody, 31);
    expect([closed, unread.size, unread.closed.bytes]).toEqual([["first", "second", "third"], 0, 3]);
    unread.add(begin("fourth", "a"), 100);
    expect(unread.size).toBe(1);
  });

  it("the default limits: half of all connections, from 1 to 16,384, and for one address as many as its connections", () => {
    const bytes = 64 * 1_024 * 1_024;
    expect(unreadBodyBounds({ inAll: 19_744, perAddress: 1_024 })).toEqual({ inAll: 9_872, perAddress: 1_024, bytes });
    expect(unreadBodyBounds({ inAll: 100_000, perAddress: 1_024 })).toMatchObject({ inAll: 16_384 });
    expect(unreadBodyBounds({ inAll: 1, perAddress: 1 })).toMatchObject({ inAll: 1, perAddress: 1 });
  });
});

describe("slots of running requests", () => {
  const take = (slots: RequestSlots, kind: "known" | "unknown", count: number): boolean[] =>
    Array.from({ length: count }, () => slots.exchange("none", kind));

  it("unknown callers have used up their slots: known callers get the other ones", () => {
    const slots = new RequestSlots({ requestsInFlight: 5, unknownRequestsInFlight: 3 });
    expect(take(slots, "unknown", 4)).toEqual([true, true, true, false]);
    expect(take(slots, "known", 3)).toEqual([true, true, false]);
    slots.release("known");
    expect([...take(slots, "unknown", 1), ...take(slots, "known", 1)]).toEqual([false, true]);
  });

  it("a caller that becomes known: its slot counts for known callers, also when no slot is free", () => {
    const slots = new RequestSlots({ requestsInFlight: 2, unknownRequestsInFlight: 2 });
    take(slots, "unknown", 2);
    expect(slots.exchange("unknown", "known")).toBe(true);
    for (const held of ["known", "unknown", "none"] satisfies Slot[]) slots.release(held);
    expect(slots.size).toBe(0);
  });
});

describe("a gateway with few connections", () => {
  const metrics = new Registry();
  let world: GatewayWorld;
  let credential: string;
  const ENROLL = "/api/payments/v1/devices/enroll/";
  const sockets: Socket[] = [];
  beforeAll(async () => {
    world = await startGatewayWorld({ maxConnections: 12, maxConnectionsPerAddress: 6, metrics });
    const station = await world.openStation(1);
    credential = await world.credential(station.displayId, 1, DISPLAY_SCOPES);
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await world.stop();
  });
  const metric = async (name: string): Promise<number | undefined> =>
    metricSum(parseSeries(await metrics.metrics()), name);

  /** Sends the head of a request whose body has two bytes. */
  async function send(path: string, lines: readonly string[] = [], localAddress = "127.0.0.1"): Promise<Socket> {
    const socket = connect({ port: world.gateway.port, host: "127.0.0.1", localAddress });
    sockets.push(socket);
    socket.on("error", () => undefined).resume();
    await new Promise((resolve) => socket.once("connect", resolve));
    const announced = ["Host: x", "Content-Type: application/json", "Content-Length: 2", ...lines, "", ""];
    socket.write([`POST ${path} HTTP/1.1`, ...announced].join("\r\n"));
    return socket;
  }

  it("bodies that do not arrive: they use no slot of a request, and a device's request is answered", async () => {
    // While its feed is late, the gateway answers 503 before it reads a body. The device then tries again, as a real one does.
    const device = await vi.waitFor(async () => {
      const socket = await send("/api/payments/v1/devices/heartbeat/", [`Authorization: Bearer ${credential}`]);
      await vi.waitFor(async () => expect(await metric("gateway_unread_bodies")).toBe(1), { timeout: 2_000 });
      return socket;
    }, HANGS);
    const answer = new Promise<string>((resolve) => device.once("data", (chunk) => resolve(String(chunk))));
    const strangers: Socket[] = [];
    for (let count = 0; count < 5; count += 1) strangers.push(await send(ENROLL));
    await vi.waitFor(async () => expect(await metric("gateway_unread_bodies")).toBe(6), HANGS);
    expect(await metric("gateway_requests_in_flight")).toBe(0);
    device.write("{}");
    expect(await answer).toMatch(/^HTTP\/1\.1 200 /);
    for (const stranger of strangers) stranger.destroy();
    await vi.waitFor(async () => expect(await metric("gateway_unread_bodies")).toBe(0), HANGS);
  });

  it.runIf(onlyWhere(process.platform === "linux", "bodies in all, by address"))(
    "one body above the limit in all: the connection of the oldest is closed",
    async () => {
      const stalled: Socket[] = [];
      for (let count = 0; count < 7; count += 1) stalled.push(await send(ENROLL, [], `127.0.0.${2 + (count % 3)}`));
      await vi.waitFor(
        () => expect(stalled.map((socket) => socket.closed)).toEqual([true, ...Array(6).fill(false)]),
        HANGS,
      );
      expect(await metric("gateway_unread_bodies")).toBe(6);
    },
  );
});
