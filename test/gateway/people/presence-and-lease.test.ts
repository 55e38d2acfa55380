/**
 * What ends without a request, here after shorter times than in production: a cashier's lease, and the presence of a companion
 * on the cashier's screen. The companion becomes silent, sends heartbeats again, or sends heartbeats without polls.
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
/** The gateway dates by the time of the bus. */
const CLOCKS_MS = 100;

let system: TestSystem;
let second: GatewayProcess;
let cashier: Person;
let companion: TestDevice;
let stationId: number;
/** One live socket at each gateway. */
let liveSockets: readonly TestLiveSocket[];
let heartbeats: NodeJS.Timeout;

const sendHeartbeat = () => companion.good("POST", "heartbeat/");
const startHeartbeats = (): void => {
  heartbeats = setInterval(() => void sendHeartbeat().catch(() => undefined), SILENCE_MS / 2);
};

beforeAll(async () => {
  system = await startSystem({
    environment: { DEVICE_SILENCE_MS: String(SILENCE_MS), STATION_LEASE_MS: String(LEASE_MS) },
  });
  second = await startGatewayProcess(system.nats.url);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  stationId = system.sandbox.stations[0]?.stationId ?? 0;
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
  liveSockets = await Promise.all(
    [system.baseUrl, second.baseUrl].map((baseUrl) => openLive(baseUrl, stationId, bearer(cashier.token))),
  );
});
afterAll(async () => {
  clearInterval(heartbeats);
  await second.stop();
  await system.stop();
});

const smartPos = (message: LiveMessage) =>
  message.type === "state" ? message.routes.find(({ route }) => route === "smart_pos") : undefined;
const readiness = (message: LiveMessage) => (message.type === "state" ? message.companions[0]?.readiness : undefined);

/** The time at which each socket first showed a state that fits. */
const shownToAll = async (fits: (message: LiveMessage) => boolean): Promise<number[]> =>
  await Promise.all(liveSockets.map(async (live) => (await live.until(fits, 10_000)).atMs));

describe("a companion on the cashier's screen", () => {
  it("heartbeats without a poll: shown as not polling at both gateways, until the companion polls", async () => {
    await shownToAll((message) => readiness(message) === "offline");
    await sendHeartbeat();
    startHeartbeats();
    await shownToAll((message) => readiness(message) === "not_polling" && smartPos(message)?.offered === true);
    const sentAtMs = Date.now();
    await send(second.baseUrl, "GET", "/api/payments/v1/devices/assignment/", { token: companion.credential });
    const answeredAtMs = Date.now();
    await shownToAll((message) => readiness(message) === "ready");
    const polledAt = liveSockets.map((live) => live.state().companions[0]?.last_polled_at);
    expect(new Set(polledAt).size).toBe(1);
    expect(Date.parse(polledAt[0] ?? "")).toBeGreaterThanOrEqual(sentAtMs - CLOCKS_MS);
    expect(Date.parse(polledAt[0] ?? "")).toBeLessThanOrEqual(answeredAtMs + CLOCKS_MS);
    const routes = await cashier.good<{ companions: { last_polled_at: string }[] }>(
      "GET",
      `stations/${stationId}/routes/`,
    );
    expect(routes.companions[0]?.last_polled_at).toBe(polledAt[0]);
  });

  it("silence: smart_pos is withdrawn after the silence period; a heartbeat makes it offered again", async () => {
    clearInterval(heartbeats);
    const sentAtMs = Date.now();
    await sendHeartbeat();
    const shownAtMs = await shownToAll((message) => smartPos(message)?.reason === "device_offline");
    for (const [index, atMs] of shownAtMs.entries()) {
      expect(atMs).toBeGreaterThanOrEqual(sentAtMs + SILENCE_MS);
      const state = liveSockets[index]?.state();
      const since = Date.parse(state?.routes.find(({ route }) => route === "smart_pos")?.since ?? "");
      expect(since).toBeGreaterThanOrEqual(sentAtMs + SILENCE_MS);
      expect(since).toBeLessThanOrEqual(atMs);
      expect(state?.companions[0]?.readiness).toBe("offline");
    }
    const { routes } = await cashier.good<{ routes: object[] }>("GET", `stations/${stationId}/routes/`);
    expect(routes).toContainEqual(liveSockets[0]?.state().routes.find(({ route }) => route === "smart_pos"));
    // The heartbeat does not come in the millisecond in which the silence begins. The tests of the host check that case.
    await new Promise((resolve) => setTimeout(resolve, 250));
    await sendHeartbeat();
    await shownToAll((message) => smartPos(message)?.offered === true);
  });
});

describe("a cashier's lease", () => {
  it("not renewed: it lapses, and the station collects nothing without a lease", async () => {
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
