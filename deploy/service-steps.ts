/** The steps that prepare database and bus, and that run the processes of this product: services, gateway, virtual devices. */
import { join } from "node:path";
import { migrateInstallation } from "../services/db/migrate-installation.ts";
import { type ApplicationContext, logFor } from "./application-context.ts";
import { secretOf } from "./data-folder.ts";
import { keepRunning } from "./keep-running.ts";
import type { LogPart } from "./log-files.ts";
import { startServiceProcess } from "./service-process.ts";
import type { Step, StepControl, StopStep } from "./supervisor.ts";

/**
 * Prepares database and bus for this version before any process starts. The streams of a bus that exists keep their number
 * of copies; a new one has one copy of each.
 */
export function migrationStep(context: ApplicationContext): Step {
  return {
    name: "migrations",
    start: async ({ stopping }) => {
      context.installation = await migrateInstallation({
        databaseUrl: context.addresses.get("database"),
        natsUrl: context.addresses.get("nats"),
        natsAccess: context.settings.natsAccess,
        layout: {},
        isRestored: context.isDatabaseRestored,
        log: () => undefined,
        signal: stopping,
      });
      return undefined;
    },
  };
}

/** One process that runs the named services. */
export function servicesStep(context: ApplicationContext, name: LogPart, services: string[]): Step {
  return {
    name,
    start: (control) => {
      // The stations work without the database, so their process does not get its address.
      const database = name === "stations" ? {} : databaseEnvironment(context);
      const environment = { ...baseEnvironment(context, name), ...database };
      return runProcess(context, control, { name, script: "services/main.ts", args: services, environment });
    },
  };
}

/** The gateway process. It never gets the address of the database, and only it gets the platform key. */
export function gatewayStep(context: ApplicationContext): Step {
  const name = "gateway";
  return {
    name,
    start: (control) => {
      // A URL omits the default port of its scheme.
      const { port, protocol } = new URL(context.addresses.get("gateway"));
      const environment = {
        ...baseEnvironment(context, name),
        PLATFORM_KEY: setOrGenerated(context, "PLATFORM_KEY"),
        HOST: context.settings.host,
        PORT: port || (protocol === "https:" ? "443" : "80"),
      };
      return runProcess(context, control, { name, script: "gateway/main.ts", environment });
    },
  };
}

/** Runs a program of this product, and starts it again when it ends. */
export async function runProcess(
  context: ApplicationContext,
  control: StepControl,
  program: { name: LogPart; script: string; args?: string[]; environment: NodeJS.ProcessEnv },
): Promise<StopStep> {
  const { print, room, checkout } = context;
  const { name, script, args = [], environment } = program;
  const log = logFor(context, name);
  const launch = (stopping: AbortSignal) =>
    startServiceProcess({ name, script: join(checkout, script), args, environment, ...log, stopping });
  const stop = await keepRunning({ name, logFile: log.logFile, control, print, launch, room });
  print(`${name}: up.`);
  return stop;
}

/** Each process needs a separate metrics port: METRICS_PORT and the four after it. */
const METRICS_PORT_OFFSETS: Readonly<Record<string, number>> = {
  services: 0,
  stations: 1,
  gateway: 2,
  "sandbox-provider": 3,
  "webhook-signer": 4,
};
/** AES-256, HMAC-SHA256 and Ed25519 keys. */
const KEY_BYTES = 32;
/** Settings that only some processes may get. */
const SECRET_SETTINGS = [
  "CERTIFICATION_SIGNING_KEY",
  "CLOSING_SIGNING_KEY",
  "DATABASE_URL",
  "ENROLLMENT_CODE_KEY",
  "PROVIDER_SECRETS_KEY",
  "PROVIDER_SECRETS_OLD_KEYS",
  "SANDBOX_PROVIDER_KEY",
  "SANDBOX_PROVIDER_INSTALLATION_KEY",
  "WEBHOOK_SECRETS_KEY",
  "WEBHOOK_SECRETS_OLD_KEYS",
  "PLATFORM_KEY",
];

