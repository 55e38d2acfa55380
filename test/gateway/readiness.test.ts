/**
 * `GET /readyz` with real services, PostgreSQL and actor hosts. The tests stop each of them: the answer reports it, but the
 * gateway stays in the balancer's rotation, because no other gateway could serve more.
 */

import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { Readiness } from "../../gateway/api/meta/health.ts";
import { type Gateway, startGateway } from "../../gateway/app.ts";
import { LIMITS } from "../../gateway/limits.ts";
import { startReplicas } from "../../gateway/read-model/replicas.ts";
import { waitUntilFresh } from "../../gateway/readiness.ts";
import { startAuditService } from "../../services/audit/service.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { registryHealth } from "../../services/bus/messages/health.ts";
import { CREDENTIALS, SESSIONS, SWITCHES } from "../../services/bus/streams.ts";
import { migrate } from "../../services/db/migrate.ts";
import { startProvidersService } from "../../services/providers/service.ts";
import { startReconciliationService } from "../../services/reconciliation/service.ts";
import { startRegistryService } from "../../services/registry/service.ts";
import { noteComplete, readNoticeSequences } from "../../services/relay/buckets.ts";
import { startRelayService } from "../../services/relay/service.ts";
import { startRoboticsService } from "../../services/robotics/service.ts";
import type { Service, ServiceDeps } from "../../services/runtime/service.ts";
import { startSettlementService } from "../../services/settlement/service.ts";
import { startWebhookSignerService } from "../../services/webhook-signer/service.ts";
import { startStallProxy } from "../chaos/stall-proxy.ts";
import { type HostProcess, startHostProcess } from "../stations/host-process.ts";
import { GATEWAY_SETTINGS } from "../support/gateway-settings.ts";
import { send } from "../support/http.ts";
import { ONE_LOG, stationLogSubject } from "../support/one-log.ts";
import { isRunning } from "../support/running-program.ts";
import { startNats, startPostgres, type TestServer } from "../support/servers.ts";
import { SILENT } from "./gateway-world.ts";

const STARTS = {
  registry: startRegistryService,
  settlement: startSettlementService,
  providers: startProvidersService,
  audit: startAuditService,
  relay: startRelayService,
  robotics: startRoboticsService,
  webhook_signer: startWebhookSignerService,
  reconciliation: startReconciliationService,
} as const;
type Name = keyof typeof STARTS;
const NAMES = Object.keys(STARTS) as Name[];
type Dependency = keyof Readiness["dependencies"];

/** The usual timeout of a balancer. */
const BALANCER_TIMEOUT_MS = 1_000;
const RECOVERED = { timeout: 20_000, interval: 200 };

let nats: TestServer;
let database: TestServer;
let bus: Bus;
let gatewayBus: Bus;
let gateway: Gateway;
let host: HostProcess;
const services = new Map<Name, Service>();

const connect = (name: string): Promise<Bus> => connectBus({ url: nats.url, name, log: SILENT });

async function start(name: Name): Promise<void> {
  const otherBus = await connect(name);
  const settings = { natsUrl: nats.url, databaseUrl: database.url, logLevel: "silent" } as const;
  const key = "A".repeat(43);
  const environment = { PROVIDER_SECRETS_KEY: key, WEBHOOK_SECRETS_KEY: key };
  const deps: ServiceDeps = { bus: otherBus, logs: ONE_LOG, log: SILENT, settings, environment };
  const service = await STARTS[name](deps);
  services.set(name, {
    async stop() {
      services.delete(name);
      await service.stop();
      await otherBus.close();
    },
  });
}

const startHost = (): Promise<HostProcess> => startHostProcess({ NATS_URL: nats.url });

