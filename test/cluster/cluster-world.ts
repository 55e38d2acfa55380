/** The whole service on a cluster of three NATS servers: two processes of each kind, a PostgreSQL, and stations with devices. */
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { vi } from "vitest";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { seedSandbox } from "../../services/bus/messages/sandbox-organization.ts";
import { call } from "../../services/bus/operation.ts";
import { StationLogs } from "../../services/bus/streams.ts";
import { migrateInstallation } from "../../services/db/migrate-installation.ts";
import { addStations, BEHIND_PROXY, type ChaosStation } from "../chaos/chaos-world.ts";
import { offersQr, openProviderAccount, type ProviderAccount } from "../chaos/provider-account.ts";
import { freePort } from "../support/free-port.ts";
import { logIn, type Person } from "../support/people.ts";
import { QUIET } from "../support/quiet-log.ts";
import { startPostgres, type TestServer } from "../support/servers.ts";
import { mountSmallDisk, type SmallDisk } from "../support/small-disk.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { startTestProcess, type TestProcess } from "../support/test-process.ts";
import { type Receiver, startReceiver } from "../webhook-signer/receiver.ts";
import { Link } from "./link.ts";
import { NatsCluster } from "./nats-cluster.ts";
import type { OlderCheckout } from "./older-checkout.ts";

/** The services that collections by card and cash need beside the database, and the providers service. */
const CORE_SERVICES = ["registry", "settlement", "audit", "relay", "providers"] as const;
/** The kinds of processes and the services that each runs; `gateway` is a separate program. */
export const KINDS = [
  "gateway",
  "stations",
  ...CORE_SERVICES,
  "robotics",
  "reconciliation",
  "webhook-signer",
  "sandbox-provider",
] as const;
/** The kinds of a smaller world: the core services run in one process, which saves the start of many processes. */
export const CORE_KINDS = ["gateway", "stations", "core"] as const;
export type Kind = (typeof KINDS)[number] | "core";
/** `gateway-0`, `gateway-1`, … */
export type ProcessName = `${Kind}-${0 | 1}`;

const SET_CLOCK = join(import.meta.dirname, "programs", "set-clock.mjs");
const COPIES = [0, 1] as const;
/** The process of each kind that reaches the NATS servers and PostgreSQL through links, and whose clock a test sets. */
export const LINKED_COPY = 0;
const REPLICAS = 3;
/** The NATS server whose disk can be filled. */
export const FILLED_NODE = "n2";
const DISK_MEGABYTES = 512;
/** Seeding hashes two passwords while many processes start. */
const SEED_MS = 30_000;
const KEY_BYTES = 32;
/** Each process has a separate pool, and there are two processes of each kind. */
const DATABASE_CONNECTIONS = "300";
/** Long enough that a fault can begin between the QR and the payment. */
const DECIDES_AFTER_MS = "700";
const QR_OFFERED = { timeout: 15_000, interval: 100 };

export interface ClusterWorld {
  readonly nats: NatsCluster;
  /** The disk of `FILLED_NODE`. */
  readonly disk: SmallDisk;
  readonly postgres: TestServer;
  readonly logs: StationLogs;
  /** A separate connection of the test, for what has no HTTP endpoint and for reading what is stored. */
  readonly bus: Bus;
  readonly kinds: readonly Kind[];
  readonly processes: ReadonlyMap<ProcessName, TestProcess>;
  /** The addresses of the two gateways. */
  readonly gateways: readonly [string, string];
  readonly owner: Person;
  readonly cashier: Person;
  readonly filialId: number;
  readonly stations: readonly ChaosStation[];
  /** The stations' account at the sandbox provider; undefined where that does not run. */
  readonly provider: ProviderAccount | undefined;
  /** Where webhooks go; undefined where no robots are served. */
  readonly receiver: Receiver | undefined;
  /** Brings the database and the streams to this version. */
  migrate(): Promise<void>;
  /** The link between a process and PostgreSQL. Throws for a process that has none. */
  databaseLinkOf(name: ProcessName): Link;
  /** What a process has logged so far: JSON lines. */
  log(name: ProcessName): string;
  stop(): Promise<void>;
}

export interface ClusterWorldOptions {
  /** By default all; a test may leave some out to save their start. */
  readonly kinds?: readonly Kind[];
  /** The number of station logs. Each log has three copies, which use CPU even without work. */
  readonly logs?: number;
  /** A checkout whose programs are started. */
  readonly older?: OlderCheckout | undefined;
}

function allowsReceiver({ authority }: Receiver, folder: string): NodeJS.ProcessEnv {
  const caFile = join(folder, "webhook-ca.pem");
  writeFileSync(caFile, authority.cert);
  return { WEBHOOK_ALLOW_LOOPBACK: "true", WEBHOOK_CA_FILE: caFile };
}