function baseEnvironment(context: ApplicationContext, name: string): NodeJS.ProcessEnv {
  const rest = Object.entries(context.environment).filter(
    ([variable]) => variable !== "METRICS_PORT" && !SECRET_SETTINGS.includes(variable),
  );
  const { logLevel, metricsPort, dataDir, diskReserveMb, natsUrl, databaseUrl, tls } = context.settings;
  return {
    ...Object.fromEntries(rest),
    ...metricsEnvironment(metricsPort, name),
    ...(tls === undefined ? {} : { GATEWAY_CERTIFICATE_FILE: tls.certFile }),
    NATS_URL: context.addresses.get("nats"),
    LOG_LEVEL: logLevel,
    DISK_FOLDER: dataDir,
    // When both servers are external, this disk holds only logs, and no work has to wait for space.
    DISK_RESERVE_MB: natsUrl !== undefined && databaseUrl !== undefined ? "0" : String(diskReserveMb),
  };
}

/** The key that the operator has set, otherwise the key of this data folder. Several starts with one database need the operator's. */
function setOrGenerated({ environment, settings }: ApplicationContext, variable: string): string {
  return environment[variable] || secretOf(settings.dataDir, variable.toLowerCase(), KEY_BYTES);
}

/** The environment that only processes with the database need. */
function databaseEnvironment(context: ApplicationContext): NodeJS.ProcessEnv {
  const { environment, addresses } = context;
  const sandbox = new URL(addresses.get("sandboxProvider"));
  const enrollmentKey = enrollmentCodeKey(context);
  return {
    DATABASE_URL: addresses.get("database"),
    ...(enrollmentKey === undefined ? {} : { ENROLLMENT_CODE_KEY: enrollmentKey }),
    CERTIFICATION_SIGNING_KEY: setOrGenerated(context, "CERTIFICATION_SIGNING_KEY"),
    CLOSING_SIGNING_KEY: setOrGenerated(context, "CLOSING_SIGNING_KEY"),
    CONFORMANCE_BASE_URL: environment.CONFORMANCE_BASE_URL || addresses.get("gateway"),
    PROVIDER_SECRETS_KEY: setOrGenerated(context, "PROVIDER_SECRETS_KEY"),
    PROVIDER_SECRETS_OLD_KEYS: environment.PROVIDER_SECRETS_OLD_KEYS,
    SANDBOX_PROVIDER_KEY: setOrGenerated(context, "SANDBOX_PROVIDER_KEY"),
    SANDBOX_PROVIDER_INSTALLATION_KEY: setOrGenerated(context, "SANDBOX_PROVIDER_INSTALLATION_KEY"),
    SANDBOX_PROVIDER_URL: sandbox.origin,
    // Behind a proxy, the sandbox provider listens on another port than that of its address.
    SANDBOX_PROVIDER_PORT:
      Number(environment.SANDBOX_PROVIDER_PORT) > 0 ? environment.SANDBOX_PROVIDER_PORT : sandbox.port,
    PROVIDER_CALLBACK_BASE_URL: environment.PROVIDER_CALLBACK_BASE_URL || addresses.get("gateway"),
    WEBHOOK_SECRETS_KEY: setOrGenerated(context, "WEBHOOK_SECRETS_KEY"),
    WEBHOOK_SECRETS_OLD_KEYS: environment.WEBHOOK_SECRETS_OLD_KEYS,
  };
}

/**
 * The key that enrollment codes are hashed with: the operator's, or the one of this data folder. Several starts may use one
 * external database and must then have the same key, so none is generated for it.
 */
function enrollmentCodeKey({ environment, settings }: ApplicationContext): string | undefined {
  if (environment.ENROLLMENT_CODE_KEY) return environment.ENROLLMENT_CODE_KEY;
  return settings.databaseUrl === undefined ? secretOf(settings.dataDir, "enrollment_code_key") : undefined;
}

function metricsEnvironment(metricsPort: number | undefined, name: string): NodeJS.ProcessEnv {
  if (metricsPort === undefined) return {};
  // With 0 each process takes any free port, so the offset is not needed.
  const port = metricsPort === 0 ? 0 : metricsPort + (METRICS_PORT_OFFSETS[name] ?? 0);
  return { METRICS_PORT: String(port) };
}
