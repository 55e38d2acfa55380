/** What a bench stands on: real nats-server and PostgreSQL with durable settings, and our processes as `npm start` runs them. */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, describeExit } from "../../deploy/child.ts";
import { findNatsServer } from "../../deploy/embedded/find-nats-server.ts";
import { startNats } from "../../deploy/embedded/nats.ts";
import { ensureDatabase, startPostgres } from "../../deploy/embedded/postgres.ts";
import { startServiceProcess } from "../../deploy/service-process.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { migrate } from "../../services/db/migrate.ts";
import { keepBucketsComplete } from "../support/buckets-complete.ts";
import { prepareBus } from "../support/prepared-bus.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const DATABASE_NAME = "bench";

export interface BenchProcess {
  readonly pid: number;
  /** What it said when it became ready, for example its port. */
  readonly ready: Readonly<Record<string, unknown>>;
  /** Sends it a message and resolves with its next one. */
  ask<T>(): Promise<T>;
  /** Hears everything that it says from now on. */
  listen(listener: (message: unknown) => void): void;
  stop(): Promise<void>;
}

export interface Ground {
  readonly bus: Bus;
  readonly natsVersion: string;
  readonly natsPid: number;
  /** Undefined until `databaseUrl` has been asked for. */
  postgresPid(): number | undefined;
  startProcess(name: string, script: string, args: string[], environment?: NodeJS.ProcessEnv): Promise<BenchProcess>;
  /** Starts PostgreSQL with the migrated schema at its first call. */
  databaseUrl(): Promise<string>;
  stop(): Promise<void>;
}

export async function startGround(print: (line: string) => void): Promise<Ground> {
  const folder = mkdtempSync(join(tmpdir(), "device-payments-bench-"));
  const log = (name: string): string => join(folder, `${name}.log`);
  const running: Child[] = [];
  const binary = await findNatsServer({ environment: process.env, checkout: CHECKOUT, print });
  const token = randomBytes(12).toString("hex");
  const nats = await startNats({ binary, folder: join(folder, "nats"), logFile: log("nats-server"), token });
  const silent = { info: () => undefined, warn: () => undefined };
  const bus = await connectBus({ url: nats.url, name: "bench", log: silent });
  await ensureStreams(bus, { replicas: 1, logs: 1 });
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
    await prepareBus(nats.url, server.url(DATABASE_NAME));
    return server.url(DATABASE_NAME);
  };
  return {
    bus,
    natsVersion: nats.version,
    natsPid: nats.child.pid,
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
      const sayWhenItEnds = async (): Promise<void> => {
        const { exit } = await ended;
        if (!child.isStopping()) print(`${name} ${describeExit(exit)} unexpectedly; its log is ${log(name)}.`);
      };
      void sayWhenItEnds();
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
      await nats.child.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
