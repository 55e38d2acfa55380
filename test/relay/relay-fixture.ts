/** A relay with a database and NATS of one test, and with real actor hosts where a test needs them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { StoredMsg } from "@nats-io/jetstream";
import { startServiceProcess } from "../../deploy/service-process.ts";
import { type Commit, decodeCommit } from "../../machines/station/commit.ts";
import { connectBus } from "../../services/bus/connection.ts";
import { flushOutbox } from "../../services/bus/messages/outbox.ts";
import { call } from "../../services/bus/operation.ts";
import { type BucketDefinition, SESSIONS } from "../../services/bus/streams.ts";
import { filialKey, insertOutbox, type OutboxRow, sessionKey, stationKey } from "../../services/db/outbox.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { startRegistryService } from "../../services/registry/service.ts";
import { startRelayService } from "../../services/relay/service.ts";
import { createLog, type Log } from "../../services/runtime/log.ts";
import type { ServiceDeps } from "../../services/runtime/service.ts";
import { startSettlementService } from "../../services/settlement/service.ts";
import { startStationsService } from "../../services/stations/service.ts";
import { HOLDS_LOCKS } from "../support/held-locks.ts";
import { ONE_LOG, STATION_LOG, stationLogSubject } from "../support/one-log.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { cloneDatabase, startNats } from "../support/servers.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { waitFor } from "../support/wait-for.ts";

const MAIN = join(import.meta.dirname, "..", "..", "services", "main.ts");

export interface Addresses {
  readonly natsUrl: string;
  readonly databaseUrl: string;
}

interface RelayOptions extends Pick<ServiceDeps, "fail" | "metrics"> {
  readonly by?: Addresses;
  readonly log?: Log;
}

export type RelayFixture = Awaited<ReturnType<typeof startRelayFixture>>;
export type RelayProcess = Awaited<ReturnType<RelayFixture["startRelayProcess"]>>;

export async function startRelayFixture() {
  const [nats, database] = await Promise.all([startNats(), cloneDatabase()]);
  const folder = temporaryFolder("relay");
  const log = createLog({ service: "test", level: "silent" });
  const bus = await connectBus({ url: nats.url, name: "test", log });
  await prepareBus(nats.url, database.url);
  const sql = openDatabase({ ...HOLDS_LOCKS, url: database.url, maxConnections: 4 });
  const settings = { natsUrl: nats.url, databaseUrl: database.url, logLevel: "silent" } as const;
  const deps: ServiceDeps = { bus, logs: ONE_LOG, log, settings, environment: {} };
  const started: { stop(): Promise<void> }[] = [];
  let processes = 0;
  /** The number of outstanding rows. */
  const outstanding = async (): Promise<number> => {
    const [row] = await sql<[{ count: number }]>`select count(*) as count from outbox where delivered_at is null`;
    return row.count;
  };

  /** The newest message of a bucket's key. */
  const newestOf = (bucket: BucketDefinition, key: string): Promise<StoredMsg | null> =>
    bus.jsm.streams.getMessage(`KV_${bucket.name}`, { last_by_subj: `$KV.${bucket.name}.${key}` });

  return {
    nats,
    database,
    bus,
    sql,
    /** Starts a relay in this process. `by` has other addresses of its servers. */
    async startRelay({ by, log: relayLog = log, fail, metrics }: RelayOptions = {}) {
      const relayBus = by === undefined ? bus : await connectBus({ url: by.natsUrl, name: "relay", log });
      const own: ServiceDeps = {
        ...deps,
        bus: relayBus,
        log: relayLog,
        settings: { ...settings, ...by },
        fail,
        metrics,
      };
      const service = await startRelayService(own);
      const relay = stoppable({
        stop: async () => {
          await service.stop();
          if (own.bus !== bus) await own.bus.close();
        },
      });
      started.push(relay);
      return relay;
    },
    /** Starts a relay in a separate process, which a test may kill. */
    async startRelayProcess({ natsUrl, databaseUrl }: Addresses = { natsUrl: nats.url, databaseUrl: database.url }) {
      processes += 1;
      const environment = { ...process.env, NATS_URL: natsUrl, DATABASE_URL: databaseUrl, LOG_LEVEL: "warn" };
      const logFile = join(folder.path, `relay-${processes}.log`);
      const { child } = await startServiceProcess({
        name: "relay",
        script: MAIN,
        args: ["relay"],
        environment,
        logFile,
      });
      const relay = stoppable({
        stop: async () => {
          child.process.kill("SIGCONT");
          await child.stop();
        },
      });
      started.push(relay);
      return {
        ...relay,
        pid: child.pid,
        /** The relay's log lines of level warn or higher. */
        logged: () => readFileSync(logFile, "utf8"),
        /** Sends SIGKILL. */
        kill9: async () => void (await child.kill()),
      };
    },
    /** Starts actor hosts. Without them, no station executes a command. */
    async startStations() {
      const stations = stoppable(await startStationsService(deps));
      started.push(stations);
      return stations;
    },
    /** Starts the services from which the relay gets the data that it announces. */
    async startAnnouncers() {
      for (const start of [startRegistryService, startSettlementService]) started.push(stoppable(await start(deps)));
    },
    /** Writes rows, each in a separate transaction, as services do. */
    async write(...rows: OutboxRow[]) {
      for (const row of rows) await sql.begin((tx) => insertOutbox(tx, row));
    },
    /** Writes rows in one transaction, so that the relay sends all of them at the same moment. */
    async writeTogether(...rows: OutboxRow[]) {
      await sql.begin(async (tx) => {
        for (const row of rows) await insertOutbox(tx, row);
      });
    },
    flush: (key: string) => call(bus.nc, flushOutbox, { key }),
    /** Resolves when no row is outstanding. */
    async delivered(timeoutMs = 20_000) {
      await waitFor("no outstanding row", async () => (await outstanding()) === 0, timeoutMs);
    },
    outstanding,
    /** Resolves when the connection to NATS works again. */
    isBack: () => waitFor("the bus", () => bus.isUp(), 20_000),
    /** The commits of a station, oldest first. */
    async commits(stationId: number) {
      const commits: (Commit & { sequence: number })[] = [];
      for (let sequence = 1; ; ) {
        const query = { seq: sequence, next_by_subj: stationLogSubject(stationId) };
        const message = await bus.jsm.streams.getMessage(STATION_LOG.name, query);
        if (message === null) return commits;
        commits.push({ ...decodeCommit(message.string()), sequence: message.seq });
        sequence = message.seq + 1;
      }
    },
    newestOf,
    /** The newest message of a session's key: its value, a deletion, or nothing. */
    async session(hash: string) {
      const message = await newestOf(SESSIONS, hash);
      if (message === null) return "none";
      return message.header.get("KV-Operation") === "DEL" ? "deleted" : "put";
    },
    async stop() {
      for (const one of started.toReversed()) await one.stop();
      await closeDatabase(sql);
      await bus.close();
      await Promise.all([nats.stop(), database.drop()]);
      folder.remove();
    },
  };
}

