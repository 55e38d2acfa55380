/** The settings of `npm start`, from the environment. What only a part reads is checked as well, before any part is started. */
import { resolve } from "node:path";
import { z } from "zod";
import { type GatewaySettings, readGatewaySettings } from "../gateway/settings.ts";
import { auditSettingsSchema } from "../services/audit/settings.ts";
import { providersSettingsSchema } from "../services/providers/settings.ts";
import { reconciliationSettingsSchema } from "../services/reconciliation/settings.ts";
import { registrySettingsSchema } from "../services/registry/settings.ts";
import { roboticsSettingsSchema } from "../services/robotics/settings.ts";
import { LOG_LEVELS } from "../services/runtime/log.ts";
import {
  busAccessSchema,
  databaseAddress,
  diskSettingsSchema,
  natsAddress,
  parseSettings,
  sharedSettingsSchema,
} from "../services/runtime/settings.ts";
import { UserError } from "../services/runtime/user-error.ts";
import { sandboxProviderSettingsSchema } from "../services/sandbox-provider/settings.ts";
import { readStationsSettings } from "../services/stations/settings.ts";
import { readSignerSettings } from "../services/webhook-signer/settings.ts";

const LAST_PORT = 65_535;
/** Each of the five processes answers Prometheus on a separate port: METRICS_PORT and the ones after it. */
const METRICS_PORTS = 5;

/** A number in plain digits; the meaning completes the sentence about one that is not. */
function digits(least: number, most: number, what: string, meaning: string) {
  const allowed = `it must be a whole number${what} from ${least} to ${most}, ${meaning}`;
  return z
    .string()
    .regex(/^\d{1,7}$/, allowed)
    .transform(Number)
    .refine((number) => number >= least && number <= most, allowed);
}

/** The messages complete "The setting X is not usable: …": each names what is allowed. */
const settingsSchema = z.object({
  /** Port of the HTTP API; 0 takes any free one. */
  PORT: digits(0, LAST_PORT, "", "where 0 takes any free port").default(8480),
  /** Address that the HTTP API listens on. Only this machine can reach it by default. */
  HOST: z.string().default("127.0.0.1"),
  /** Everything that must survive a restart is below this folder. */
  DATA_DIR: z.string().default(".data"),
  /** Set: this NATS is used (several servers separated by commas) and none is started. */
  NATS_URL: natsAddress().optional(),
  /** Set: this PostgreSQL is used and none is started. */
  DATABASE_URL: databaseAddress.optional(),
  /** Set: the processes answer Prometheus on this port and the four after it; 0 takes any free ports. */
  METRICS_PORT: digits(
    0,
    LAST_PORT - METRICS_PORTS + 1,
    "",
    "because the four ports after it are used, too; 0 takes any free ports",
  ).optional(),
  /** Address of the metrics ports. */
  METRICS_HOST: z.string().default("127.0.0.1"),
  /** With less free space than this on the disk of DATA_DIR, in megabytes, the processes defer work that can wait; 0 for never. */
  DISK_RESERVE_MB: digits(0, 1_048_576, " of megabytes", "of the disk of DATA_DIR").default(512),
  /** All logs together, in megabytes. */
  LOG_MAX_MB: digits(20, 1_000_000, " of megabytes", "for all logs together").default(200),
  LOG_LEVEL: z.enum(LOG_LEVELS, { error: `it must be one of ${LOG_LEVELS.join(", ")}` }).default("info"),
});

/** The settings of `npm start`. `dataDir` is absolute, `natsAccess` is for the NATS of `natsUrl`, `tls` has the gateway's files. */
export type Settings = ReturnType<typeof readSettings>;

/**
 * Reads the settings from environment variables, and checks what only a part reads. Throws UserError `invalid_setting` naming
 * the variable; never its value, which may hold a password.
 */
export function readSettings(environment: NodeJS.ProcessEnv) {
  const values = parseSettings(settingsSchema, environment);
  refuseSharedPort(values.PORT, values.METRICS_PORT);
  const { tls } = checkPartSettings(environment);
  return {
    port: values.PORT,
    host: values.HOST,
    dataDir: resolve(values.DATA_DIR),
    natsUrl: values.NATS_URL,
    natsAccess: parseSettings(busAccessSchema, environment),
    databaseUrl: values.DATABASE_URL,
    logLevel: values.LOG_LEVEL,
    diskReserveMb: values.DISK_RESERVE_MB,
    logMaxBytes: values.LOG_MAX_MB * 1_024 ** 2,
    metricsPort: values.METRICS_PORT,
    metricsHost: values.METRICS_HOST,
    tls: tls && { keyFile: resolve(tls.keyFile), certFile: resolve(tls.certFile) },
  };
}

/** The metrics ports that the processes will listen on; none when they are off or any free port will do. */
export function metricsPorts(settings: Pick<Settings, "metricsPort">): number[] {
  const first = settings.metricsPort ?? 0;
  return first === 0 ? [] : Array.from({ length: METRICS_PORTS }, (_, offset) => first + offset);
}

function refuseSharedPort(httpPort: number, metricsPort: number | undefined): void {
  const ports = metricsPorts({ metricsPort });
  if (!ports.includes(httpPort)) return;
  const sentence = `The setting METRICS_PORT is not usable: metrics take the ports ${ports[0]} to ${ports.at(-1)}, and PORT is ${httpPort}; choose one above PORT, or at least ${METRICS_PORTS} below it.`;
  throw new UserError(sentence, { code: "invalid_setting" });
}

/** In place of a key that `npm start` makes when the operator sets none. */
const MADE_KEY = Buffer.alloc(32).toString("base64url");
/** What `npm start` sets by itself where the operator has set nothing. */
const MADE: NodeJS.ProcessEnv = {
  NATS_URL: "nats://127.0.0.1:4222",
  PROVIDER_SECRETS_KEY: MADE_KEY,
  SANDBOX_PROVIDER_KEY: MADE_KEY,
  SANDBOX_PROVIDER_INSTALLATION_KEY: MADE_KEY,
  WEBHOOK_SECRETS_KEY: MADE_KEY,
};
/** Schemas of parts that check nothing beside them. */
const PART_SCHEMAS = [
  sharedSettingsSchema,
  diskSettingsSchema,
  registrySettingsSchema,
  auditSettingsSchema,
  providersSettingsSchema,
  reconciliationSettingsSchema,
  roboticsSettingsSchema,
  sandboxProviderSettingsSchema,
];

/** Throws UserError `invalid_setting` for the first setting that a part would refuse. Returns what the gateway reads. */
function checkPartSettings(environment: NodeJS.ProcessEnv): GatewaySettings {
  const set = Object.entries(environment).filter(([, value]) => value !== "");
  const complete = { ...MADE, ...Object.fromEntries(set) };
  for (const schema of PART_SCHEMAS) parseSettings(schema, complete);
  readStationsSettings(complete);
  readSignerSettings(complete);
  return readGatewaySettings(complete);
}
