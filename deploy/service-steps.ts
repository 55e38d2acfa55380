import { join } from "node:path";
import { migrateInstallation } from "../services/db/migrate-installation.ts";
import { type ApplicationContext, logFor } from "./application-context.ts";
import { keepRunning } from "./keep-running.ts";
import type { LogPart } from "./log-files.ts";
import { openSecrets } from "./secrets.ts";
import { startServiceProcess } from "./service-process.ts";
import type { Step } from "./supervisor.ts";

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
        log: () => undefined,
        signal: stopping,
      });
      return undefined;
    },
  };
}

/** A process of services/main.ts. */
export interface ServicesProcess {
  name: LogPart;
  services: string[];
  /** Only a process that works with the database learns where it is. */
  usesDatabase: boolean;
}

/** One process that runs the named services. */
export function servicesStep(context: ApplicationContext, process: ServicesProcess): Step {
  const { name } = process;
  return {
    name,
    start: async (control) => {
      const options = {
        name,
        script: join(context.checkout, "services", "main.ts"),
        args: process.services,
        environment: {
          ...baseEnvironment(context, name),
          ...(process.usesDatabase ? databaseEnvironment(context) : {}),
        },
        ...logFor(context, name),
      };
      const { room } = context;
      const launch = (stopping: AbortSignal) => startServiceProcess({ ...options, control: { stopping } });
      const stop = await keepRunning({ name, logFile: options.logFile, control, say: context.say, launch, room });
      context.say(`${name}: up.`);
      return stop;
    },
  };
}

/** The gateway process. It never learns where the database is. */
export function gatewayStep(context: ApplicationContext): Step {
  const name = "gateway";
  return {
    name,
    start: async (control) => {
      const { host } = context.settings;
      // The port of a scheme's default is left out of a URL.
      const { port, protocol } = new URL(context.addresses.get("gateway"));
      const options = {
        name,
        script: join(context.checkout, "gateway", "main.ts"),
        args: [],
        environment: {
          ...baseEnvironment(context, name),
          ...platformKey(context),
          HOST: host,
          PORT: port || (protocol === "https:" ? "443" : "80"),
        },
        ...logFor(context, name),
      };
      const { room } = context;
      const launch = (stopping: AbortSignal) => startServiceProcess({ ...options, control: { stopping } });
      const stop = await keepRunning({ name, logFile: options.logFile, control, say: context.say, launch, room });
      context.say("gateway: up.");
      return stop;
    },
  };
}

/** The operator's, or one that belongs to this data folder; only the gateway is shown it. */
function platformKey({ environment, settings }: ApplicationContext): NodeJS.ProcessEnv {
  return { PLATFORM_KEY: environment.PLATFORM_KEY || openSecrets(settings.dataDir).value("platform_key", KEY_BYTES) };
}

/** Each process needs a metrics port of its own: METRICS_PORT and the four after it. */
const METRICS_PORT_OFFSETS: Readonly<Record<string, number>> = {
  services: 0,
  stations: 1,
  gateway: 2,
  "sandbox-provider": 3,
  "webhook-signer": 4,
};
/** AES-256 and HMAC-SHA256 keys. */
const KEY_BYTES = 32;
/** What not every process may know. */
const SECRET_SETTINGS = [
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
    // Where both servers are elsewhere, this disk holds logs only, for which nothing has to wait.
    DISK_RESERVE_MB: natsUrl !== undefined && databaseUrl !== undefined ? "0" : String(diskReserveMb),
  };
}

/** What only a process with the database needs. */
function databaseEnvironment(context: ApplicationContext): NodeJS.ProcessEnv {
  const key = enrollmentCodeKey(context);
  return {
    DATABASE_URL: context.addresses.get("database"),
    ...(key === undefined ? {} : { ENROLLMENT_CODE_KEY: key }),
    ...providerEnvironment(context),
    ...webhookEnvironment(context),
  };
}

/**
 * The keys of providers' secrets: the operator's, or those of this data folder. Who runs several starts on one database
 * sets them, or none could read what another has sealed.
 */
function providerEnvironment({ environment, settings, addresses }: ApplicationContext): NodeJS.ProcessEnv {
  const secrets = openSecrets(settings.dataDir);
  const sandbox = new URL(addresses.get("sandboxProvider"));
  return {
    PROVIDER_SECRETS_KEY: environment.PROVIDER_SECRETS_KEY || secrets.value("provider_secrets_key", KEY_BYTES),
    PROVIDER_SECRETS_OLD_KEYS: environment.PROVIDER_SECRETS_OLD_KEYS,
    SANDBOX_PROVIDER_KEY: environment.SANDBOX_PROVIDER_KEY || secrets.value("sandbox_provider_key", KEY_BYTES),
    SANDBOX_PROVIDER_INSTALLATION_KEY:
      environment.SANDBOX_PROVIDER_INSTALLATION_KEY || secrets.value("sandbox_provider_installation_key", KEY_BYTES),
    SANDBOX_PROVIDER_URL: sandbox.origin,
    SANDBOX_PROVIDER_PORT: sandbox.port,
    PROVIDER_CALLBACK_BASE_URL: environment.PROVIDER_CALLBACK_BASE_URL || addresses.get("gateway"),
  };
}

/** The key of webhook secrets, in the same way. */
function webhookEnvironment({ environment, settings }: ApplicationContext): NodeJS.ProcessEnv {
  const secrets = openSecrets(settings.dataDir);
  return {
    WEBHOOK_SECRETS_KEY: environment.WEBHOOK_SECRETS_KEY || secrets.value("webhook_secrets_key", KEY_BYTES),
    WEBHOOK_SECRETS_OLD_KEYS: environment.WEBHOOK_SECRETS_OLD_KEYS,
  };
}

/**
 * The key that enrollment codes are hashed with: the operator's, or one that belongs to this data folder. A data folder
 * from before it had a key gets one, too: codes that are open at that moment can no longer be claimed, and the owner
 * issues new ones. A database that is not ours may serve several starts, which must agree on the key, so none is made up.
 */
function enrollmentCodeKey({ environment, settings }: ApplicationContext): string | undefined {
  if (environment.ENROLLMENT_CODE_KEY) return environment.ENROLLMENT_CODE_KEY;
  return settings.databaseUrl === undefined ? openSecrets(settings.dataDir).value("enrollment_code_key") : undefined;
}

function metricsEnvironment(metricsPort: number | undefined, name: string): NodeJS.ProcessEnv {
  if (metricsPort === undefined) return {};
  // Any free port needs no distance from the others.
  const port = metricsPort === 0 ? 0 : metricsPort + (METRICS_PORT_OFFSETS[name] ?? 0);
  return { METRICS_PORT: String(port) };
}
