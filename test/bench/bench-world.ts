/** The world of a bench: a real nats-server and PostgreSQL with durable settings, and the processes as `npm start` runs them. */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, describeExit } from "../../deploy/child.ts";
import { findNatsServer, type NatsBinary } from "../../deploy/embedded/find-nats-server.ts";
import { startNats } from "../../deploy/embedded/nats.ts";
import { ensureDatabase, startPostgres } from "../../deploy/embedded/postgres.ts";
import { startServiceProcess } from "../../deploy/service-process.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import type { BusLayout } from "../../services/bus/stream-config.ts";
import { StationLogs } from "../../services/bus/streams.ts";
import { migrate } from "../../services/db/migrate.ts";
import { NatsCluster } from "../cluster/nats-cluster.ts";
import { keepBucketsComplete } from "../support/buckets-complete.ts";
import { prepareBus } from "../support/prepared-bus.ts";
import { QUIET } from "../support/quiet-log.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const DATABASE_NAME = "bench";

export interface BenchProcess {
  readonly pid: number;
  /** The message with which it reported ready, for example with its port. */
  readonly ready: Readonly<Record<string, unknown>>;
  /** Sends the process a message, and resolves with its next message. */
  ask<T>(): Promise<T>;
  /** Calls the listener with every message that the process sends from now on. */
  listen(listener: (message: unknown) => void): void;
  stop(): Promise<void>;
}

export interface BenchWorld {
  readonly bus: Bus;
  readonly natsVersion: string;
  /** The process ids of the only server, or of the three servers of a cluster. */
  readonly natsPids: readonly number[];
  readonly logs: StationLogs;
  /** Undefined until `databaseUrl` has been asked for. */
  postgresPid(): number | undefined;
  startProcess(name: string, script: string, args: string[], environment?: NodeJS.ProcessEnv): Promise<BenchProcess>;
  /** Starts PostgreSQL with the migrated schema at its first call. */
  databaseUrl(): Promise<string>;
  stop(): Promise<void>;
}

/** The layout on one server. Three copies of each stream would need a cluster of three servers. */
const ONE_SERVER: BusLayout = { replicas: 1, logs: 1 };

export async function startBenchWorld(
  print: (line: string) => void,
  layout: BusLayout = ONE_SERVER,
): Promise<BenchWorld> {
  const folder = mkdtempSync(join(tmpdir(), "device-payments-bench-"));
  const log = (name: string): string => join(folder, `${name}.log`);
  const running: Child[] = [];
  const binary = await findNatsServer({ environment: process.env, checkout: CHECKOUT, print });
  const nats = await (layout.replicas === 1
    ? startServer(binary, { folder: join(folder, "nats"), logFile: log("nats-server") })
    : startCluster(binary));
  const bus = await connectBus({ url: nats.url, name: "bench", log: QUIET });
  await ensureStreams(bus, layout);
  await keepBucketsComplete(bus);
  let database: Promise<string> | undefined;
  let postgresPid: number | undefined;
  const startDatabase = async (): Promise<string> => {
    mkdirSync(join(folder, "postgres"), { recursive: true });
    const password = randomBytes(12).toString("hex");
    const server = await startPostgres({ folder: join(folder, "postgres"), logFile: log("postgres"), password });
    running.push(server.child);
    postgresPid = server.child.pid;
    await ensureDatabase(server.url("postgres"), DATABASE_NAME);
    await migrate({ databaseUrl: server.url(DATABASE_NAME), log: () => undefined });
    await prepareBus(nats.url, server.url(DATABASE_NAME), layout);
    return server.url(DATABASE_NAME);
  };
  return {
    bus,
    natsVersion: nats.version,
    natsPids: nats.pids,
    logs: new StationLogs(layout.logs),
    postgresPid: () => postgresPid,
    async startProcess(name, script, args, environment = {}) {
      const env = { ...process.env, NATS_URL: nats.url, LOG_LEVEL: "warn", ...environment };
      const { child, ready, ended } = await startServiceProcess({
        name,
        script: join(CHECKOUT, script),
        args,
        environment: env,
        logFile: log(name),
      });
      const reportUnexpectedEnd = async (): Promise<void> => {
        const { exit } = await ended;
        if (!child.isStopping()) print(`${name} ${describeExit(exit)} unexpectedly; its log is ${log(name)}.`);
      };
      void reportUnexpectedEnd();
      running.push(child);
      return {
        pid: child.pid,
        ready,
        ask: <T>() =>
          new Promise<T>((resolve) => {
            child.process.once("message", (message) => resolve(message as T));
            child.process.send({ ask: true });
          }),
        listen: (listener) => void child.process.on("message", listener),
        stop: async () => {
          await child.stop();
        },
      };
    },
    databaseUrl: () => (database ??= startDatabase()),
    async stop() {
      await bus.close();
      for (const child of running.toReversed()) await child.stop();
      await nats.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface BenchNats {
  readonly url: string;
  readonly version: string;
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

async function startServer(
  binary: NatsBinary,
  files: { readonly folder: string; readonly logFile: string },
): Promise<BenchNats> {
  const token = randomBytes(12).toString("hex");
  const { url, version, child } = await startNats({ binary, ...files, token });
  return { url, version, pids: [child.pid], stop: async () => void (await child.stop()) };
}

/** Starts a cluster without the links of the trials, whose proxies would use the CPU of the bench. */
async function startCluster(binary: NatsBinary): Promise<BenchNats> {
  const cluster = await NatsCluster.start({ binary: binary.path, isDirect: true });
  return { url: cluster.url(), version: binary.version, pids: cluster.pids, stop: () => cluster.stop() };
}