beforeAll(async () => {
  [nats, database] = await Promise.all([startNats(), startPostgres()]);
  await migrate({ databaseUrl: database.url, log: () => undefined });
  bus = await connect("test");
  await ensureStreams(bus, { replicas: 1, logs: 1 });
  for (const name of NAMES) await start(name);
  host = await startHost();
  gatewayBus = await connect("gateway");
  gateway = await startGateway({ bus: gatewayBus, log: SILENT, settings: GATEWAY_SETTINGS });
});
/** Starts what a failed test has stopped and not started again. */
afterEach(async () => {
  for (const name of NAMES) if (!services.has(name)) await start(name);
  if (!isRunning(host.pid)) host = await startHost();
});
afterAll(async () => {
  await gateway.stop();
  await host.stop();
  for (const service of services.values()) await service.stop();
  await bus.close();
  await Promise.all([nats.stop(), database.stop()]);
});

async function readReadiness(port = gateway.port): Promise<{ status: number; body: Readiness; tookMs: number }> {
  const startedAtMs = performance.now();
  const { status, body } = await send<Readiness>(`http://127.0.0.1:${port}`, "GET", "/readyz");
  return { status, body, tookMs: performance.now() - startedAtMs };
}

/** The dependencies that are not ready, with their reasons. */
async function faults(): Promise<Partial<Record<Dependency, string | null>>> {
  const { body } = await readReadiness();
  const entries = Object.entries(body.dependencies).filter(([, { ready }]) => !ready);
  return Object.fromEntries(entries.map(([name, { detail }]) => [name, detail]));
}

const becomes = (wanted: Partial<Record<Dependency, string>>): Promise<void> =>
  expect.poll(faults, RECOVERED).toEqual(wanted);

describe("readiness while all dependencies run", () => {
  it("each dependency is ready, and only the bus and the replicas are required", async () => {
    await becomes({});
    const { status, body } = await readReadiness();
    expect([status, body.ready]).toEqual([200, true]);
    const required = Object.entries(body.dependencies).filter(([, dependency]) => dependency.required);
    expect(required.map(([name]) => name)).toEqual(["bus", "stations", "credentials", "sessions", "switches"]);
    expect(body.dependencies.station_hosts).toMatchObject({ partitions: 256, partitions_owned: 256 });
    for (const [name, { silent_ms }] of Object.entries(body.dependencies)) {
      if (["bus", "disk", "clock"].includes(name)) expect(silent_ms, name).toBeNull();
      else expect(silent_ms, name).toBeLessThan(3_000);
    }
  });

  it("many requests at once: the gateway checks the services once a second", async () => {
    let checks = 0;
    const subscription = bus.nc.subscribe(registryHealth.subject, { callback: () => void (checks += 1) });
    await bus.nc.flush();
    const startedAtMs = performance.now();
    const tookMs = (): number => performance.now() - startedAtMs;
    let answers = 0;
    // A busy machine needs more time for the same number of answers.
    while (tookMs() < 1_500 || answers <= 50) {
      answers += (await Promise.all(Array.from({ length: 10 }, () => readReadiness()))).length;
      await delay(20);
    }
    const seconds = Math.ceil(tookMs() / LIMITS.healthCachedMs);
    subscription.unsubscribe();
    expect(checks).toBeGreaterThan(0);
    expect(checks).toBeLessThanOrEqual(seconds + 1);
  });
});

/** A service is stopped in each round whose bit its number has. So no two services are stopped in the same rounds. */
const ROUNDS = [1, 2, 4, 8].map((bit) => NAMES.filter((_, index) => ((index + 1) & bit) !== 0));

describe("readiness while services are stopped", () => {
  it.each(ROUNDS.map((stopped) => [stopped.join(", "), stopped] as const))(
    "%s: reported, and the gateway stays ready",
    async (_names, stopped) => {
      await becomes({});
      await Promise.all(stopped.map(async (name) => await services.get(name)?.stop()));
      await becomes(Object.fromEntries(stopped.map((name) => [name, "no_answer"])));
      const { status, body } = await readReadiness();
      expect([status, body.ready]).toEqual([200, true]);
      await delay(300);
      const later = (await readReadiness()).body.dependencies;
      for (const name of stopped) {
        const beforeMs = body.dependencies[name].silent_ms ?? 0;
        expect(later[name].silent_ms, name).toBeGreaterThanOrEqual(beforeMs + 250);
      }
      await Promise.all(stopped.map(start));
      await becomes({});
    },
  );
});

