/**
 * The cashier's live socket: who may open it, which messages it sends and when, and how it ends. Tests that run at the same
 * time use different stations and sessions.
 */

import { hash } from "node:crypto";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIVE_LIMITS } from "../../gateway/live/live-socket.ts";
import type { Actor } from "../../machines/actor.ts";
import { type Refused, send } from "../support/http.ts";
import { bearer, openLive, type TestLiveSocket } from "../support/live-socket.ts";
import { CASHIER, type GatewayWorld, REGISTRY, startGatewayWorld, type TestStation } from "./gateway-world.ts";
import { sendRaw } from "./raw-request.ts";

const pathOf = (stationId: number): string => `/api/cashier/v1/stations/${stationId}/live/`;

let world: GatewayWorld;
let stations = 0;
const nextStation = (): Promise<TestStation> => world.openStation((stations += 1));
let sessions = 0;
/** A token of another session at each call, because the number of sockets of one session is limited. */
const nextSession = (): Promise<string> => world.session({ sessionId: (sessions += 1) });
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterAll(() => world.stop());

async function follow(station: TestStation, token?: string): Promise<TestLiveSocket> {
  const live = await openLive(world.baseUrl, station.stationId, bearer(token ?? (await nextSession())));
  await live.until(() => true);
  return live;
}

