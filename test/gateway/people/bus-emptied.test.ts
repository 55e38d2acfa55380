/**
 * A bus that has lost everything, or one of its parts: PostgreSQL still knows every credential and session,
 * so the gateway never reports one as invalid. A device that gets this answer may never come back.
 */

import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { Readiness } from "../../../gateway/api/meta/health.ts";
import { CREDENTIALS, SESSIONS, SWITCHES } from "../../../services/bus/streams.ts";
import { noteComplete } from "../../../services/relay/buckets.ts";
import type { ApiClient } from "../../support/api-client.ts";
import { noteBucketsComplete } from "../../support/buckets-complete.ts";
import { enrollSandboxDevice, type TestDevice } from "../../support/devices.ts";
import { type Refused, send } from "../../support/http.ts";
import { bearer, openLive } from "../../support/live-socket.ts";
import { comeBackWith } from "../../support/nats-data.ts";
import { STATION_LOG, stationLogSubject } from "../../support/one-log.ts";
import { logIn, type Person } from "../../support/people.ts";
import { addOrganization } from "../../support/second-organization.ts";
import { startSystem, type TestSystem } from "../../support/system.ts";
import { sendRaw } from "../raw-request.ts";

/** A device may ask once a second for long. */
const THROTTLED_MS = 1_100;
const PAUSE_MS = 50;
const RECOVERED = { timeout: 30_000, interval: 100 };
const NONSENSE = "never-issued";
const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

let system: TestSystem;
let cashier: Person;
let display: TestDevice;
let companion: TestDevice;
let stationId: number;

beforeAll(async () => {
  system = await startSystem();
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  stationId = system.sandbox.stations[0]?.stationId ?? 0;
  display = await enrollSandboxDevice(system, "customer_display");
  companion = await enrollSandboxDevice(system, "smart_pos_companion");
});
afterAll(() => system.stop());

const readiness = () => send<Readiness>(system.baseUrl, "GET", "/readyz");
const isReady = () => expect.poll(async () => (await readiness()).status, RECOVERED).toBe(200);

/** The answers to an unknown device and an unknown person. */
async function unknown(): Promise<string[]> {
  const asks = ["/api/payments/v1/devices/display/", "/api/cashier/v1/session/"];
  return await Promise.all(
    asks.map(async (path) => (await send<Refused>(system.baseUrl, "GET", path, { token: NONSENSE })).body.code),
  );
}

/** The answers to the devices and the cashier. */
async function known(): Promise<string[]> {
  const answers = [
    display.call<Refused>("GET", "display/"),
    companion.call<Refused>("GET", "assignment/"),
    cashier.call<Refused>("GET", "session/"),
  ];
  return (await Promise.all(answers)).map(({ status, body }) => (status === 200 ? "200" : `${status} ${body.code}`));
}

interface Asking {
  /** Status and code of each answer so far. */
  readonly seen: readonly string[];
  /** The newest answer to a caller without a throttle, which comes after the caller is identified. */
  newest(): string | undefined;
  stop(): Promise<void>;
}

/** Asks without a pause until it is stopped, a minute at most. */
function keepAsking(client: ApiClient, path: string): Asking {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, AbortSignal.timeout(60_000)]);
  const seen: string[] = [];
  const ask = async (): Promise<void> => {
    while (!signal.aborted) {
      const { status, body } = await client.call<Refused | undefined>("GET", path);
      seen.push(status >= 400 ? `${status} ${body?.code}` : String(status));
      await delay(PAUSE_MS);
    }
  };
  const asking = ask();
  return {
    seen,
    newest: () => seen.findLast((each) => each !== THROTTLED),
    stop: async () => {
      over.abort();
      await asking;
    },
  };
}