describe("readiness and PostgreSQL", () => {
  const allUnreachable = Object.fromEntries([...NAMES, "database"].map((name) => [name, "database_unreachable"]));

  it("killed: reported by each service that needs it, within the timeout of a balancer", async () => {
    await becomes({});
    await database.kill9();
    await becomes(allUnreachable);
    const { status, body, tookMs } = await readReadiness();
    expect([status, body.ready]).toEqual([200, true]);
    expect(tookMs).toBeLessThan(BALANCER_TIMEOUT_MS);
    await database.restart();
    await becomes({});
  });

  it("stalled: each answer after the limit reports it as not ready, and no answer waits for it", async () => {
    await becomes({});
    database.signalAll("SIGSTOP");
    const local = await connect("second gateway");
    let second: Gateway | undefined;
    try {
      // The results from before the stall are too old for this request.
      await delay(LIMITS.healthCachedMs);
      const first = (await readReadiness()).body.dependencies;
      // On a busy machine the check of the service itself has failed by now.
      expect(first.database.ready).toBe(false);
      expect(["no_answer", "database_unreachable"]).toContain(first.database.detail);
      for (const name of NAMES) expect([name, first[name].ready]).toEqual([name, false]);
      expect(first.station_hosts.ready).toBe(true);
      // A gateway that starts during the stall never reports the database as ready.
      second = await startGateway({ bus: local, log: SILENT, settings: GATEWAY_SETTINGS });
      const ports = [gateway.port, second.port];
      const untilMs = performance.now() + 2 * LIMITS.healthCachedMs + LIMITS.healthWaitMs;
      while (performance.now() < untilMs) {
        const answers = await Promise.all(ports.map((port) => readReadiness(port)));
        for (const { body } of answers) expect(body.dependencies.database.ready).toBe(false);
        expect(answers[0]?.status).toBe(200);
        expect(answers[0]?.tookMs).toBeLessThan(BALANCER_TIMEOUT_MS);
        await delay(50);
      }
      await becomes(allUnreachable);
    } finally {
      database.signalAll("SIGCONT");
      await second?.stop();
      await local.close();
    }
    await becomes({});
  });
});

describe("readiness and the clock of a machine", () => {
  it("10 s ahead: the processes report it and stay ready; corrected: no fault is left", async () => {
    await becomes({});
    const rightMs = Date.now.bind(Date);
    const spy = vi.spyOn(Date, "now").mockImplementation(() => rightMs() + 10_000);
    try {
      await becomes(Object.fromEntries([...NAMES, "clock"].map((name) => [name, "clock_wrong"])));
      const { status, body } = await readReadiness();
      expect([status, body.ready]).toEqual([200, true]);
      expect(body.dependencies.clock.ahead_ms).toBeGreaterThan(9_500);
      expect(body.dependencies.clock.ahead_ms).toBeLessThan(10_500);
    } finally {
      spy.mockRestore();
    }
    await becomes({});
  });
});

describe("readiness and the clock of PostgreSQL", () => {
  it("3 s ahead: the database is reported, and the gateway stays ready; corrected: no fault is left", async () => {
    await becomes({});
    const sql = postgres(database.url, { max: 1 });
    // Connections that begin now find this function first.
    await sql.unsafe(`
      create schema shifted;
      create function shifted.clock_timestamp() returns timestamptz language sql volatile
      as $$ select pg_catalog.clock_timestamp() + interval '3 seconds' $$;
      alter database postgres set search_path = shifted, pg_catalog, public`);
    const reconnect = () => sql`
      select pg_terminate_backend(pid) from pg_stat_activity where datname = 'postgres' and pid <> pg_backend_pid()`;
    try {
      await reconnect();
      await becomes({ database: "clock_wrong" });
      const { status, body } = await readReadiness();
      expect([status, body.ready]).toEqual([200, true]);
    } finally {
      await sql`alter database postgres reset search_path`;
      await reconnect();
      await sql.end();
    }
    await becomes({});
  });
});