/** Starts the world, with a lease held at every station and a heartbeat from every companion. */
export async function startClusterWorld(
  stationCount: number,
  { kinds = KINDS, logs = 6, older }: ClusterWorldOptions = {},
): Promise<ClusterWorld> {
  const folder = temporaryFolder("cluster-world");
  mkdirSync(folder.path, { recursive: true });
  const logFile = (name: string): string => join(folder.path, `${name}.log`);
  const disk = mountSmallDisk("cluster-disk", DISK_MEGABYTES);
  const hasRobots = kinds.includes("robotics") && kinds.includes("webhook-signer");
  const [nats, postgres, receiver] = await Promise.all([
    NatsCluster.start({ smallDisk: { node: FILLED_NODE, path: disk.path } }),
    startPostgres({ settings: { max_connections: DATABASE_CONNECTIONS } }),
    hasRobots ? startReceiver() : undefined,
  ]);
  const installation = { databaseUrl: postgres.url, natsUrl: nats.url(), layout: { replicas: REPLICAS, logs } };
  const migrate = async (): Promise<void> =>
    void (await migrateInstallation({ ...installation, log: () => undefined }));
  await (older === undefined ? migrate() : older.migrate(installation));
  const ports = [await freePort(), await freePort()] as const;
  const gateways = [`http://127.0.0.1:${ports[0]}`, `http://127.0.0.1:${ports[1]}`] as const;
  const newKey = (): string => randomBytes(KEY_BYTES).toString("base64url");
  const sandboxPorts = [await freePort(), await freePort()] as const;
  // Each copy of `providers` asks another copy of the sandbox provider; both know all accounts and payments.
  const sandboxUrl = (copy: 0 | 1): string => `http://127.0.0.1:${sandboxPorts[copy]}`;
  const installationKey = newKey();
  const shared = {
    ...process.env,
    LOG_LEVEL: "info",
    DATABASE_URL: postgres.url,
    PROVIDER_SECRETS_KEY: newKey(),
    PROVIDER_CALLBACK_BASE_URL: gateways[0],
    SANDBOX_PROVIDER_KEY: newKey(),
    SANDBOX_PROVIDER_INSTALLATION_KEY: installationKey,
    SANDBOX_PROVIDER_DECIDES_AFTER_MS: DECIDES_AFTER_MS,
    WEBHOOK_SECRETS_KEY: newKey(),
    CLOSING_SIGNING_KEY: newKey(),
    ...(receiver === undefined ? {} : allowsReceiver(receiver, folder.path)),
    ...BEHIND_PROXY,
  };
  const processes = new Map<ProcessName, TestProcess>();
  const databaseLinks = new Map<ProcessName, Link>();
  const linkedDatabaseUrl = async (name: ProcessName): Promise<string> => {
    const link = await Link.open(postgres.port);
    databaseLinks.set(name, link);
    const url = new URL(postgres.url);
    url.port = String(link.port);
    return url.href;
  };
  const start = async (kind: Kind, copy: 0 | 1): Promise<void> => {
    const name: ProcessName = `${kind}-${copy}`;
    // One process of each kind can be cut off from its server and from PostgreSQL, and its clock can be set.
    const natsUrl = copy === LINKED_COPY ? await nats.linkedUrl(name) : nats.url();
    const NODE_OPTIONS = `${process.env["NODE_OPTIONS"] ?? ""} --import=${SET_CLOCK}`;
    const environment = {
      ...shared,
      NATS_URL: natsUrl,
      SANDBOX_PROVIDER_PORT: String(sandboxPorts[copy]),
      SANDBOX_PROVIDER_URL: sandboxUrl(copy),
      ...(copy === LINKED_COPY ? { NODE_OPTIONS, DATABASE_URL: await linkedDatabaseUrl(name) } : {}),
    };
    const program =
      kind === "gateway"
        ? { script: "gateway/main.ts", args: [], environment: { ...environment, PORT: String(ports[copy]) } }
        : { script: "services/main.ts", args: kind === "core" ? CORE_SERVICES : [kind], environment };
    processes.set(name, await startTestProcess({ name, logFile: logFile(name), checkout: older?.path, ...program }));
  };
  const bus = await connectBus({
    url: nats.url(),
    name: "trial",
    log: QUIET,
  });
  // One kind after the other, because two cores cannot start more at once.
  for (const kind of kinds.toReversed()) {
    await Promise.all(COPIES.map((copy) => start(kind, copy)));
  }
  const passwords = { ownerPassword: "owner of the sandbox", cashierPassword: "cashier of the sandbox" };
  const sandbox = await call(bus.nc, seedSandbox, passwords, SEED_MS);
  const baseUrl = gateways[0];
  const owner = await logIn(baseUrl, "backoffice", { email: sandbox.owner.email, password: passwords.ownerPassword });
  const cashier = await logIn(baseUrl, "cashier", {
    email: sandbox.cashier.email,
    password: passwords.cashierPassword,
  });
  const { filialId } = sandbox;
  const provider = kinds.includes("sandbox-provider")
    ? await openProviderAccount({ owner, filialId, url: sandboxUrl(0), installationKey })
    : undefined;
  const stations = await addStations({ system: { baseUrl, sandbox }, owner, cashier }, stationCount);
  if (provider !== undefined) await vi.waitFor(() => offersQr(cashier, stations), QR_OFFERED);
  return {
    nats,
    disk,
    postgres,
    logs: new StationLogs(logs),
    bus,
    kinds,
    processes,
    gateways,
    owner,
    cashier,
    filialId,
    stations,
    provider,
    receiver,
    migrate,
    databaseLinkOf(name) {
      const link = databaseLinks.get(name);
      if (link === undefined) throw new Error(`There is no link of ${name} to PostgreSQL.`);
      return link;
    },
    log: (name) => readFileSync(logFile(name), "utf8"),
    async stop() {
      await bus.close();
      await Promise.all([...processes.values()].map((one) => one.kill9()));
      await Promise.all([...databaseLinks.values()].map((link) => link.close()));
      await Promise.all([nats.stop(), postgres.stop(), receiver?.stop()]);
      disk.remove();
      folder.remove();
    },
  };
}