/** Sends the upgrade as bytes, because an HTTP client would not show the body of a refused upgrade. */
async function upgrade(
  stationId: number | string,
  headers: readonly string[],
): Promise<{ status: number; code: string }> {
  const request = [
    `GET ${pathOf(stationId as number)} HTTP/1.1`,
    `Host: 127.0.0.1:${world.gateway.port}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ...headers,
    "\r\n",
  ].join("\r\n");
  const answer = await sendRaw(world.gateway.port, [request], { waitMs: 1_000 });
  const code = answer.status === 101 ? "" : (JSON.parse(answer.body) as Refused).code;
  return { status: answer.status, code };
}

describe.concurrent("messages of the live socket", () => {
  it("an opened socket: the whole state, equal to the endpoints' answers, and again after each change", async () => {
    const station = await nextStation();
    const token = await nextSession();
    const live = await follow(station, token);
    const routes = await send(world.baseUrl, "GET", `/api/cashier/v1/stations/${station.stationId}/routes/`, { token });
    const { routes: offers, companions } = live.state();
    expect({ routes: offers, companions }).toEqual(routes.body);
    const nothing = { order: null, active_intent: null, lease: null, last_ended_intent: null };
    expect(live.state()).toMatchObject({ ...nothing, currency: "EUR" });

    const intentId = await station.handOver();
    await live.until((message) => message.type === "state" && message.active_intent?.intent_id === intentId);
    expect(live.state()).toMatchObject({
      order: { total: "25.00", currency: "EUR", status: "open" },
      lease: { cashier_id: 7, mine: true },
    });
    const intents = await send<{ intents: unknown[] }>(
      world.baseUrl,
      "GET",
      `/api/cashier/v1/stations/${station.stationId}/intents/`,
      { token },
    );
    expect([live.state().active_intent]).toEqual(intents.body.intents);
    const once = await send(world.baseUrl, "GET", pathOf(station.stationId), { token });
    expect({ ...once.body, server_time: "" }).toEqual({ ...live.state(), server_time: "" });

    await station.run({ type: "intent_cancel", intentId }, { actor: CASHIER });
    await live.until((message) => message.type === "state" && message.active_intent === null);
    expect(live.state().last_ended_intent).toMatchObject({ intent_id: intentId, status: "cancelled" });
    await live.close();
  });

  it("a withdrawn route and a kill switch: each is reported with its reason", async () => {
    const station = await nextStation();
    const live = await follow(station);
    const offer = (route: string) => live.state().routes.find((one) => one.route === route);
    expect(offer("smart_pos")).toMatchObject({ offered: true });
    const atMs = Date.now();
    await station.run({ type: "device_silent", deviceId: station.companionId, lastSeenAtMs: atMs }, { atMs });
    await live.until((message) => message.type === "state" && message.companions[0]?.readiness === "offline");
    expect(offer("smart_pos")).toEqual({
      route: "smart_pos",
      offered: false,
      reason: "device_offline",
      since: new Date(atMs).toISOString(),
    });
    await world.setSwitch(`station.${station.stationId}`, true);
    await live.until((message) => message.type === "state" && message.blocked_reason === "station_frozen");
    expect(offer("attested_terminal")).toMatchObject({ offered: false, reason: "station_frozen" });
    expect(offer("cash")).toMatchObject({ offered: true });
    await world.setSwitch(`station.${station.stationId}`, false);
    await live.until((message) => message.type === "state" && message.blocked_reason === "");
    await live.close();
  });

  it("offers as in the endpoints' answers: no settlement of a voided order, no QR of a frozen provider", async () => {
    const station = await nextStation();
    const token = await nextSession();
    const live = await follow(station, token);
    const listed = async () => {
      const path = `/api/cashier/v1/stations/${station.stationId}/intents/`;
      return (await send<{ intents: unknown[] }>(world.baseUrl, "GET", path, { token })).body.intents;
    };
    const intentId = await station.handOver();
    const outcome = { outcome: "reported_success", providerReference: "R-1", providerCode: "" } as const;
    const by = { actor: { kind: "device", id: station.companionId } } as const;
    await station.run({ type: "intent_report", intentId, ...outcome }, by);
    await live.until((message) => message.type === "state" && message.active_intent?.settle_offered === true);
    const { orderId, orderDisplayNumber, amountMinor, currency } = station.state().intent ?? expect.unreachable();
    const order = { orderId, orderDisplayNumber, amountMinor, currency, status: "voided", revision: 2 } as const;
    await station.run({ type: "order_put", order });
    await live.until((message) => message.type === "state" && message.active_intent?.settle_offered === false);
    expect([live.state().active_intent]).toEqual(await listed());
    await station.run({ type: "intent_cancel", intentId }, { actor: CASHIER });

    const provider: Actor = { kind: "provider", id: 81 };
    await station.run({ type: "provider_put", provider: { configId: provider.id, revision: 1 } });
    const open = { ...order, orderId: orderId + 1, status: "open", revision: 1 } as const;
    const create = { type: "intent_create", route: "dynamic_qr", intentId: intentId + 1, order: open } as const;
    await station.run(create, { actor: CASHIER });
    const qr = { intentId: intentId + 1, qrPayload: "000201", providerReference: "PAY-1" };
    await station.run({ type: "qr_ready", ...qr }, { actor: provider });
    const payload = (is: string) =>
      live.until((message) => message.type === "state" && message.active_intent?.provider?.qr_payload === is);
    await payload("000201");
    await world.setSwitch(`provider.${provider.id}`, true);
    await payload("");
    expect((await listed())[0]).toEqual(live.state().active_intent);
    await world.setSwitch(`provider.${provider.id}`, false);
    await payload("000201");
    await live.close();
  });

  it("a deadline that passes: reported, also without a commit", async () => {
    const station = await nextStation();
    const live = await follow(station);
    const atMs = Date.now() - 177_000;
    await station.handOver({ atMs, lifetimeMs: 180_000 });
    await live.until((message) => message.type === "state" && message.active_intent?.cancel_offered === true);
    const lapsed = await live.until(
      (message) => message.type === "state" && message.active_intent?.cancel_offered === false,
    );
    expect(lapsed.atMs - (atMs + 180_000)).toBeGreaterThanOrEqual(0);
    await live.close();
  });

  it("a commit that changes nothing shown, and a change of another station: no message", async () => {
    const [station, other] = [await nextStation(), await nextStation()];
    const live = await follow(station);
    await other.handOver();
    await world.bus.js.publish(`$KV.SWITCHES.station.${other.stationId}`, "{}");
    // The state that a cashier sees does not contain the heartbeats of a display.
    await station.run({ type: "device_seen", deviceId: station.displayId, seenAtMs: Date.now() });
    await delay(600);
    expect(live.messages).toHaveLength(1);
    await live.close();
  });
});

describe.concurrent("a socket whose state does not change", () => {
  it("sends `current` every three seconds while the last state holds", async (context) => {
    const live = await follow(await nextStation());
    const openedAtMs = Date.now();
    await context.expect.poll(() => live.currents.length, { timeout: 20_000 }).toBe(2);
    const [first = 0, second = 0] = live.currents;
    expect(first - openedAtMs).toBeGreaterThanOrEqual(LIVE_LIMITS.repeatMs - 100);
    expect(second - first).toBeGreaterThanOrEqual(LIVE_LIMITS.repeatMs - 100);
    expect(live.messages).toHaveLength(1);
    await live.close();
  });
});

describe.concurrent("a slow reader", () => {
  it("receives one message and then the newest state, never the states in between", async (context) => {
    const station = await nextStation();
    const token = await nextSession();
    const socket = connect(world.gateway.port, "127.0.0.1");
    let received = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
    });
    socket.write(
      [
        `GET ${pathOf(station.stationId)} HTTP/1.1`,
        `Host: 127.0.0.1:${world.gateway.port}`,
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        `Authorization: Bearer ${token}`,
        "\r\n",
      ].join("\r\n"),
    );
    const texts = (): { name: string }[] =>
      framesOf(received)
        .filter(({ opcode }) => opcode === 1)
        .map(parse);
    await context.expect.poll(() => texts().length).toBe(1);
    const ping = framesOf(received).find(({ opcode }) => opcode === 9);
    for (let revision = 2; revision <= 40; revision += 1) {
      const { organizationId, filialId, currency, status } = station.state();
      const described = { organizationId, filialId, currency, status, name: `Name ${revision}`, revision };
      await station.run({ type: "station_put", stationId: station.stationId, station: described }, { actor: REGISTRY });
    }
    await delay(500);
    expect(texts()).toHaveLength(1);
    // The pong confirms what the client has read. A client must mask its frames; a mask of zeros is allowed.
    const payload = ping?.payload ?? Buffer.alloc(0);
    socket.write(Buffer.concat([Buffer.from([0x8a, 0x80 | payload.length, 0, 0, 0, 0]), payload]));
    await context.expect.poll(() => texts().length).toBe(2);
    await delay(300);
    expect(texts().map(({ name }) => name)).toEqual([`Counter ${station.stationId}`, "Name 40"]);
    socket.destroy();
  });
});

interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** The frames after the answer's head; a server's frames are not masked. */
function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  let at = bytes.indexOf("\r\n\r\n") + 4;
  while (at > 3 && at + 2 <= bytes.length) {
    const short = (bytes[at + 1] as number) & 0x7f;
    if (short === 126 && at + 4 > bytes.length) break;
    const length = short === 126 ? bytes.readUInt16BE(at + 2) : short;
    const start = at + (short === 126 ? 4 : 2);
    if (start + length > bytes.length) break;
    frames.push({ opcode: (bytes[at] as number) & 0x0f, payload: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return frames;
}

const parse = ({ payload }: Frame): { name: string } => JSON.parse(payload.toString("utf8")) as { name: string };

describe.concurrent("the opening of a live socket", () => {
  it("cashiers of the organization: may open it with a bearer token, or with a cookie from the service's pages", async () => {
    const station = await nextStation();
    const token = await nextSession();
    const owner = await world.session({ role: "owner", permissions: ["organization.manage"] });
    const stranger = await world.session({ organizationId: 2 });
    const authorization = (of: string): string => `Authorization: Bearer ${of}`;
    const cookie = `Cookie: dp_session=${token}`;
    const sameOrigin = `Origin: http://127.0.0.1:${world.gateway.port}`;
    const upgrades: [number | string, string[], number, string][] = [
      [station.stationId, [authorization(token)], 101, ""],
      [station.stationId, [authorization(token), "Origin: https://elsewhere.example"], 101, ""],
      [station.stationId, [cookie, sameOrigin], 101, ""],
      [station.stationId, [cookie, "Origin: https://elsewhere.example"], 403, "csrf_refused"],
      [station.stationId, [cookie, "Sec-Fetch-Site: cross-site"], 403, "csrf_refused"],
      [station.stationId, [], 401, "session_missing"],
      [station.stationId, [authorization("nonsense")], 401, "session_invalid"],
      [station.stationId, [authorization(owner)], 403, "permission_denied"],
      [station.stationId, [authorization(stranger)], 404, "not_found"],
      // The registry, which would know whether the station exists, does not run here.
      [987_654, [authorization(token)], 503, "replica_stale"],
      ["0", [authorization(token)], 404, "path_not_found"],
      ["x", [authorization(token)], 404, "path_not_found"],
    ];
    const answers = await Promise.all(upgrades.map(([stationId, headers]) => upgrade(stationId, headers)));
    for (const [index, [, headers, status, code]] of upgrades.entries()) {
      expect([headers, answers[index]]).toEqual([headers, { status, code }]);
    }
    // Without an upgrade, the request is an ordinary read.
    const plain = await send(world.baseUrl, "GET", pathOf(station.stationId), { token });
    expect([plain.status, plain.body]).toMatchObject([200, { type: "state", station_id: station.stationId }]);
    const foreign = await send<Refused>(world.baseUrl, "GET", pathOf(station.stationId), { token: stranger });
    expect(foreign.body.code).toBe("not_found");
  });

  it("one session: may have eight sockets at most; after one has closed, another one may open", async () => {
    const station = await nextStation();
    const token = await world.session({ sessionId: 4_711 });
    const all = await Promise.all(Array.from({ length: LIVE_LIMITS.perSession }, () => follow(station, token)));
    const refused = await upgrade(station.stationId, [`Authorization: Bearer ${token}`]);
    expect(refused).toEqual({ status: 429, code: "throttled" });
    await all[0]?.close();
    const next = await follow(station, token);
    await Promise.all([...all.slice(1), next].map((live) => live.close()));
  });
});

