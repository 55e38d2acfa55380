/** Kill switches end to end, with two gateways and two hosts: what each withdraws and why, how fast, and what still works. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type HostProcess, startHostProcess } from "../../stations/host-process.ts";
import { type ApiClient, apiClient } from "../../support/api-client.ts";
import { enrollSandboxDevice, type TestDevice } from "../../support/devices.ts";
import { type Refused, send } from "../../support/http.ts";
import { bearer, openLive } from "../../support/live-socket.ts";
import { logIn, newOrder, type Person } from "../../support/people.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";
import { type GatewayProcess, startGatewayProcess } from "../gateway-process.ts";

const PLATFORM_KEY = "platform-key-of-the-kill-switch-test";
const WITHIN_MS = 1_500;

interface Offer {
  readonly route: string;
  readonly offered: boolean;
  readonly reason: string | null;
}
interface Intent {
  readonly intent_id: number;
  readonly status: string;
}

let system: TestSystem;
let second: GatewayProcess;
let host: HostProcess;
let owner: Person;
let cashier: Person;
/** Clients of the two gateways, with the same session. */
let gateways: readonly ApiClient[];
let stationId: number;
let companion: TestDevice;
let configId: number;
let heartbeats: NodeJS.Timeout;

type Reasons = Readonly<Record<"smart_pos" | "dynamic_qr" | "attested_terminal" | "cash", string | null>>;
const NOTHING_WITHDRAWN: Reasons = { smart_pos: null, dynamic_qr: null, attested_terminal: null, cash: null };
/** The reasons of the routes during a freeze: it withdraws every electronic route. */
const onlyCash = (reason: string): Reasons => ({
  smart_pos: reason,
  dynamic_qr: reason,
  attested_terminal: reason,
  cash: null,
});