describe("readiness and the actor hosts", () => {
  it("a stalled or stopped host: reported as without an answer", async () => {
    await becomes({});
    host.freeze();
    try {
      await becomes({ station_hosts: "no_answer" });
      const { status, body, tookMs } = await readReadiness();
      expect([status, body.ready]).toEqual([200, true]);
      expect(body.dependencies.station_hosts.partitions_owned).toBeNull();
      expect(tookMs).toBeLessThan(BALANCER_TIMEOUT_MS);
    } finally {
      host.thaw();
    }
    await becomes({});
    await host.stop();
    await becomes({ station_hosts: "no_answer" });
    await delayDelivery();
    await becomes({ station_hosts: "no_answer", relay: "delivery_late" });
    host = await startHost();
    await becomes({});
  });

  it("a host that claims its share but does not serve it: its partitions are reported as unowned", async () => {
    let count = 0;
    const claim = async (): Promise<void> => {
      count += 1;
      const record = JSON.stringify({ holds: "0".repeat(64), isLeaving: false, count });
      await bus.js.publish("$KV.LEASES.host.idle", record);
    };
    await claim();
    const claiming = setInterval(() => void claim(), 300);
    try {
      await becomes({ station_hosts: "partitions_unowned" });
      const { partitions_owned: owned } = (await readReadiness()).body.dependencies.station_hosts;
      expect(owned).toBeGreaterThan(0);
      expect(owned).toBeLessThan(256);
    } finally {
      clearInterval(claiming);
    }
    await becomes({});
  });
});

/** Adds a change that has waited for a minute, as after a long outage of the actor hosts. */
async function delayDelivery(): Promise<void> {
  const sql = postgres(database.url, { max: 1 });
  const payload = { stationId: 99, actor: { kind: "registry", id: 0 }, command: { type: "tick" } };
  await sql`
    insert into outbox (key, kind, payload, created_at)
    values ('station.99', 'station_command', ${sql.json(payload)}, now() - interval '1 minute')`;
  await sql.end();
}

describe("readiness and the audit copy", () => {
  it("commits that wait for the copy: reported after ten seconds", async () => {
    await becomes({});
    const sql = postgres(database.url, { max: 1 });
    const hold = Promise.withResolvers<void>();
    const held = sql.begin(async (tx) => {
      await tx`select 1 from audit_position for update`;
      await bus.js.publish(stationLogSubject(1), "not a commit, so the copier skips it");
      await hold.promise;
    });
    try {
      await delay(5_000);
      // Under load, the audit service may answer slowly, but its copy is not late yet.
      expect((await faults()).audit).not.toBe("copy_late");
      await becomes({ audit: "copy_late" });
    } finally {
      hold.resolve();
      await held;
      await sql.end();
    }
    await becomes({});
  });
});

