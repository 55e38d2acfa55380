/** The bus loses the kill switches during a freeze: no electronic payment begins until the relay announces them again. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Readiness } from "../../../gateway/api/meta/health.ts";
import { COMPLETE_KEYS } from "../../../services/bus/bucket-completeness.ts";
import { CREDENTIALS, SESSIONS, SWITCHES } from "../../../services/bus/streams.ts";
import { noteComplete } from "../../../services/relay/buckets.ts";
import { noteBucketsComplete } from "../../support/buckets-complete.ts";
import { enrollSandboxDevice, type TestDevice } from "../../support/devices.ts";
import { type Refused, send } from "../../support/http.ts";
import { logIn, newOrder, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";

const PLATFORM_KEY = "platform-key-of-the-lost-switches-test";
const ELECTRONIC = ["smart_pos", "dynamic_qr", "attested_terminal"] as const;

let system: TestSystem;
let cashier: Person;
let companion: TestDevice;
let stationId: number;
let orderId: number;

beforeAll(async () => {
  system = await startSystem({ environment: { PLATFORM_KEY }, sandboxProvider: true });
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  stationId = system.sandbox.stations[0]?.stationId ?? 0;
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
  await companion.good("POST", "heartbeat/");
  await cashier.good("POST", `stations/${stationId}/lease/`);
  orderId = await newOrder(cashier, `stations/${stationId}`, "12.50");
});
afterAll(() => system.stop());

const platform = (verb: "freeze" | "unfreeze") =>
  send<{ frozen: boolean }>(system.baseUrl, "POST", `/api/platform/v1/${verb}/`, {
    token: PLATFORM_KEY,
    json: { by: "Night shift", reason: `A ${verb} drill` },
  });
const readiness = () => send<Readiness>(system.baseUrl, "GET", "/readyz");
const create = (route: string) =>
  cashier.call<Refused & { intent_id: number }>("POST", `stations/${stationId}/intents/`, {
    body: { order_id: orderId, route },
  });

async function switchesOnTheBus(): Promise<string[]> {
  const keys = ["platform", ...COMPLETE_KEYS];
  const found = await Promise.all(
    keys.map((key) =>
      system.bus.jsm.streams.getMessage(`KV_${SWITCHES.name}`, { last_by_subj: `$KV.${SWITCHES.name}.${key}` }),
    ),
  );
  const stored = keys.filter((_, index) => found[index] !== null);
  return [...new Set(stored.map((key) => (key === "platform" ? key : "complete")))];
}

describe("a bus that has lost the kill switches", () => {
  it("the services are stopped: no electronic payment begins until the switches are announced again", async () => {
    expect((await platform("freeze")).status).toBe(200);
    await expect.poll(async () => (await create("smart_pos")).body).toMatchObject({ reason: "platform_frozen" });
    // The registry does not run, so the switches stay unknown for as long as this test needs.
    await system.processes.services.stop();
    await system.bus.jsm.streams.delete(`KV_${SWITCHES.name}`);
    await system.prepareBus();
    await expect
      .poll(async () => (await readiness()).body.dependencies.switches, { timeout: 10_000 })
      .toMatchObject({ ready: false, detail: "incomplete" });
    expect((await readiness()).status).toBe(503);
    expect(await switchesOnTheBus()).toEqual([]);
    for (const route of ELECTRONIC) expect((await create(route)).body).toMatchObject({ code: "unavailable" });
    expect((await companion.call<Refused>("GET", "assignment/")).body.code).toBe("replica_stale");
    expect((await cashier.call<Refused>("GET", `stations/${stationId}/routes/`)).body.code).toBe("replica_stale");

    // The test tries collections all the time while the relay announces. Each is refused, first as unknown, then as frozen.
    const stopping = new AbortController();
    const attempts = ELECTRONIC.map(async (route) => {
      const seen: string[] = [];
      while (!stopping.signal.aborted) {
        const { status, body } = await create(route);
        seen.push(status === 201 ? "created" : body.code === "route_not_offered" ? String(body.reason) : body.code);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return seen;
    });
    await system.processes.services.restart();
    await expect.poll(async () => (await readiness()).status, { timeout: 15_000 }).toBe(200);
    expect(await switchesOnTheBus()).toEqual(["platform", "complete"]);
    await new Promise((resolve) => setTimeout(resolve, 500));
    stopping.abort();
    for (const seen of await Promise.all(attempts)) {
      expect(seen.at(-1)).toBe("platform_frozen");
      expect([...new Set(seen)].filter((each) => each !== "unavailable")).toEqual(["platform_frozen"]);
    }
  });

  it("the relay runs: it announces the switches again, and no electronic payment begins before that", async () => {
    await system.bus.jsm.streams.delete(`KV_${SWITCHES.name}`);
    await system.prepareBus();
    const seen: string[] = [];
    await expect
      .poll(
        async () => {
          seen.push((await create("smart_pos")).body.code);
          return await switchesOnTheBus();
        },
        { timeout: 15_000 },
      )
      .toEqual(["platform", "complete"]);
    await expect.poll(async () => (await create("smart_pos")).body.reason, { timeout: 15_000 }).toBe("platform_frozen");
    expect([...new Set(seen)].filter((code) => code !== "unavailable" && code !== "route_not_offered")).toEqual([]);
  });

  it("freezes and other sessions unknown: cash is collected completely", async () => {
    for (const bucket of [SWITCHES, CREDENTIALS, SESSIONS]) {
      await noteComplete(system.bus, bucket, { serverId: "another run of the server" });
    }
    await expect
      .poll(async () => (await readiness()).body.dependencies.switches.ready, { timeout: 15_000 })
      .toBe(false);
    // The station's host receives the notice from another feed. Until then it still answers with the freeze.
    await expect
      .poll(async () => (await create("attested_terminal")).body.code, { timeout: 15_000 })
      .toBe("unavailable");
    const cash = await create("cash");
    expect(cash.status, cash.text).toBe(201);
    const paid = await cashier.good("POST", `stations/${stationId}/intents/${cash.body.intent_id}/attest/`, {
      body: {},
    });
    expect(paid).toMatchObject({ status: "succeeded" });
    await noteBucketsComplete(system.bus);
    await expect.poll(async () => (await readiness()).status, { timeout: 15_000 }).toBe(200);
    expect((await platform("unfreeze")).status).toBe(200);
  });
});
