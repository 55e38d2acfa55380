/**
 * What ends by itself, with shorter times than in service: a companion's presence on the cashier's screen (silent, back again,
 * and with heartbeats but without polls), and a cashier's lease.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { enrollSandboxDevice, type TestDevice } from "../../support/devices.ts";
import { HANGS } from "../../support/hangs.ts";
import { send } from "../../support/http.ts";
import { bearer, type LiveMessage, openLive, type TestLiveSocket } from "../../support/live-socket.ts";
import { logIn, newOrder, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";
import { type GatewayProcess, startGatewayProcess } from "../gateway-process.ts";

const SILENCE_MS = 3_000;
const LEASE_MS = 1_500;

let system: TestSystem;
let second: GatewayProcess;
let cashier: Person;
let companion: TestDevice;
let stationId: number;
/** One at each gateway. */
let lives: readonly TestLiveSocket[];
let pulse: NodeJS.Timeout;

/** The silence counts from the moment at which the heartbeat was taken, between asking and answer. */
async function beat(): Promise<{ askedAtMs: number; answeredAtMs: number }> {
  const askedAtMs = Date.now();
  await companion.good("POST", "heartbeat/");
  return { askedAtMs, answeredAtMs: Date.now() };
}
const startPulse = (): void => {
  pulse = setInterval(() => void beat().catch(() => undefined), SILENCE_MS / 2);
};

beforeAll(async () => {
  system = await startSystem({
    environment: { DEVICE_SILENCE_MS: String(SILENCE_MS), STATION_LEASE_MS: String(LEASE_MS) },
  });
  second = await startGatewayProcess(system.nats.url);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  stationId = system.sandbox.stations[0]?.stationId ?? 0;
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
  lives = await Promise.all(
    [system.baseUrl, second.baseUrl].map((baseUrl) => openLive(baseUrl, stationId, bearer(cashier.token))),
  );
});
afterAll(async () => {
  clearInterval(pulse);
  await second.stop();
  await system.stop();
});

const smartPos = (message: LiveMessage) =>
  message.type === "state" ? message.routes.find(({ route }) => route === "smart_pos") : undefined;
const readiness = (message: LiveMessage) => (message.type === "state" ? message.companions[0]?.readiness : undefined);

/** When each socket showed it first. */
const shownToAll = async (fits: (message: LiveMessage) => boolean): Promise<number[]> =>
  await Promise.all(lives.map(async (live) => (await live.until(fits, 10_000)).atMs));

describe("a companion", () => {
  it("with heartbeats and without a poll: shown as such, alike at every gateway, until it polls", async () => {
    await shownToAll((message) => readiness(message) === "offline");
    await beat();
    startPulse();
    await shownToAll((message) => readiness(message) === "not_polling" && smartPos(message)?.offered === true);
    const askedAtMs = Date.now();
    await send(second.baseUrl, "GET", "/api/payments/v1/devices/assignment/", { token: companion.credential });
    const shownAtMs = await shownToAll((message) => readiness(message) === "ready");
    for (const atMs of shownAtMs) expect(atMs - askedAtMs).toBeLessThan(1_000);
    const polledAt = lives.map((live) => live.state().companions[0]?.last_polled_at);
    expect(new Set(polledAt).size).toBe(1);
    expect(Math.abs(Date.parse(polledAt[0] ?? "") - askedAtMs)).toBeLessThan(1_000);
    const routes = await cashier.good<{ companions: { last_polled_at: string }[] }>(
      "GET",
      `stations/${stationId}/routes/`,
    );
    expect(routes.companions[0]?.last_polled_at).toBe(polledAt[0]);
  });

  it("silent: smart_pos is withdrawn within a second after the silence period, and comes back with it", async () => {
    clearInterval(pulse);
    const { askedAtMs, answeredAtMs } = await beat();
    const shownAtMs = await shownToAll((message) => smartPos(message)?.reason === "device_offline");
    for (const [index, atMs] of shownAtMs.entries()) {
      expect(atMs).toBeGreaterThanOrEqual(askedAtMs + SILENCE_MS);
      expect(atMs - (answeredAtMs + SILENCE_MS)).toBeLessThan(1_000);
      const state = lives[index]?.state();
      const since = Date.parse(state?.routes.find(({ route }) => route === "smart_pos")?.since ?? "");
      expect(since).toBeGreaterThanOrEqual(askedAtMs + SILENCE_MS);
      expect(since).toBeLessThanOrEqual(atMs);
      expect(state?.companions[0]?.readiness).toBe("offline");
    }
    const { routes } = await cashier.good<{ routes: object[] }>("GET", `stations/${stationId}/routes/`);
    expect(routes).toContainEqual(lives[0]?.state().routes.find(({ route }) => route === "smart_pos"));
    // Not in the very millisecond of the silence: the host's own tests check what the host does then.
    await new Promise((resolve) => setTimeout(resolve, 250));
    const back = await beat();
    const restored = await shownToAll((message) => smartPos(message)?.offered === true);
    for (const atMs of restored) expect(atMs - back.askedAtMs).toBeLessThan(1_000);
  });
});

describe("a cashier's lease", () => {
  it("lapses: the station is free again, and collects nothing without one", async () => {
    const station = `stations/${stationId}`;
    const order_id = await newOrder(cashier, station, "5.00");
    const { lease } = await cashier.good<{ lease: object }>("POST", `${station}/lease/`);
    expect(lease).toMatchObject({ mine: true });
    await vi.waitFor(
      async () => expect(await cashier.good("GET", `${station}/lease/`)).toEqual({ lease: null, lost_lease: null }),
      { ...HANGS, interval: 100 },
    );
    await cashier.refused("lease_required", "POST", `${station}/intents/`, { body: { order_id, route: "cash" } });
    await cashier.good("POST", `${station}/lease/`);
  });
});
