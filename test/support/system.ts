/**
 * The whole system for one test file: NATS, a database, the services and a gateway as the processes that `npm start` runs,
 * and the seeded sandbox. A test can kill its processes and start them again.
 *
 *   const system = await startSystem();      // in beforeAll
 *   system.baseUrl; system.sandbox.stations; system.cashier;
 *   await system.processes.gateway.kill9();
 *   await system.processes.gateway.restart(); // on the same port
 *   await system.stop();                      // in afterAll
 *
 * `people.ts` and `devices.ts` beside this file log in and call the APIs over HTTP.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { flushKeys } from "../../services/bus/flush-outbox.ts";
import { seedSandboxProvider } from "../../services/bus/messages/provider-configs.ts";
import { seedSandbox } from "../../services/bus/messages/sandbox-organization.ts";
import { call, type ReplyOf } from "../../services/bus/operation.ts";
import type { BusLayout } from "../../services/bus/stream-config.ts";
import { migrate } from "../../services/db/migrate.ts";
import { stationKey } from "../../services/db/outbox.ts";
import { freePort } from "./free-port.ts";
import { prepareBus } from "./prepared-bus.ts";
import { QUIET } from "./quiet-log.ts";
import { cloneDatabase, startNats, startPostgres, type TestDatabase, type TestServer } from "./servers.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { startTestProcess, type TestProcess } from "./test-process.ts";

/** Seeding hashes two passwords on a machine that is busy with tests. */
const SEED_MS = 20_000;
/** The services that run in one process, as in `npm start`. */
const SERVICES = ["registry", "settlement", "providers", "robotics", "reconciliation", "audit", "relay"];
const KEY_BYTES = 32;

/** Log-in details of a seeded person. */
export interface LogIn {
  readonly email: string;
  readonly password: string;
}

export interface TestSystem {
  readonly baseUrl: string;
  readonly nats: TestServer;
  readonly database: TestDatabase;
  /** This system's PostgreSQL server, which a test may kill. Undefined without `ownPostgres`. */
  readonly postgres: TestServer | undefined;
  /** The test's connection, for operations that have no HTTP endpoint. */
  readonly bus: Bus;
  readonly processes: Readonly<Record<"services" | "stations" | "gateway", TestProcess>>;
  /** The relay's process. Undefined without `relayApart`: then the services' process runs the relay. */
  readonly relay: TestProcess | undefined;
  /** The process of the webhook signer. Undefined without the option `webhookSigner`. */
  readonly webhookSigner: TestProcess | undefined;
  readonly sandbox: ReplyOf<typeof seedSandbox>;
  readonly owner: LogIn;
  readonly cashier: LogIn;
  /** The log of a process so far: JSON lines. */
  log(name: keyof TestSystem["processes"] | "webhook-signer"): string;
  /** Creates the streams that the bus has lost, as an operator does. */
  prepareBus(): Promise<void>;
  stop(): Promise<void>;
}

export interface SystemOptions {
  /** The services that run in one process; by default all but the webhook signer and the sandbox provider. */
  readonly services?: readonly string[];
  /** Settings for every process, for example a shorter silence of devices. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Also runs the webhook signer, in a separate process, which a test may kill. */
  readonly webhookSigner?: boolean;
  /** Runs the relay in a separate process, which a test may stop. */
  readonly relayApart?: boolean;
  /** Also runs the sandbox provider, and makes it the sandbox stations' provider. */
  readonly sandboxProvider?: boolean;
  /** Starts a PostgreSQL server for this system, which is slower than a database on the run's server. For tests that kill it. */
  readonly ownPostgres?: boolean;
  /** A program that runs nats-server in another way, for example under a tracer. */
  readonly natsPath?: string;
  /** The layout of the bus; by default one station log with one replica. */
  readonly layout?: Partial<BusLayout>;
}

/** A system without a sandbox: the part that a worker's files can share (`shared-system.ts`). */
export type RunningSystem = Omit<TestSystem, keyof Seeded>;
type Seeded = Pick<TestSystem, "sandbox" | "owner" | "cashier">;

/** Starts the system. Rejects with the error of the process that did not start. */
export async function startSystem(options: SystemOptions = {}): Promise<TestSystem> {
  const running = await startProcesses(options);
  return { ...running, ...(await seed(running, options)) };
}