/** The refusal of the upgrade to a station's live socket; an HTTP client would not show it. */
async function upgrade(id: number): Promise<string> {
  const request = [
    `GET /api/cashier/v1/stations/${id}/live/ HTTP/1.1`,
    `Host: ${new URL(system.baseUrl).host}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    `Authorization: Bearer ${cashier.token}`,
    "\r\n",
  ].join("\r\n");
  const { status, body } = await sendRaw(Number(new URL(system.baseUrl).port), [request]);
  return status === 101 ? "101" : (JSON.parse(body) as Refused).code;
}

const THROTTLED = "429 throttled";
/** Answers that are more than "not now": a device or a person may act upon them. */
const refusalsOf = ({ seen }: Asking): string[] => [
  ...new Set(seen.filter((each) => !["200", "503 replica_stale", THROTTLED].includes(each))),
];

it("reports no device and no cashier as unknown while the relay announces everything to a server that lost everything", async () => {
  const asking = [
    keepAsking(display, "display/"),
    keepAsking(companion, "assignment/"),
    keepAsking(cashier, "session/"),
  ];
  try {
    // The relay is away for a while, so that the time in between is long enough to be seen.
    await system.processes.services.stop();
    await comeBackWith(system.nats, undefined);
    await expect.poll(() => system.bus.isUp(), RECOVERED).toBe(true);
    await system.prepareBus();
    // Kill switches are announced first; from here on devices are answered again.
    await noteComplete(system.bus, SWITCHES, { serverId: system.bus.nc.info?.server_id ?? "" });
    await delay(THROTTLED_MS);
    await system.processes.services.restart();
    await isReady();
    await delay(THROTTLED_MS);
    await expect.poll(() => asking.map((each) => each.newest()), RECOVERED).toEqual(["200", "200", "200"]);
  } finally {
    await Promise.all(asking.map((each) => each.stop()));
  }
  for (const each of asking) expect(refusalsOf(each)).toEqual([]);
  await expect.poll(unknown, RECOVERED).toEqual(["credential_invalid", "session_invalid"]);
});

it("answers 503 while the relay is away, and reports it to the balancer", async () => {
  await expect.poll(() => system.bus.isUp(), RECOVERED).toBe(true);
  const live = await openLive(system.baseUrl, stationId, bearer(cashier.token));
  await live.until(({ type }) => type === "state");
  const stays = Symbol("it stays open");
  const end = async () => await Promise.race([live.closed, delay(0).then(() => stays)]);
  await system.processes.services.stop();
  for (const { name } of [CREDENTIALS, SESSIONS]) await system.bus.jsm.streams.delete(`KV_${name}`);
  await system.prepareBus();
  await expect
    .poll(async () => (await readiness()).body.dependencies, RECOVERED)
    .toMatchObject({
      switches: { ready: true },
      credentials: { ready: false, detail: "incomplete" },
      sessions: { ready: false, detail: "incomplete" },
    });
  expect((await readiness()).status).toBe(503);
  expect(await known()).toEqual(["503 replica_stale", "503 replica_stale", "503 replica_stale"]);
  expect(await unknown()).toEqual(["replica_stale", "replica_stale"]);
  await live.until(({ type }) => type === "stale");
  await delay(500);
  expect(await end()).toBe(stays);

  await system.processes.services.restart();
  await isReady();
  expect(await unknown()).toEqual(["credential_invalid", "session_invalid"]);
  await live.until(({ type }) => type === "state");
  expect(await end()).toBe(stays);
  await expect.poll(known, { ...RECOVERED, interval: THROTTLED_MS }).toEqual(["200", "200", "200"]);
  await live.close();
});

it("serves every known caller while it does not know the others", async () => {
  await delay(THROTTLED_MS);
  for (const bucket of [CREDENTIALS, SESSIONS]) {
    await noteComplete(system.bus, bucket, { serverId: "another run of the server" });
  }
  await expect.poll(unknown, RECOVERED).toEqual(["replica_stale", "replica_stale"]);
  expect(await known()).toEqual(["200", "200", "200"]);
  await noteBucketsComplete(system.bus);
  await expect.poll(unknown, RECOVERED).toEqual(["credential_invalid", "session_invalid"]);
});

it("a station whose log is lost: no not_found for its cashier, no refusal for its devices, and both for other callers", async () => {
  const own = `stations/${stationId}/lease/`;
  const { owner } = await addOrganization(system);
  const stranger = await logIn(system.baseUrl, "backoffice", owner);
  await expect.poll(async () => (await cashier.call("GET", own)).status, RECOVERED).toBe(200);
  const live = await openLive(system.baseUrl, stationId, bearer(cashier.token));
  await live.until(({ type }) => type === "state");
  await delay(THROTTLED_MS);
  const asking = [keepAsking(cashier, own)];
  const isClosed = vi.fn();
  void live.closed.then(isClosed);
  /** A station of their own, one that does not exist, and another organization's; as a socket too. */
  const answers = async (): Promise<string[]> => {
    const asked = await Promise.all([
      cashier.call<Refused>("GET", own),
      cashier.call<Refused>("GET", "stations/987654/lease/"),
      stranger.call<Refused>("GET", `stations/${stationId}/events/`),
    ]);
    const sockets = [stationId, 987_654].map(upgrade);
    return [...asked.map(({ body }) => body.code), ...(await Promise.all(sockets))];
  };
  try {
    await system.processes.services.stop();
    await system.processes.stations.stop();
    await system.bus.jsm.streams.delete(STATION_LOG.name);
    await system.prepareBus();
    // The registry is away, and then back, while no relay could write the log.
    await expect.poll(answers, RECOVERED).toEqual(Array.from({ length: 5 }, () => "replica_stale"));
    await live.until(({ type }) => type === "stale");
    const devices = async () => (await known()).slice(0, 2);
    const stale = ["503 replica_stale", "503 replica_stale"];
    await expect.poll(devices, { ...RECOVERED, interval: THROTTLED_MS }).toEqual(stale);
    // Only the station lacks its devices.
    await isReady();
    expect(await devices()).toEqual(stale);
    asking.push(keepAsking(display, "display/"), keepAsking(companion, "assignment/"));
    await system.processes.services.restart();
    const expected = ["replica_stale", "not_found", "not_found", "replica_stale", "not_found"];
    await expect.poll(answers, RECOVERED).toEqual(expected);
    await system.processes.stations.restart();
    await live.until(({ type }) => type === "state", RECOVERED.timeout);
    await expect.poll(() => asking.map((each) => each.newest()), RECOVERED).toEqual(["200", "200", "200"]);
  } finally {
    await Promise.all(asking.map((each) => each.stop()));
  }
  for (const each of asking) expect(refusalsOf(each)).toEqual([]);
  expect(isClosed).not.toHaveBeenCalled();
  await live.close();
});

it("a known station that has lost its log: the answer is that nothing was done", async () => {
  const command = () => cashier.call<Refused>("POST", `stations/${stationId}/lease/`);
  await expect.poll(async () => (await command()).status, RECOVERED).toBe(200);
  await system.bus.jsm.streams.purge(STATION_LOG.name, { filter: stationLogSubject(stationId) });
  const { status, body } = await command();
  expect([status, body.code]).toEqual([503, "replica_stale"]);
});