describe("readiness and the bus", () => {
  it("a bus without a majority of its servers: the gateway is not ready", async () => {
    await becomes({});
    const spy = vi.spyOn(gatewayBus, "hasQuorum").mockReturnValue(false);
    try {
      expect(await faults()).toEqual({ bus: "no_majority" });
      expect((await readReadiness()).status).toBe(503);
    } finally {
      spy.mockRestore();
    }
    await becomes({});
  });

  it("a stopped bus: the gateway is not ready, so a balancer takes it out of rotation", async () => {
    await becomes({});
    await nats.kill9();
    await expect.poll(async () => (await readReadiness()).status, RECOVERED).toBe(503);
    await expect.poll(faults, RECOVERED).toEqual({
      bus: "disconnected",
      stations: "silent",
      credentials: "silent",
      sessions: "silent",
      switches: "silent",
      registry: "no_answer",
      settlement: "no_answer",
      providers: "no_answer",
      audit: "no_answer",
      relay: "no_answer",
      robotics: "no_answer",
      webhook_signer: "no_answer",
      reconciliation: "no_answer",
      station_hosts: "no_answer",
      database: "no_answer",
    });
    const { body, tookMs } = await readReadiness();
    expect(body.ready).toBe(false);
    expect(tookMs).toBeLessThan(BALANCER_TIMEOUT_MS);
    await nats.restart();
    await becomes({});
    expect((await readReadiness()).status).toBe(200);
  });
});

describe("the start of a gateway", () => {
  it.each([
    ["switches", SWITCHES],
    ["credentials", CREDENTIALS],
    ["sessions", SESSIONS],
  ] as const)(
    "waits for the relay's notice that all %s are complete; without it, the gateway runs but is not ready",
    async (name, bucket) => {
      await noteComplete(bus, bucket, { serverId: "an earlier run of the server" });
      await becomes({ [name]: "incomplete" });
      expect((await readReadiness()).status).toBe(503);
      const otherBus = await connect("second gateway");
      const replicas = await startReplicas(otherBus, ONE_LOG, SILENT);
      const startedAtMs = performance.now();
      await waitUntilFresh(otherBus, replicas, 500);
      expect(performance.now() - startedAtMs).toBeGreaterThan(450);
      // A relay that begins to lead compares the bus, and then publishes a notice for each complete bucket.
      const lastNotices = (): Promise<number[]> =>
        Promise.all(
          [SWITCHES, CREDENTIALS, SESSIONS].map(async (each) => Math.max(...(await readNoticeSequences(bus, each)))),
        );
      const before = await lastNotices();
      await services.get("relay")?.stop();
      await start("relay");
      await becomes({});
      // The next row of the table writes a notice. No later notice of this relay may replace that one.
      await expect
        .poll(async () => (await lastNotices()).every((sequence, index) => sequence > (before[index] ?? 0)))
        .toBe(true);
      await waitUntilFresh(otherBus, replicas, 500);
      expect(
        [replicas.switches, ...Object.values(replicas.feeds).flat()].every((replica) => replica.isBucketComplete()),
      ).toBe(true);
      replicas.stop();
      await otherBus.close();
    },
  );

  it("a stall during the start: the gateway is ready only once every feed is fresh", async () => {
    const otherBus = await connect("second gateway");
    const starting = startGateway({ bus: otherBus, log: SILENT, settings: GATEWAY_SETTINGS });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_800);
    const second = await starting;
    const { feeds } = second.replicas;
    expect(
      Object.values(feeds)
        .flat()
        .map((feed) => feed.isFresh(Date.now())),
    ).toEqual([true, true, true]);
    await second.stop();
    await otherBus.close();
  });

  it("a silent bus: the gateway waits; after the limit, the error names the missing feeds", async () => {
    const proxy = await startStallProxy(nats.url);
    const otherBus = await connectBus({ url: proxy.url, name: "cut off", log: SILENT });
    const replicas = await startReplicas(otherBus, ONE_LOG, SILENT);
    await waitUntilFresh(otherBus, replicas);
    proxy.stall();
    await delay(1_700);
    await expect(waitUntilFresh(otherBus, replicas, 300)).rejects.toMatchObject({
      code: "gateway_not_fresh",
      message: expect.stringMatching(
        / (stations|credentials), .*switches; check that a majority of the NATS servers runs and has free disk space, and start the gateway again\.$/,
      ) as string,
    });
    proxy.resume();
    await waitUntilFresh(otherBus, replicas);
    replicas.stop();
    await otherBus.close();
    await proxy.stop();
  });
});
