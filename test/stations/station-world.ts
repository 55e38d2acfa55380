/**
 * A NATS server of one test, with real actor hosts and functions that act on stations. With `money`, it also has a database
 * and can start the real settlement and audit services.
 */

import { randomUUID } from "node:crypto";
import { Registry } from "prom-client";
import type { Actor } from "../../machines/actor.ts";
import { type Commit, decodeCommit } from "../../machines/station/commit.ts";
import type { DeviceDescription } from "../../machines/station/state.ts";
import { startAuditService } from "../../services/audit/service.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { heartbeatHeaders } from "../../services/bus/messages/heartbeat.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";
import type { RequestedCommand, StationResponse } from "../../services/bus/messages/station-commands.ts";
import { call } from "../../services/bus/operation.ts";
import { RefusedError, UnavailableError } from "../../services/bus/refusals.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { heartbeatSubject } from "../../services/bus/subjects.ts";
import { followSwitches } from "../../services/bus/switches-replica.ts";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { createLog, type Log } from "../../services/runtime/log.ts";
import type { Service, ServiceDeps } from "../../services/runtime/service.ts";
import { startSettlementService } from "../../services/settlement/service.ts";
import { StationHost } from "../../services/stations/host.ts";
import { addHostGauges, addHostMetrics } from "../../services/stations/metrics.ts";
import { readStationsSettings } from "../../services/stations/settings.ts";
import { keepBucketsComplete } from "../support/buckets-complete.ts";
import { ONE_LOG, STATION_LOG, stationLogSubject } from "../support/one-log.ts";
import { refuseFlushes } from "../support/refuse-flushes.ts";
import { cloneDatabase, startNats, type TestServer } from "../support/servers.ts";
import { eventually } from "../support/wait-for.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { type HostProcess, startHostProcess } from "./host-process.ts";

export const CASHIER: Actor = { kind: "cashier", id: 7, name: "Ana" };
export const REGISTRY: Actor = { kind: "registry", id: 0 };
/** The provider config of stations that have one. */
export const PROVIDER: Actor = { kind: "provider", id: 81 };
export const deviceActor = (id: number): Actor => ({ kind: "device", id });

export interface RunningHost {
  readonly host: StationHost;
  readonly bus: Bus;
  /** The host's connection for scans of whole streams, and for late commits after a scan. */
  readonly scanBus: Bus;
  /** The host's metrics. */
  readonly metrics: Registry;
  /** The host hands over and ends, as after SIGTERM. */
  stop(): Promise<void>;
}

export interface StationWorld {
  readonly nats: TestServer;
  readonly bus: Bus;
  /** A further connection to this world's NATS. */
  connect(name: string): Promise<Bus>;
  /** The address of this world's database. It throws without `money`. */
  databaseUrl(): string;
  database(): Database;
  /** Starts a host in the test's process. Its lease is at the server `leaseUrl`, by default at this world's server. */
  startHost(options?: { natsUrl?: string; leaseUrl?: string; log?: Log }): Promise<RunningHost>;
  /**
   * Starts two hosts that both own every partition: each has its lease on another server, and does not receive the other's.
   * This is the worst case for leases.
   */
  startTwins(): Promise<readonly [RunningHost, RunningHost]>;
  /** Starts a host whose connection goes through a proxy, which drops the messages that a test names. */
  startHostBehindProxy(): Promise<RunningHost & { readonly proxy: FaultProxy }>;
  /** Starts a host like `npm start`, as a process that can be killed. */
  startHostProcess(environment?: NodeJS.ProcessEnv): Promise<HostProcess>;
  /** Starts the settlement service. Tests without it check what waits for it. */
  startSettlement(): Promise<Service>;
  startAudit(): Promise<Service>;
  ask(stationId: number, command: RequestedCommand, options?: AskOptions): Promise<StationResponse>;
  /** A station with a cashier's lease. With `money`, the station is in the database too. */
  openStation(options?: { lease?: boolean }): Promise<number>;
  /** The same with a provider for QRs. */
  openQrStation(): Promise<number>;
  /** A companion of a station that has just sent a heartbeat. */
  addCompanion(stationId: number): Promise<number>;
  /** A heartbeat that a gateway receives at this time of the bus, by default now. */
  heartbeat(stationId: number, deviceId: number, atMs?: number): Promise<void>;
  /** An open order over EUR 12.50. */
  openOrder(stationId: number): Promise<number>;
  /** A station's newest commit. */
  newest(stationId: number): Promise<Commit & { sequence: number }>;
  /** The commits of a station that are still in the log, oldest first. */
  commits(stationId: number): Promise<(Commit & { sequence: number })[]>;
  /** Ends every host, so that the next test starts with none. */
  stopHosts(): Promise<void>;
  stop(): Promise<void>;
}

