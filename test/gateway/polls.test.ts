/** Polls that the gateway answers from memory: me, display and assignment, with their entity tags and deadlines. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEVICES } from "../support/devices.ts";
import { type Answer, type Refused, send } from "../support/http.ts";
import {
  CASHIER,
  COMPANION_SCOPES,
  DISPLAY_SCOPES,
  type GatewayWorld,
  startGatewayWorld,
  type TestStation,
} from "./gateway-world.ts";

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterAll(() => world.stop());

let stations = 0;
async function open(): Promise<{ station: TestStation; display: string; companion: string }> {
  stations += 1;
  const station = await world.openStation(stations);
  return {
    station,
    display: await world.credential(station.displayId, station.stationId, DISPLAY_SCOPES),
    companion: await world.credential(station.companionId, station.stationId, COMPANION_SCOPES),
  };
}

function get<T = Record<string, unknown>>(
  path: string,
  token: string,
  headers: Record<string, string> = {},
): Promise<Answer<T>> {
  return send<T>(world.baseUrl, "GET", DEVICES + path, { token, headers });
}

describe("GET me", () => {
  it("the device's snapshot, with its handoff target unchanged", async () => {
    const { station, companion } = await open();
    const { status, body, headers } = await get("me/", companion);
    expect(status).toBe(200);
    expect(body).toEqual({
      device_id: station.companionId,
      name: "Tablet",
      kind: "smart_pos_companion",
      capabilities: ["handoff_present", "outcome_report"],
      status: "active",
      station_name: `Counter ${station.stationId}`,
      station_status: "active",
      handoff_target: "pay://collect?x=1&y=ü",
      blocked_reason: "",
      server_time: expect.any(String) as string,
    });
    expect(Math.abs(Date.parse(body.server_time as string) - Date.now())).toBeLessThan(5_000);
    expect(headers.get("cache-control")).toBe("private, no-cache");
    expect(headers.get("vary")).toBe("Authorization");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("a request id from the client: repeated, unless it could break a log line", async () => {
    const { companion } = await open();
    expect((await get("me/", companion, { "x-request-id": "till-7:42" })).headers.get("x-request-id")).toBe(
      "till-7:42",
    );
    expect((await get("me/", companion, { "x-request-id": "a b" })).headers.get("x-request-id")).toBeNull();
    expect((await get("me/", companion, { "x-request-id": "x".repeat(65) })).headers.get("x-request-id")).toBeNull();
  });
});

describe("GET display", () => {
  it("idle, the open order, the collection, paid for eight seconds, then idle again", async () => {
    const { station, display } = await open();
    const idle = {
      state: "idle",
      order_display_number: 0,
      amount: "0.00",
      currency: "EUR",
      qr_payload: "",
      intent_status: "",
    };
    expect((await get("display/", display)).body).toMatchObject(idle);
    // The commits are from five seconds ago, so that `paid` ends soon.
    const atMs = Date.now() - 5_000;
    const intentId = await station.handOver({ atMs });
    const total = { state: "total", order_display_number: 1, amount: "25.00", currency: "EUR", qr_payload: "" };
    expect((await get("display/", display)).body).toMatchObject({ ...total, intent_status: "created" });
    const { companionId } = station;
    const report = { outcome: "reported_success", providerReference: "R-1", providerCode: "00" } as const;
    const device = { kind: "device", id: companionId } as const;
    await station.run({ type: "intent_report", intentId, ...report }, { actor: device, atMs });
    await station.run({ type: "intent_attest", intentId }, { actor: CASHIER, atMs });
    expect((await get("display/", display)).body).toMatchObject({ ...total, intent_status: "processing" });
    await station.run({ type: "settlement_succeeded", intentId, transactionId: 1 }, { atMs });
    const paid = await get("display/", display);
    expect(paid.body).toMatchObject({ ...total, state: "paid", intent_status: "succeeded" });
    // Nothing is committed now. The view of the same commit changes when `paid` ends.
    const known = { "if-none-match": paid.headers.get("etag") as string };
    await expect
      .poll(async () => (await get("display/", display, known)).status, { timeout: 15_000, interval: 1_100 })
      .toBe(200);
    expect((await get("display/", display)).body).toMatchObject(idle);
  });

  it("a collection whose deadline has passed: only its order is shown", async () => {
    const { station, display } = await open();
    await station.handOver({ atMs: Date.now() - 60_000, lifetimeMs: 30_000 });
    expect((await get("display/", display)).body).toMatchObject({ state: "total", intent_status: "" });
  });
});

describe("the entity tags of polls", () => {
  it("a view that has not changed, except for server_time: 304 without a body; a changed view: 200", async () => {
    const { station, display } = await open();
    const first = await get("display/", display);
    const etag = first.headers.get("etag") as string;
    expect(etag).toMatch(/^W\/"[\w-]{20}"$/);
    const second = await get("display/", display);
    expect(second.headers.get("etag")).toBe(etag);
    const unchanged = await get("display/", display, { "if-none-match": etag });
    expect([unchanged.status, unchanged.text]).toEqual([304, ""]);
    expect(unchanged.headers.get("etag")).toBe(etag);
    expect(unchanged.headers.get("cache-control")).toBe("private, no-cache");
    expect(unchanged.headers.get("vary")).toBe("Authorization");
    expect(unchanged.headers.get("content-length")).toBeNull();
    await station.handOver();
    const changed = await get("display/", display, { "if-none-match": etag });
    expect(changed.status).toBe(200);
    expect(changed.headers.get("etag")).not.toBe(etag);
  });

  it.each([
    ["a list", (etag: string) => `"other", ${etag} , W/"more"`, 304],
    ["a strong form of it", (etag: string) => etag.slice(2), 304],
    ["a star", () => "*", 304],
    ["another tag", () => 'W/"other"', 200],
    ["its text without quotes", (etag: string) => etag.slice(3, -1), 200],
    ["nonsense", () => ',,;"', 200],
  ])("If-None-Match with %s: compared as HTTP defines it", async (_name, header, status) => {
    const { companion } = await open();
    const etag = (await get("assignment/", companion)).headers.get("etag") as string;
    expect((await get("assignment/", companion, { "if-none-match": header(etag) })).status).toBe(status);
  });

  it("a heartbeat that the view does not show: the same tag", async () => {
    const { station, display } = await open();
    const etag = (await get("display/", display)).headers.get("etag");
    await station.run({ type: "device_seen", deviceId: station.displayId, seenAtMs: Date.now() });
    expect((await get("display/", display)).headers.get("etag")).toBe(etag);
  });
});

describe("GET assignment from memory", () => {
  it("nothing to collect: null", async () => {
    const { companion } = await open();
    expect((await get("assignment/", companion)).body).toEqual({
      assignment: null,
      server_time: expect.any(String) as string,
    });
  });

  it("a created intent, and another companion of the station: null", async () => {
    const { station } = await open();
    const other = { deviceId: 9_000 + station.stationId, name: "Other", kind: "smart_pos_companion" } as const;
    const capabilities = ["handoff_present", "outcome_report"] as const;
    await station.run({
      type: "device_put",
      device: { ...other, capabilities, status: "active", handoffTarget: "", revision: 1 },
    });
    await station.handOver();
    const credential = await world.credential(other.deviceId, station.stationId, COMPANION_SCOPES);
    expect((await get("assignment/", credential)).body).toMatchObject({ assignment: null });
  });

  it("a created intent: HEAD does not present it, and GET needs the actor, with any If-None-Match", async () => {
    const { station, companion } = await open();
    const nothing = (await get("assignment/", companion)).headers.get("etag") as string;
    await station.handOver();
    const head = await send(world.baseUrl, "HEAD", `${DEVICES}assignment/`, { token: companion });
    expect(head.status).toBe(200);
    // No host owns the station in this world. So a GET, which would present the intent, fails.
    const conditions = [{}, { "if-none-match": nothing }, { "if-none-match": "*" }];
    const fetches = await Promise.all(conditions.map((headers) => get<Refused>("assignment/", companion, headers)));
    expect(fetches.map(({ status, body }) => [status, body.code])).toEqual(
      Array.from({ length: 3 }, () => [503, "unavailable"]),
    );
    expect(station.state().intent?.status).toBe("created");
  });

  it("a presented intent: all its fields, and null after its deadline", async () => {
    const { station, companion } = await open();
    const atMs = Date.now() - 27_000;
    const intentId = await station.handOver({ atMs, lifetimeMs: 30_000 });
    await station.run({ type: "intent_present", intentId }, { actor: { kind: "device", id: station.companionId } });
    const { body } = await get("assignment/", companion);
    expect(body.assignment).toEqual({
      intent_id: intentId,
      intent_display_number: 1,
      order_display_number: 1,
      station_name: `Counter ${station.stationId}`,
      amount: "25.00",
      currency: "EUR",
      status: "presented",
      handoff_target: "pay://collect?x=1&y=ü",
      expires_at: new Date(atMs + 30_000).toISOString(),
    });
    await expect
      .poll(async () => (await get("assignment/", companion)).body.assignment, { timeout: 15_000, interval: 1_100 })
      .toBeNull();
  });
});
