/** A gateway whose feed is silent answers 503, and never from old state (design §2.2, I8). */

import { hash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Msg } from "nats";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { z } from "zod";
import type { readinessSchema } from "../../gateway/api/meta/health.ts";
import { ReplicaFeed } from "../../gateway/read-model/replica-feed.ts";
import { CREDENTIAL_RATE } from "../../gateway/read-model/throttles.ts";
import type { Bus } from "../../services/bus/connection.ts";
import { Link } from "../cluster/link.ts";
import { DEVICES } from "../support/devices.ts";
import { type Answer, type Refused, send } from "../support/http.ts";
import { startGatewayProcess } from "./gateway-process.ts";
import { COMPANION_SCOPES, DISPLAY_SCOPES, type GatewayWorld, SILENT, startGatewayWorld } from "./gateway-world.ts";

const ROUTES = "/api/cashier/v1/stations/4/routes/";
/** Longer than the allowed silence of a feed, and shorter than the time after which a silent connection is closed. */
const SILENCE_MS = 2_000;

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterEach(() => world.nats.signal("SIGCONT"));
afterAll(() => world.stop());

const readiness = (): Promise<Answer<z.infer<typeof readinessSchema>>> => send(world.baseUrl, "GET", "/readyz");

describe("a gateway while nats-server is stalled", () => {
  it("answers that depend on a feed: 503 `replica_stale`; after the stall: the newest state", async () => {
    const station = await world.openStation(1);
    const display = await world.credential(station.displayId, 1, DISPLAY_SCOPES);
    const companion = await world.credential(station.companionId, 1, COMPANION_SCOPES);
    const session = await world.session({ permissions: ["payments.collect"] });
    const requests = [
      () => send<Refused>(world.baseUrl, "GET", `${DEVICES}display/`, { token: display }),
      () =>
        send<Refused>(world.baseUrl, "GET", `${DEVICES}display/`, {
          token: display,
          headers: { "if-none-match": "*" },
        }),
      () => send<Refused>(world.baseUrl, "GET", `${DEVICES}me/`, { token: companion }),
      () => send<Refused>(world.baseUrl, "GET", `${DEVICES}assignment/`, { token: companion }),
      () => send<Refused>(world.baseUrl, "POST", `${DEVICES}heartbeat/`, { token: companion }),
      () => send<Refused>(world.baseUrl, "POST", `${DEVICES}enroll/`, { json: { code: "7K3QX-9M2TB" } }),
      () => send<Refused>(world.baseUrl, "GET", "/api/cashier/v1/session/", { token: session }),
    ];
    for (const request of requests.slice(0, 3)) expect((await request()).status).toBeLessThan(400);
    expect((await readiness()).body.ready).toBe(true);

    world.nats.signal("SIGSTOP");
    // There is no delay here, because on a busy machine the last heartbeat is late. The allowed silence has not passed yet.
    expect((await requests[0]?.())?.status).toBe(200);
    await delay(SILENCE_MS);
    for (const [index, request] of requests.entries()) {
      const answer = await request();
      expect([index, answer.status, answer.body.code]).toEqual([index, 503, "replica_stale"]);
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    }
    const ready = await readiness();
    expect(ready.status).toBe(503);
    expect(ready.body.dependencies.stations.ready).toBe(false);
    expect((await send(world.baseUrl, "GET", "/healthz")).status).toBe(200);
    // A stale gateway gives unknown credentials the same answer as known ones.
    const unknown = await send<Refused>(world.baseUrl, "GET", `${DEVICES}me/`, { token: "nonsense" });
    expect(unknown.body.code).toBe("replica_stale");

    world.nats.signal("SIGCONT");
    await expect.poll(async () => (await readiness()).status, { timeout: 10_000 }).toBe(200);
    await station.handOver();
    const shown = await send(world.baseUrl, "GET", `${DEVICES}display/`, { token: display });
    expect(shown.body).toMatchObject({ state: "total", amount: "25.00" });
  });
});

describe("a gateway after a kill and a restart of nats-server", () => {
  it("fresh again without a restart, with the commits from before and after", async () => {
    const station = await world.openStation(2);
    const credential = await world.credential(station.displayId, 2, DISPLAY_SCOPES);
    await world.nats.kill9();
    await delay(SILENCE_MS);
    const refused = await send<Refused>(world.baseUrl, "GET", `${DEVICES}display/`, { token: credential });
    expect(refused.body.code).toBe("replica_stale");
    await world.nats.restart();
    await expect.poll(async () => (await readiness()).status, { timeout: 15_000 }).toBe(200);
    await expect.poll(() => world.bus.isUp()).toBe(true);
    await station.handOver();
    const shown = await send(world.baseUrl, "GET", `${DEVICES}display/`, { token: credential });
    expect(shown.body).toMatchObject({ state: "total" });
  });
});

describe("a gateway after its process was stalled", () => {
  it("the first requests: not answered from old state, although the feed receives messages again at once", async () => {
    const station = await world.openStation(3);
    const gateway = await startGatewayProcess(world.nats.url);
    try {
      const credentials = await Promise.all(
        Array.from({ length: 20 }, () => world.credential(station.displayId, 3, DISPLAY_SCOPES)),
      );
      const request = (token: string): Promise<Answer<Refused>> =>
        send<Refused>(gateway.baseUrl, "GET", `${DEVICES}display/`, { token });
      await expect.poll(async () => (await request(credentials.at(-1) as string)).status).toBe(200);
      gateway.signal("SIGSTOP");
      await delay(200);
      for (const credential of credentials) {
        await world.bus.js.publish(`$KV.CREDENTIALS.${hash("sha256", credential, "hex")}`, "");
      }
      await delay(SILENCE_MS);
      // These requests wait at the gateway's socket. It answers them as soon as it continues.
      const waiting = credentials.map(request);
      await delay(100);
      gateway.signal("SIGCONT");
      const codes = (await Promise.all(waiting)).map(({ status, body }) => `${status} ${body.code}`);
      expect(codes.filter((code) => code !== "503 replica_stale" && code !== "401 credential_invalid")).toEqual([]);
      await expect.poll(async () => (await request(credentials[0] as string)).body.code).toBe("credential_invalid");
    } finally {
      await gateway.stop();
    }
  });
});