export interface AskOptions {
  readonly commandId?: string;
  readonly actor?: Actor;
  readonly timeoutMs?: number;
}

const SILENT = createLog({ service: "test", level: process.env.TEST_LOG === "1" ? "debug" : "silent" });

export async function startStationWorld(
  options: { readonly money?: boolean; readonly environment?: NodeJS.ProcessEnv } = {},
): Promise<StationWorld> {
  const [nats, testDatabase] = await Promise.all([
    startNats(),
    options.money === true ? cloneDatabase() : Promise.resolve(undefined),
  ]);
  const connect = (name: string): Promise<Bus> => connectBus({ url: nats.url, name, log: SILENT });
  const bus = await connect("test");
  await ensureStreams(bus, { replicas: 1, logs: 1 });
  await keepBucketsComplete(bus);
  await refuseFlushes(bus.nc);
  const database = testDatabase === undefined ? undefined : openDatabase({ url: testDatabase.url });
  const stops: (() => Promise<void>)[] = [];
  const hostStops: (() => Promise<void>)[] = [];
  let lastId = 0;
  const nextId = (): number => {
    lastId += 1;
    return lastId;
  };

  const startService = async (start: (deps: ServiceDeps) => Promise<Service>): Promise<Service> => {
    const serviceBus = await connect("service");
    const settings = {
      natsUrl: nats.url,
      databaseUrl: testDatabase?.url,
      logLevel: "silent",
    } as const;
    const service = await start({ bus: serviceBus, logs: ONE_LOG, log: SILENT, settings, environment: {} });
    const stop = once(async () => {
      await service.stop();
      await serviceBus.close();
    });
    stops.push(stop);
    return { stop };
  };

  const world: StationWorld = {
    nats,
    bus,
    connect,
    databaseUrl: () => present(testDatabase?.url),
    database: () => present(database),
    async startHost({ natsUrl = nats.url, leaseUrl = nats.url, log = SILENT } = {}) {
      const hostBus = await connectBus({ url: natsUrl, name: "host", log: SILENT });
      const switches = await followSwitches(hostBus, SILENT);
      const settings = readStationsSettings(options.environment ?? {});
      const [leaseBus, scanBus] = await Promise.all([
        connectBus({ url: leaseUrl, name: "leases", log: SILENT }),
        connect("scan"),
      ]);
      const registry = new Registry();
      const metrics = addHostMetrics(registry);
      const facts = { log, logs: ONE_LOG, hostId: randomUUID(), switches, settings, metrics };
      const host = new StationHost({ bus: hostBus, leaseBus, scanBus, ...facts });
      addHostGauges(registry, host);
      await host.start();
      const stop = once(async () => {
        await host.stop();
        switches.stop();
        await Promise.all([hostBus, leaseBus, scanBus].map((each) => each.close()));
      });
      hostStops.push(stop);
      return { host, bus: hostBus, scanBus, metrics: registry, stop };
    },
    async startTwins() {
      const leases = await startNats();
      stops.push(() => leases.stop());
      const leaseBus = await connectBus({ url: leases.url, name: "test", log: SILENT });
      await ensureStreams(leaseBus, { replicas: 1, logs: 1 });
      await leaseBus.close();
      return await Promise.all([world.startHost(), world.startHost({ leaseUrl: leases.url })]);
    },
    async startHostBehindProxy() {
      const proxy = await startFaultProxy(nats.url);
      stops.push(() => proxy.stop());
      return { ...(await world.startHost({ natsUrl: proxy.url })), proxy };
    },
    async startHostProcess(environment = {}) {
      const process = await startHostProcess({ ...options.environment, ...environment, NATS_URL: nats.url });
      hostStops.push(() => process.kill9());
      return process;
    },
    startSettlement: () => startService(startSettlementService),
    startAudit: () => startService(startAuditService),
    ask: (stationId, command, { commandId = `test:${randomUUID()}`, actor = CASHIER, timeoutMs } = {}) =>
      askStation(bus.nc, stationId, { commandId, actor, command }, timeoutMs === undefined ? {} : { timeoutMs }),
    async openStation({ lease = true } = {}) {
      const stationId = database === undefined ? nextId() : await insertStation(database);
      const station = {
        organizationId: 1,
        filialId: 1,
        name: "Bar",
        currency: "EUR",
        status: "active",
        revision: 1,
      } as const;
      await world.ask(stationId, { type: "station_put", stationId, station }, { actor: REGISTRY });
      if (lease) await world.ask(stationId, { type: "lease_acquire" });
      return stationId;
    },
    async addCompanion(stationId) {
      const deviceId = 1_000_000 + nextId();
      const device: DeviceDescription = {
        deviceId,
        name: "Terminal",
        kind: "smart_pos_companion",
        capabilities: ["handoff_present", "outcome_report"],
        status: "active",
        handoffTarget: "",
        revision: 1,
      };
      await world.ask(stationId, { type: "device_put", device }, { actor: REGISTRY });
      await world.heartbeat(stationId, deviceId);
      await eventually(async () => (await livenessOf(world, stationId, deviceId)) === "online");
      return deviceId;
    },
    async heartbeat(stationId, deviceId, atMs = bus.clock.nowMs()) {
      const heartbeat = { atMs, summary: {} };
      const headers = heartbeatHeaders(heartbeat);
      await bus.js.publish(heartbeatSubject(stationId, deviceId), JSON.stringify(heartbeat), { headers });
    },
    async openOrder(stationId) {
      const caller = { userId: 7, name: "Ana", organizationId: await organizationOf(present(database), stationId) };
      const { order } = await call(bus.nc, openOrder, {
        caller: { ...caller, role: "cashier", permissions: ["payments.collect"] },
        stationId,
        lines: [{ name: "Soup", quantity: 1, unitAmountMinor: "1250" }],
      });
      return order.orderId;
    },
    async newest(stationId) {
      const stored = await bus.jsm.direct.getMessage(STATION_LOG.name, { last_by_subj: stationLogSubject(stationId) });
      if (stored === null) throw new Error(`Station ${stationId} has no commit.`);
      return { ...decodeCommit(stored.string()), sequence: stored.seq };
    },
    async openQrStation() {
      const stationId = await world.openStation();
      const provider = { configId: PROVIDER.id, revision: 1 };
      await world.ask(stationId, { type: "provider_put", provider }, { actor: REGISTRY });
      return stationId;
    },
    commits: (stationId) => readCommits(bus, stationId),
    async stopHosts() {
      await Promise.all(hostStops.splice(0).map((stop) => stop()));
    },
    async stop() {
      await world.stopHosts();
      await Promise.all(stops.toReversed().map((stop) => stop()));
      await bus.close();
      if (database !== undefined) await closeDatabase(database);
      await Promise.all([nats.stop(), testDatabase?.drop()]);
    },
  };
  return world;
}