beforeAll(async () => {
  // This test does not use the shared system, because the audit log of every organization has the platform's switches.
  system = await startSystem({ environment: { PLATFORM_KEY }, sandboxProvider: true });
  [second, host] = await Promise.all([
    startGatewayProcess(system.nats.url),
    startHostProcess({ NATS_URL: system.nats.url }),
  ]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const roots = [system.baseUrl, second.baseUrl].map((baseUrl) => `${baseUrl}/api/cashier/v1/`);
  gateways = roots.map((root) => apiClient(root, cashier.token));
  stationId = system.sandbox.stations[0]?.stationId ?? 0;
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
  await companion.good("POST", "heartbeat/");
  heartbeats = setInterval(() => void companion.call("POST", "heartbeat/").catch(() => undefined), 8_000);
  await cashier.good("POST", `stations/${stationId}/lease/`);
  const { provider_configs } = await owner.good<{ provider_configs: { config_id: number }[] }>(
    "GET",
    "provider-configs/",
  );
  configId = provider_configs[0]?.config_id ?? 0;
  await untilEverywhere(NOTHING_WITHDRAWN);
});
afterAll(async () => {
  clearInterval(heartbeats);
  await Promise.all([second.stop(), host.stop()]);
  await system.stop();
});

const offersAt = async (gateway: ApiClient, station = stationId): Promise<Record<string, string | null>> => {
  const { routes } = await gateway.good<{ routes: Offer[] }>("GET", `stations/${station}/routes/`);
  return Object.fromEntries(routes.map(({ route, reason }) => [route, reason]));
};

/**
 * Waits until every gateway shows exactly these reasons. Returns how long after `sinceMs` (of `performance`) that was. A caller
 * that measures a switch reads the clock before it changes the switch.
 */
async function untilEverywhere(
  reasons: Reasons,
  { sinceMs = performance.now(), station = stationId }: { sinceMs?: number; station?: number } = {},
): Promise<number> {
  const shown = gateways.map(async (gateway) => {
    // A hook may not use `expect.poll`.
    await vi.waitFor(async () => expect(await offersAt(gateway, station)).toEqual(reasons), {
      timeout: 15_000,
      interval: 40,
    });
  });
  await Promise.all(shown);
  return performance.now() - sinceMs;
}

const create = async (route: string, station = stationId) =>
  await cashier.call<Intent & Refused>("POST", `stations/${station}/intents/`, {
    body: { order_id: await newOrder(cashier, `stations/${station}`, "12.50"), route },
  });

/** Sends one request of the companion, and again while the throttle refuses it. */
async function sendAsDevice<T>(baseUrl: string, method: string, path: string, json?: object) {
  for (;;) {
    const sending = { token: companion.credential, ...(json === undefined ? {} : { json }) };
    const answer = await send<T & Refused>(baseUrl, method, `/api/payments/v1/devices/${path}`, sending);
    if (answer.status !== 429) return answer;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** How each gateway answers the companion's poll of its assignment: the status, and the code of a refusal. */
async function assignmentAnswers(): Promise<string[]> {
  const answers = [system.baseUrl, second.baseUrl].map(async (baseUrl) => {
    const { status, body } = await sendAsDevice(baseUrl, "GET", "assignment/");
    return status === 200 ? "200" : `${status} ${body.code}`;
  });
  return await Promise.all(answers);
}
const twice = (answer: string): string[] => [answer, answer];

const platform = (verb: "freeze" | "unfreeze", baseUrl = system.baseUrl) =>
  send<Refused & { frozen: boolean }>(baseUrl, "POST", `/api/platform/v1/${verb}/`, {
    token: PLATFORM_KEY,
    json: { by: "Night shift", reason: `Drill: ${verb}` },
  });
const setOwnerSwitch = (path: string, verb: "freeze" | "unfreeze") =>
  owner.good<{ frozen: boolean }>("POST", `${path}/${verb}/`, { body: { reason: `Drill: ${verb}` } });

interface OwnerSwitch {
  readonly name: string;
  readonly path: () => string;
  readonly reason: string;
  readonly withdraws: Reasons;
  /** Whether the gateway refuses the companion. */
  readonly refusesDevice: boolean;
}

/** Each switch of the owner: which routes it withdraws, with which reason, and whether it blocks the companion. */
const SWITCHES: readonly OwnerSwitch[] = [
  {
    name: "device",
    path: () => `devices/${companion.deviceId}`,
    reason: "device_frozen",
    withdraws: { ...NOTHING_WITHDRAWN, smart_pos: "device_frozen" },
    refusesDevice: true,
  },
  {
    name: "station",
    path: () => `stations/${stationId}`,
    reason: "station_frozen",
    withdraws: onlyCash("station_frozen"),
    refusesDevice: true,
  },
  {
    name: "organization",
    path: () => "organization",
    reason: "organization_frozen",
    withdraws: onlyCash("organization_frozen"),
    refusesDevice: true,
  },
  {
    name: "provider",
    path: () => `provider-configs/${configId}`,
    reason: "provider_frozen",
    withdraws: { ...NOTHING_WITHDRAWN, dynamic_qr: "provider_frozen" },
    refusesDevice: false,
  },
];

describe.each(SWITCHES)("the switch of the $name", ({ name, path, reason, withdraws, refusesDevice }) => {
  const withdrawn = Object.entries(withdraws).find(([, why]) => why === reason)?.[0] ?? "";

  it("a freeze: exactly its routes are withdrawn at both gateways within 1.5 s; its end: all are offered again", async () => {
    const live = await openLive(second.baseUrl, stationId, bearer(cashier.token));
    await live.until((message) => message.type === "state");
    const atMs = Date.now();
    const frozenMs = performance.now();
    const frozen = setOwnerSwitch(path(), "freeze");
    const pushed = live.until(
      (message) =>
        message.type === "state" && message.routes.some((one) => one.route === withdrawn && one.reason === reason),
    );
    expect(await untilEverywhere(withdraws, { sinceMs: frozenMs })).toBeLessThan(WITHIN_MS);
    expect((await pushed).atMs - atMs).toBeLessThan(WITHIN_MS);
    expect(await frozen).toMatchObject({ frozen: true, subject: { kind: name }, reason: "Drill: freeze" });
    expect(await assignmentAnswers()).toEqual(twice(refusesDevice ? `403 ${reason}` : "200"));
    // The host applies the switch itself, so its refusal does not depend on the gateway.
    for (const [route, why] of Object.entries(withdraws)) {
      if (why === null) continue;
      const refused = await create(route);
      expect(refused, route).toMatchObject({ status: 409, body: { code: "route_not_offered", reason: why } });
    }
    const { kill_switches } = await owner.good<{ kill_switches: { subject: { kind: string } }[] }>(
      "GET",
      "kill-switches/",
    );
    expect(kill_switches.map(({ subject }) => subject.kind)).toEqual([name]);

    const liftedMs = performance.now();
    await setOwnerSwitch(path(), "unfreeze");
    expect(await untilEverywhere(NOTHING_WITHDRAWN, { sinceMs: liftedMs })).toBeLessThan(WITHIN_MS);
    expect(await assignmentAnswers()).toEqual(twice("200"));
    const { kill_switches: none } = await owner.good<{ kill_switches: object[] }>("GET", "kill-switches/");
    expect(none).toEqual([]);
    await live.close();
  });
});

describe("the platform's switch", () => {
  it("a request without the platform key: refused; a gateway without a key: the path does not exist", async () => {
    const path = "/api/platform/v1/freeze/";
    const json = { by: "An attacker", reason: "Spite" };
    const codeWith = async (token?: string) => {
      const sending = token === undefined ? { json } : { json, token };
      return (await send<Refused>(system.baseUrl, "POST", path, sending)).body.code;
    };
    expect(await codeWith()).toBe("platform_key_missing");
    expect(await codeWith(`${PLATFORM_KEY}x`)).toBe("platform_key_invalid");
    expect(await codeWith(owner.token)).toBe("platform_key_invalid");
    const elsewhere = await send<Refused>(second.baseUrl, "POST", path, { json, token: PLATFORM_KEY });
    expect([elsewhere.status, elsewhere.body.code]).toEqual([404, "path_not_found"]);
    const nameless = await send<Refused>(system.baseUrl, "POST", path, { json: { reason: "x" }, token: PLATFORM_KEY });
    expect(nameless.body.code).toBe("invalid_request");
    const read = await send(system.baseUrl, "GET", "/api/platform/v1/kill-switch/", { token: PLATFORM_KEY });
    expect(read.body).toEqual({ kill_switch: null });
  });

  it("a freeze: withdraws all routes but cash at every station, and a collection in cash succeeds", async () => {
    const sinceMs = performance.now();
    const { body } = await platform("freeze");
    expect(body.frozen).toBe(true);
    const everywhere = system.sandbox.stations.map((station) =>
      untilEverywhere(onlyCash("platform_frozen"), { sinceMs, station: station.stationId }),
    );
    for (const tookMs of await Promise.all(everywhere)) expect(tookMs).toBeLessThan(WITHIN_MS);
    expect(await assignmentAnswers()).toEqual(twice("403 platform_frozen"));
    for (const route of ["smart_pos", "dynamic_qr", "attested_terminal"]) {
      const refused = await create(route);
      expect(refused.body, route).toMatchObject({ code: "route_not_offered", reason: "platform_frozen" });
    }

    const cash = await create("cash");
    expect(cash.status).toBe(201);
    const path = `stations/${stationId}/intents/${cash.body.intent_id}`;
    const sold = await gateways[1]?.good<Intent & { order_id: number }>("POST", `${path}/attest/`);
    expect(sold?.status).toBe("succeeded");
    const order = await cashier.good<{ status: string; transaction: { route: string } }>(
      "GET",
      `orders/${sold?.order_id}/`,
    );
    expect([order.status, order.transaction.route]).toEqual(["paid", "cash"]);

    await platform("unfreeze");
    await untilEverywhere(NOTHING_WITHDRAWN);
    expect(await assignmentAnswers()).toEqual(twice("200"));
  });

  it("a freeze during a collection: the device can neither fetch nor report until the freeze is lifted", async () => {
    const { body: intent } = await create("smart_pos");
    const fetched = await sendAsDevice<{ assignment: { status: string } }>(system.baseUrl, "GET", "assignment/");
    expect(fetched.body.assignment.status).toBe("presented");
    await platform("freeze");
    await untilEverywhere(onlyCash("platform_frozen"));
    const report = { intent_id: intent.intent_id, outcome: "reported_success", client_idempotency_key: "one" };
    for (const baseUrl of [system.baseUrl, second.baseUrl]) {
      const refused = await sendAsDevice(baseUrl, "POST", "assignment/report/", report);
      expect([refused.status, refused.body.code]).toEqual([403, "platform_frozen"]);
    }
    const path = `stations/${stationId}/intents/${intent.intent_id}/`;
    expect(await cashier.good<Intent>("GET", path)).toMatchObject({ status: "presented", reports: [] });
    await platform("unfreeze");
    await untilEverywhere(NOTHING_WITHDRAWN);
    expect((await sendAsDevice(second.baseUrl, "POST", "assignment/report/", report)).status).toBe(200);
    const sold = await cashier.good<Intent>("POST", `${path}attest/`, { body: {} });
    expect(sold.status).toBe("succeeded");
  });

  it("the organization's audit log: has each switch of this file once, with person and reason", async () => {
    const { events } = await owner.good<{
      events: { action: string; actor: { kind: string; name: string }; data: { reason: string } }[];
    }>("GET", "events/?since_id=0&limit=500");
    const switches = events.filter(({ action }) => /_(?:un)?frozen$/.test(action));
    const pair = (what: string) => [
      { action: `${what}_frozen`, data: { reason: "Drill: freeze" } },
      { action: `${what}_unfrozen`, data: { reason: "Drill: unfreeze" } },
    ];
    const expected = ["device", "station", "organization", "provider", "platform", "platform"].flatMap(pair);
    expect(switches).toMatchObject(expected);
    for (const { action, actor } of switches) {
      const who = action.startsWith("platform") ? { kind: "platform", name: "Night shift" } : { kind: "owner" };
      expect(actor).toMatchObject(who);
    }
  });

  it("a kill and a restart of the services: the freeze holds, and can be lifted afterwards", async () => {
    const sinceMs = performance.now();
    await platform("freeze");
    await system.processes.services.kill9();
    expect(await untilEverywhere(onlyCash("platform_frozen"), { sinceMs })).toBeLessThan(WITHIN_MS);
    await system.processes.services.restart();
    await platform("unfreeze");
    // The companion may have been silent for too long. Then its heartbeat makes its route offered again.
    await companion.call("POST", "heartbeat/");
    await untilEverywhere(NOTHING_WITHDRAWN);
  });
});
