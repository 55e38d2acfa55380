/**
 * The bus has lost all its data or a part of it, but PostgreSQL still has every credential and session. So the gateway must
 * not report one of them as invalid: a device that receives this answer may never send a request again.
 */

import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
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

/** The throttle of a credential allows one request a second. */
const THROTTLED_MS = 1_100;
const PAUSE_MS = 50;
const RECOVERED = { timeout: 30_000, interval: 100 };
const NONSENSE = "never-issued";

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

/** The codes that an unknown device and an unknown person receive. */
async function unknownAnswers(): Promise<string[]> {
  const paths = ["/api/payments/v1/devices/display/", "/api/cashier/v1/session/"];
  return await Promise.all(
    paths.map(async (path) => (await send<Refused>(system.baseUrl, "GET", path, { token: NONSENSE })).body.code),
  );
}

/** The statuses, with a code for errors, that the devices and the cashier receive. */
async function knownAnswers(): Promise<string[]> {
  const answers = [
    display.call<Refused>("GET", "display/"),
    companion.call<Refused>("GET", "assignment/"),
    cashier.call<Refused>("GET", "session/"),
  ];
  return (await Promise.all(answers)).map(({ status, body }) => (status === 200 ? "200" : `${status} ${body.code}`));
}

interface Polling {
  /** Status and code of each answer so far. */
  readonly seen: readonly string[];
  /** The newest answer except `throttled`. The gateway sends that one only after it has identified the caller. */
  newest(): string | undefined;
  stop(): Promise<void>;
}

/** Sends requests until `stop`, for a minute at most. */
function pollRepeatedly(client: ApiClient, path: string): Polling {
  const stopping = new AbortController();
  const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(60_000)]);
  const seen: string[] = [];
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const { status, body } = await client.call<Refused | undefined>("GET", path);
      seen.push(status >= 400 ? `${status} ${body?.code}` : String(status));
      await delay(PAUSE_MS);
    }
  };
  const polling = run();
  return {
    seen,
    newest: () => seen.findLast((each) => each !== THROTTLED),
    stop: async () => {
      stopping.abort();
      await polling;
    },
  };
}

/** Tries to open a station's live socket. Returns the code of the error, which an HTTP client would not show. */
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
/** All errors except `replica_stale` and `throttled`. A device or a person may act on these errors. */
const refusalsOf = ({ seen }: Polling): string[] => [
  ...new Set(seen.filter((each) => !["200", "503 replica_stale", THROTTLED].includes(each))),
];

