/** The settings of `npm start`, from the environment. It checks the settings of every part before any part is started. */
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
  setting,
  sharedSettingsSchema,
} from "../services/runtime/settings.ts";
import type { ProcessDescription } from "../services/runtime/settings-help.ts";
import { UserError } from "../services/runtime/user-error.ts";
import { sandboxProviderSettingsSchema } from "../services/sandbox-provider/settings.ts";
import { readStationsSettings } from "../services/stations/settings.ts";
import { readSignerSettings } from "../services/webhook-signer/settings.ts";

const LAST_PORT = 65_535;
/** Each of the five processes answers Prometheus on a separate port: METRICS_PORT and the ones after it. */
const METRICS_PORTS = 5;

/** A number in decimal digits. `meaning` completes the error message about any other value. */
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
  PORT: setting(digits(0, LAST_PORT, "", "where 0 takes any free port").default(8480), {
    meaning: "The port that the API listens on; 0 takes any free port.",
  }),
  HOST: setting(z.string().default("127.0.0.1"), {
    meaning: "The address that the API listens on: by default only this machine reaches it.",
  }),
  DATA_DIR: setting(z.string().default(".data"), {
    meaning: "The data folder: everything that must survive a restart is below it.",
  }),
  NATS_URL: setting(natsAddress().optional(), {
    meaning: "The servers of your own NATS, between commas; then none is started.",
    secret: true,
    unset: "a nats-server is started",
  }),
  DATABASE_URL: setting(databaseAddress.optional(), {
    meaning: "Your own PostgreSQL; then none is started.",
    secret: true,
    unset: "a PostgreSQL is started",
  }),
  METRICS_PORT: setting(
    digits(
      0,
      LAST_PORT - METRICS_PORTS + 1,
      "",
      "because the four ports after it are used, too; 0 takes any free ports",
    ).optional(),
    {
      meaning: "The first of the five ports where the processes answer Prometheus; 0 takes any free ports.",
      unset: "none of them",
    },
  ),
  METRICS_HOST: setting(z.string().default("127.0.0.1"), { meaning: "The address of these ports." }),
  DISK_RESERVE_MB: setting(digits(0, 1_048_576, " of megabytes", "of the disk of DATA_DIR").default(512), {
    meaning:
      "The reserve on the disk of DATA_DIR, in megabytes: with less free space the processes defer work that can wait; 0 for never.",
  }),
  LOG_MAX_MB: setting(digits(20, 1_000_000, " of megabytes", "for all logs together").default(200), {
    meaning:
      "The most that all logs together take, in megabytes: each part has an equal share, in its current file and four older ones.",
  }),
  LOG_LEVEL: setting(z.enum(LOG_LEVELS, { error: `it must be one of ${LOG_LEVELS.join(", ")}` }).default("info"), {
    meaning: `The least level of lines in the logs: ${LOG_LEVELS.join(", ")}.`,
  }),
});

/** The only argument of `npm start`. It is not a setting, because it must apply to one start only. */
export const DATABASE_RESTORED = "--database-restored";

/** What `npm start -- --help` shows. */
export const START_DESCRIPTION: ProcessDescription = {
  name: "start",
  command: "npm start",
  does: "Runs everything on this machine with a seeded sandbox, until Ctrl-C. The settings of its processes count as well (docs/settings.md); secrets that are not set are generated once. `npm start -- --database-restored` is the first start after the database was restored from a backup (docs/operations.md).",
  usesDatabase: true,
  schemas: [settingsSchema, busAccessSchema],
};

/** The settings of `npm start`. `dataDir` is absolute, `natsAccess` is for the NATS of `natsUrl`, `tls` has the gateway's files. */
export type Settings = ReturnType<typeof readSettings>;

/**
 * Reads the settings from environment variables, and checks those that only one part reads. Throws UserError
 * `invalid_setting` that names the variable but never its value, which may contain a password.
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

/** A placeholder for each key that `npm start` generates when the operator sets none. */
const PLACEHOLDER_KEY = Buffer.alloc(32).toString("base64url");
/** Placeholders for the settings that `npm start` makes itself when the operator has not set them. */
const PLACEHOLDERS: NodeJS.ProcessEnv = {
  NATS_URL: "nats://127.0.0.1:4222",
  PROVIDER_SECRETS_KEY: PLACEHOLDER_KEY,
  SANDBOX_PROVIDER_KEY: PLACEHOLDER_KEY,
  SANDBOX_PROVIDER_INSTALLATION_KEY: PLACEHOLDER_KEY,
  WEBHOOK_SECRETS_KEY: PLACEHOLDER_KEY,
};
/** Schemas of the parts whose settings have no further checks. */
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
  const complete = { ...PLACEHOLDERS, ...Object.fromEntries(set) };
  for (const schema of PART_SCHEMAS) parseSettings(schema, complete);
  readStationsSettings(complete);
  readSignerSettings(complete);
  return readGatewaySettings(complete);
}