describe("the end of a live socket", () => {
  it("a session that ends or expires: the gateway closes the socket with 4401 within 1.5 s", async () => {
    const station = await nextStation();
    const token = await world.session({ sessionId: 21 });
    const live = await follow(station, token);
    const endedAtMs = Date.now();
    await world.bus.js.publish(`$KV.SESSIONS.${hash("sha256", token, "hex")}`, "");
    const end = await live.closed;
    expect(end).toMatchObject({ code: 4401, reason: "session_invalid" });
    expect(end.atMs - endedAtMs).toBeLessThan(1_500);
    const expiresAtMs = Date.now() + 2_500;
    const brief = await follow(station, await world.session({ sessionId: 22, expiresAtMs }));
    const expired = await brief.closed;
    expect(expired.code).toBe(4401);
    expect(expired.atMs).toBeGreaterThanOrEqual(expiresAtMs);
    expect(expired.atMs - expiresAtMs).toBeLessThan(1_500);
  });

  it("a message from the client: the gateway closes the socket with 1008", async () => {
    const station = await nextStation();
    const live = await follow(station);
    live.send("hello");
    expect(await live.closed).toMatchObject({ code: 1008 });
  });
});

describe("a live socket while nats-server is stalled", () => {
  it("reports that its state is stale, and sends the newest state after the stall", async () => {
    const station = await nextStation();
    const live = await follow(station);
    const token = await nextSession();
    world.nats.signal("SIGSTOP");
    const startedAtMs = Date.now();
    try {
      const stale = await live.until((message) => message.type === "stale");
      expect(stale.atMs - startedAtMs).toBeLessThan(2_500);
      expect((await upgrade(station.stationId, [`Authorization: Bearer ${token}`])).code).toBe("replica_stale");
      await delay(500);
      expect(live.messages.filter(({ message }) => message.type === "stale")).toHaveLength(1);
    } finally {
      world.nats.signal("SIGCONT");
    }
    await live.until((message) => message.type === "state", 10_000);
    await expect.poll(() => world.bus.isUp()).toBe(true);
    await station.handOver();
    await live.until((message) => message.type === "state" && message.active_intent !== null);
    await live.close();
  });
});

describe("a live socket when the gateway stops", () => {
  it("the gateway closes it with 1001", async () => {
    const stopping = await startGatewayWorld();
    const station = await stopping.openStation(1);
    const live = await openLive(stopping.baseUrl, station.stationId, bearer(await stopping.session()));
    await live.until(() => true);
    await stopping.stop();
    expect(await live.closed).toMatchObject({ code: 1001, reason: "going_away" });
  });
});