describe("a gateway whose bus has lost data", () => {
  it("all data lost: no device and no cashier is reported as unknown while the relay fills the server again", async () => {
    const polling = [
      pollRepeatedly(display, "display/"),
      pollRepeatedly(companion, "assignment/"),
      pollRepeatedly(cashier, "session/"),
    ];
    try {
      // The relay is stopped for a while, so that the test sees the answers during this time.
      await system.processes.services.stop();
      await comeBackWith(system.nats, undefined);
      await expect.poll(() => system.bus.isUp(), RECOVERED).toBe(true);
      await system.prepareBus();
      // The relay announces kill switches first. From here on, the gateway answers devices again.
      await noteComplete(system.bus, SWITCHES, { serverId: system.bus.nc.info?.server_id ?? "" });
      await delay(THROTTLED_MS);
      await system.processes.services.restart();
      await isReady();
      await delay(THROTTLED_MS);
      await expect.poll(() => polling.map((each) => each.newest()), RECOVERED).toEqual(["200", "200", "200"]);
    } finally {
      await Promise.all(polling.map((each) => each.stop()));
    }
    for (const each of polling) expect(refusalsOf(each)).toEqual([]);
    await expect.poll(unknownAnswers, RECOVERED).toEqual(["credential_invalid", "session_invalid"]);
  });

  it("credentials and sessions lost and the relay stopped: 503, and the gateway reports that it is not ready", async () => {
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
    expect(await knownAnswers()).toEqual(["503 replica_stale", "503 replica_stale", "503 replica_stale"]);
    expect(await unknownAnswers()).toEqual(["replica_stale", "replica_stale"]);
    await live.until(({ type }) => type === "stale");
    await delay(500);
    expect(await end()).toBe(stays);

    await system.processes.services.restart();
    await isReady();
    expect(await unknownAnswers()).toEqual(["credential_invalid", "session_invalid"]);
    await live.until(({ type }) => type === "state");
    expect(await end()).toBe(stays);
    await expect.poll(knownAnswers, { ...RECOVERED, interval: THROTTLED_MS }).toEqual(["200", "200", "200"]);
    await live.close();
  });

  it("buckets that may be incomplete: known callers are served, unknown callers get 503", async () => {
    await delay(THROTTLED_MS);
    for (const bucket of [CREDENTIALS, SESSIONS]) {
      await noteComplete(system.bus, bucket, { serverId: "another run of the server" });
    }
    await expect.poll(unknownAnswers, RECOVERED).toEqual(["replica_stale", "replica_stale"]);
    expect(await knownAnswers()).toEqual(["200", "200", "200"]);
    await noteBucketsComplete(system.bus);
    await expect.poll(unknownAnswers, RECOVERED).toEqual(["credential_invalid", "session_invalid"]);
  });

  it("a station's log lost: 503 for its cashier and its devices, `not_found` for other callers", async () => {
    const leasePath = `stations/${stationId}/lease/`;
    const { owner } = await addOrganization(system);
    const stranger = await logIn(system.baseUrl, "backoffice", owner);
    await expect.poll(async () => (await cashier.call("GET", leasePath)).status, RECOVERED).toBe(200);
    const live = await openLive(system.baseUrl, stationId, bearer(cashier.token));
    await live.until(({ type }) => type === "state");
    await delay(THROTTLED_MS);
    const polling = [pollRepeatedly(cashier, leasePath)];
    const isClosed = vi.fn();
    void live.closed.then(isClosed);
    /** The answers about the cashier's station, an unknown station and a foreign one; then those about two live sockets. */
    const answers = async (): Promise<string[]> => {
      const replies = await Promise.all([
        cashier.call<Refused>("GET", leasePath),
        cashier.call<Refused>("GET", "stations/987654/lease/"),
        stranger.call<Refused>("GET", `stations/${stationId}/events/`),
      ]);
      const sockets = [stationId, 987_654].map(upgrade);
      return [...replies.map(({ body }) => body.code), ...(await Promise.all(sockets))];
    };
    try {
      await system.processes.services.stop();
      await system.processes.stations.stop();
      await system.bus.jsm.streams.delete(STATION_LOG.name);
      await system.prepareBus();
      // First the registry is stopped. Later it runs again, while no actor host can write the station's log.
      await expect.poll(answers, RECOVERED).toEqual(Array.from({ length: 5 }, () => "replica_stale"));
      await live.until(({ type }) => type === "stale");
      const devices = async () => (await knownAnswers()).slice(0, 2);
      const stale = ["503 replica_stale", "503 replica_stale"];
      await expect.poll(devices, { ...RECOVERED, interval: THROTTLED_MS }).toEqual(stale);
      // The gateway is ready, because it lacks the devices of this station only.
      await isReady();
      expect(await devices()).toEqual(stale);
      polling.push(pollRepeatedly(display, "display/"), pollRepeatedly(companion, "assignment/"));
      await system.processes.services.restart();
      const expected = ["replica_stale", "not_found", "not_found", "replica_stale", "not_found"];
      await expect.poll(answers, RECOVERED).toEqual(expected);
      await system.processes.stations.restart();
      await live.until(({ type }) => type === "state", RECOVERED.timeout);
      await expect.poll(() => polling.map((each) => each.newest()), RECOVERED).toEqual(["200", "200", "200"]);
    } finally {
      await Promise.all(polling.map((each) => each.stop()));
    }
    for (const each of polling) expect(refusalsOf(each)).toEqual([]);
    expect(isClosed).not.toHaveBeenCalled();
    await live.close();
  });

  it("a station's log lost, and a command for the station: 503, because nothing was done", async () => {
    const command = () => cashier.call<Refused>("POST", `stations/${stationId}/lease/`);
    await expect.poll(async () => (await command()).status, RECOVERED).toBe(200);
    await system.bus.jsm.streams.purge(STATION_LOG.name, { filter: stationLogSubject(stationId) });
    const { status, body } = await command();
    expect([status, body.code]).toEqual([503, "replica_stale"]);
  });
});