/** A second stop does nothing, so a test may stop a service that the fixture stops again at its end. */
function stoppable(service: { stop(): Promise<void> }): { stop(): Promise<void> } {
  let stopped: Promise<void> | undefined;
  return { stop: () => (stopped ??= service.stop()) };
}

/** The outbox row that describes a station with this revision. */
export function stationRow(stationId: number, revision: number): OutboxRow {
  return {
    key: stationKey(stationId),
    kind: "station_command",
    stationId,
    actor: { kind: "registry", id: 0 },
    command: {
      type: "station_put",
      stationId,
      station: {
        organizationId: 1,
        filialId: 1,
        name: `Revision ${revision}`,
        currency: "EUR",
        status: "active",
        revision,
      },
    },
  };
}

/** The outbox row that describes a suspended device. */
export function deviceRow(
  stationId: number,
  { deviceId, revision, name = "Device" }: { deviceId: number; revision: number; name?: string },
): OutboxRow {
  const device = {
    deviceId,
    name,
    kind: "customer_display",
    capabilities: [],
    status: "suspended",
    handoffTarget: "",
    revision,
  } as const;
  return {
    key: stationKey(stationId),
    kind: "station_command",
    stationId,
    actor: { kind: "registry", id: 0 },
    command: { type: "device_put", device },
  };
}

/** The hash of a made-up session token. */
export const sessionHash = (number: number): string => number.toString(16).padStart(64, "0");

export function sessionPut(userId: number, number: number): OutboxRow {
  return {
    key: sessionKey(userId),
    kind: "session_put",
    hash: sessionHash(number),
    entry: {
      sessionId: number,
      expiresAtMs: 1,
      userId,
      name: "Ana",
      organizationId: 1,
      role: "cashier",
      permissions: ["payments.collect"],
    },
  };
}

export function sessionDelete(userId: number, number: number): OutboxRow {
  return { key: sessionKey(userId), kind: "session_delete", hash: sessionHash(number) };
}

export type RoboticsRow = Extract<OutboxRow, { readonly kind: "robotics_event" }>;

export const roboticsRow = (filialId: number, isPaused: boolean): RoboticsRow => ({
  key: filialKey(filialId),
  kind: "robotics_event",
  event: {
    organizationId: 1,
    filialId,
    consumerId: null,
    createdAt: "2026-11-20T12:00:00.000Z",
    eventType: isPaused ? "robotics.paused" : "robotics.resumed",
    payload: { filial_id: filialId },
  },
});