/** Seeds the sandbox of a running system, and its provider with `sandboxProvider`. */
export async function seed({ bus }: Pick<TestSystem, "bus">, options: SystemOptions): Promise<Seeded> {
  const passwords = { ownerPassword: "owner of the sandbox", cashierPassword: "cashier of the sandbox" };
  const sandbox = await call(bus.nc, seedSandbox, passwords, SEED_MS);
  if (options.sandboxProvider === true) await call(bus.nc, seedSandboxProvider, sandbox, SEED_MS);
  // Seeding waits at most a second until the stations have received the rows.
  const keys = sandbox.stations.map(({ stationId }) => stationKey(stationId));
  await flushKeys({ nc: bus.nc, log: QUIET, timeoutMs: SEED_MS }, keys);
  return {
    sandbox,
    owner: { email: sandbox.owner.email, password: passwords.ownerPassword },
    cashier: { email: sandbox.cashier.email, password: passwords.cashierPassword },
  };
}

/** Starts the servers and the processes, without a sandbox. */
export async function startProcesses(options: SystemOptions = {}): Promise<RunningSystem> {
  const folder = temporaryFolder("system");
  const logFile = (name: string): string => join(folder.path, `${name}.log`);
  const [nats, { database, postgres }, port] = await Promise.all([
    startNats({ path: options.natsPath }),
    openStore(options),
    freePort(),
  ]);
  await prepareBus(nats.url, database.url, options.layout);
  const environment = { ...process.env, LOG_LEVEL: "info", NATS_URL: nats.url, ...options.environment };
  const newKey = (): string => randomBytes(KEY_BYTES).toString("base64url");
  const sandboxPort = await freePort();
  const withDatabase = {
    WEBHOOK_SECRETS_KEY: newKey(),
    PROVIDER_SECRETS_KEY: newKey(),
    CERTIFICATION_SIGNING_KEY: newKey(),
    CLOSING_SIGNING_KEY: newKey(),
    SANDBOX_PROVIDER_KEY: newKey(),
    SANDBOX_PROVIDER_INSTALLATION_KEY: newKey(),
    SANDBOX_PROVIDER_URL: `http://127.0.0.1:${sandboxPort}`,
    SANDBOX_PROVIDER_PORT: String(sandboxPort),
    PROVIDER_CALLBACK_BASE_URL: `http://127.0.0.1:${port}`,
    CONFORMANCE_BASE_URL: `http://127.0.0.1:${port}`,
    ...environment,
    DATABASE_URL: database.url,
  };
  const start = (name: string, script: string, args: string[], env: NodeJS.ProcessEnv) =>
    startTestProcess({ name, script, args, environment: env, logFile: logFile(name) });
  const relayApart = options.relayApart === true;
  const named = (options.services ?? SERVICES).filter((name) => !relayApart || name !== "relay");
  const startIf = (isWanted: boolean | undefined, name: string) =>
    isWanted === true ? start(name, "services/main.ts", [name], withDatabase) : undefined;
  const [services, relay, sandboxProvider, webhookSigner, stations, gateway] = await Promise.all([
    start("services", "services/main.ts", named, withDatabase),
    startIf(relayApart, "relay"),
    startIf(options.sandboxProvider, "sandbox-provider"),
    startIf(options.webhookSigner, "webhook-signer"),
    start("stations", "services/main.ts", ["stations"], environment),
    start("gateway", "gateway/main.ts", [], { ...environment, HOST: "127.0.0.1", PORT: String(port) }),
  ]);
  const bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    nats,
    database,
    postgres,
    bus,
    processes: { services, stations, gateway },
    relay,
    webhookSigner,
    log: (name) => readFileSync(logFile(name), "utf8"),
    async prepareBus() {
      await prepareBus(nats.url, database.url);
    },
    async stop() {
      await bus.close();
      await Promise.all([
        gateway.stop(),
        stations.stop(),
        services.stop(),
        relay?.stop(),
        sandboxProvider?.stop(),
        webhookSigner?.stop(),
      ]);
      const ends = await Promise.allSettled([nats.stop(), database.drop()]);
      folder.remove();
      for (const end of ends) if (end.status === "rejected") throw end.reason;
    },
  };
}

async function openStore(options: SystemOptions): Promise<Pick<TestSystem, "database" | "postgres">> {
  if (options.ownPostgres !== true) return { database: await cloneDatabase(), postgres: undefined };
  const postgres = await startPostgres();
  await migrate({ databaseUrl: postgres.url, log: () => undefined });
  return { database: { url: postgres.url, drop: postgres.stop }, postgres };
}