describe("a credential and a session that only another gateway has received", () => {
  it("the gateway without them: 503 and no final 401; it accepts them as soon as it has received them", async () => {
    const link = await Link.open(world.nats.port);
    const url = new URL(world.nats.url);
    url.port = String(link.port);
    const gateway = await startGatewayProcess(url.href);
    try {
      const station = await world.openStation(4);
      const ask = (method: "GET" | "POST", path: string, token: string): Promise<Answer<Refused>> =>
        send<Refused>(gateway.baseUrl, method, path, { token, ...(method === "POST" ? { json: {} } : {}) });
      const asked = (credential: string, session: string): readonly Promise<Answer<Refused>>[] => [
        ask("GET", `${DEVICES}me/`, credential),
        ask("GET", `${DEVICES}display/`, credential),
        ask("POST", `${DEVICES}heartbeat/`, credential),
        ask("GET", ROUTES, session),
      ];
      const codes = async (answers: readonly Promise<Answer<Refused>>[]): Promise<string[]> =>
        (await Promise.all(answers)).map(({ status, body }) => `${status} ${body.code}`);
      const refused = [...Array.from({ length: 3 }, () => "401 credential_invalid"), "401 session_invalid"];
      expect(await codes(asked("cred_of_nobody", "session_of_nobody"))).toEqual(refused);

      link.cut(["back"]);
      const credential = await world.credential(station.displayId, 4, DISPLAY_SCOPES);
      const session = await world.session();
      expect(await codes(asked(credential, session))).toEqual(Array.from({ length: 4 }, () => "503 replica_stale"));
      link.join();
      const byDevice = async (): Promise<number> => (await ask("GET", `${DEVICES}me/`, credential)).status;
      await expect.poll(byDevice, { interval: CREDENTIAL_RATE.intervalMs }).toBe(200);
      expect((await ask("GET", ROUTES, session)).status).toBe(200);
    } finally {
      await gateway.stop();
      await link.close();
    }
  });
});

describe("a replica that is behind when the clock of the bus is set back", () => {
  it("behind for too long: not fresh", async () => {
    const { bus } = world;
    let isBehind = false;
    const setBackMs = (): number => (isBehind ? 7_200_000 : 0);
    const nowMs = (): number => bus.clock.nowMs() - setBackMs();
    /** The server reports with the first message that another one follows, and that one does not arrive. */
    const subscribe: Bus["nc"]["subscribe"] = (subject, options) =>
      bus.nc.subscribe(subject, {
        ...options,
        callback(error, message) {
          const { data, headers, reply = "" } = message;
          const place = isBehind && reply.startsWith("$JS.ACK.") ? reply.replace(/\.0$/, ".1") : reply;
          const passed = { subject: message.subject, data, headers, reply: place, respond: () => message.respond() };
          void options?.callback?.(error, passed as Msg);
        },
      });
    const nc = { subscribe, publish: bus.nc.publish.bind(bus.nc), flush: bus.nc.flush.bind(bus.nc), info: bus.nc.info };
    const applied: string[] = [];
    const feed = new ReplicaFeed({ ...bus, nc, clock: { nowMs } } as unknown as Bus, SILENT, {
      stream: "KV_SESSIONS",
      filter: "$KV.SESSIONS.behind.*",
      reset: () => undefined,
      apply: (subject) => void applied.push(subject),
    });
    try {
      await feed.loaded();
      expect(feed.isFresh(nowMs())).toBe(true);
      isBehind = true;
      await bus.js.publish("$KV.SESSIONS.behind.1", "");
      await expect.poll(() => applied.length).toBe(1);
      await expect.poll(() => feed.isFresh(nowMs())).toBe(false);
    } finally {
      feed.stop();
    }
  });
});

describe("a replica after its machine slept", () => {
  it("what it received before, and the first messages after: old until a round trip to the server", async () => {
    const { bus } = world;
    const freshAtMessages: boolean[] = [];
    const awakeMs = Date.now;
    const feed = new ReplicaFeed(bus, SILENT, {
      stream: "KV_SESSIONS",
      filter: "$KV.SESSIONS.sleep.*",
      reset: () => undefined,
      apply() {
        freshAtMessages.push(feed.isFresh(bus.clock.nowMs()));
        if (freshAtMessages.length > 1) return;
        // The steady clock stops while the machine sleeps.
        vi.spyOn(Date, "now").mockImplementation(() => awakeMs() + SILENCE_MS);
        freshAtMessages.push(feed.isFresh(bus.clock.nowMs()));
      },
    });
    try {
      await feed.loaded();
      await Promise.all([1, 2].map((key) => bus.js.publish(`$KV.SESSIONS.sleep.${key}`, "")));
      await expect.poll(() => freshAtMessages.length).toBe(3);
      expect(freshAtMessages).toEqual([true, false, false]);
      await expect.poll(() => feed.isFresh(bus.clock.nowMs())).toBe(true);
    } finally {
      vi.restoreAllMocks();
      feed.stop();
    }
  });
});