/** The liveness of a device in the station's newest state in the log. */
export async function livenessOf(
  world: StationWorld,
  stationId: number,
  deviceId: number,
): Promise<string | undefined> {
  const newest = await world.newest(stationId);
  return newest.state.devices.find((device) => device.deviceId === deviceId)?.liveness.state;
}

/** The changes of a station's devices between online and offline, in the order of the log. */
export async function livenessChanges(world: StationWorld, stationId: number): Promise<string[]> {
  const types = (await world.commits(stationId)).flatMap(({ events }) => events.map(({ type }) => type));
  return types.filter((type) => type === "device_online" || type === "device_offline");
}

/** A collection in the newest state of its station, active or ended. */
export async function findIntent(world: StationWorld, stationId: number, intentId: number) {
  const { state } = await world.newest(stationId);
  return [state.intent, ...state.ended].find((intent) => intent?.intentId === intentId) ?? undefined;
}

/** Like a client, repeats work that is refused temporarily. A final refusal fails the test. */
export async function persist<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const isTemporary =
        error instanceof UnavailableError || (error instanceof RefusedError && error.refusal.code === "busy");
      if (!isTemporary) throw error;
    }
  }
}

async function readCommits(bus: Bus, stationId: number): Promise<(Commit & { sequence: number })[]> {
  const commits: (Commit & { sequence: number })[] = [];
  let sequence = 1;
  for (;;) {
    const query = { seq: sequence, next_by_subj: stationLogSubject(stationId) };
    const stored = await bus.jsm.direct.getMessage(STATION_LOG.name, query);
    if (stored === null) return commits;
    commits.push({ ...decodeCommit(stored.string()), sequence: stored.seq });
    sequence = stored.seq + 1;
  }
}

async function insertStation(sql: Database): Promise<number> {
  const [row] = await sql<{ station_id: number }[]>`
    with o as (insert into organizations (name) values ('Organization') returning organization_id),
    f as (insert into filials (organization_id, name) select organization_id, 'Filial' from o returning organization_id, filial_id)
    insert into stations (organization_id, filial_id, name, currency)
    select organization_id, filial_id, 'Counter', 'EUR' from f returning station_id`;
  return present(row).station_id;
}

async function organizationOf(sql: Database, stationId: number): Promise<number> {
  const [row] = await sql<
    { organization_id: number }[]
  >`select organization_id from stations where station_id = ${stationId}`;
  return present(row).organization_id;
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("This world has no database: start it with { money: true }.");
  return value;
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => (done ??= work());
}
