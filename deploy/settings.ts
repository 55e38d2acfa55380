import { resolve } from "node:path";
import { z } from "zod";
import type { ServerAccess } from "../services/bus/nats-server.ts";
import { LOG_LEVELS } from "../services/runtime/log.ts";
import { busAccessSchema, databaseAddress, natsAddress, parseSettings } from "../services/runtime/settings.ts";
import { UserError } from "../services/runtime/user-error.ts";
import { checkPartSettings } from "./part-settings.ts";

const LAST_PORT = 65_535;
/** Each of the five processes answers Prometheus on a port of its own: METRICS_PORT and the ones after it. */
export const METRICS_PORTS = 5;

/** An empty variable counts as not set, as compose files and shells leave them behind. */
const unsetWhenEmpty = (value: unknown) => (value === "" ? undefined : value);

/** A port number in plain digits, 0 for any free one. */
function port(last: number, meaning: string) {
  const allowed = `it must be a whole number from 0 to ${last}, ${meaning}`;
  return z
    .string()
    .regex(/^\d{1,5}$/, allowed)
    .transform(Number)
    .refine((number) => number <= last, allowed);
}

/** A size in megabytes, in plain digits. */
function megabytes(least: number, most: number, meaning: string) {
  const allowed = `it must be a whole number of megabytes from ${least} to ${most}, ${meaning}`;
  return z
    .string()
    .regex(/^\d{1,7}$/, allowed)
    .transform(Number)
    .refine((number) => number >= least && number <= most, allowed);
}

/** The messages complete "The setting X is not usable: …": each says what is allowed. */
const settingsSchema = z.object({
  /** Port of the HTTP API; 0 takes any free one. */
  PORT: z.preprocess(unsetWhenEmpty, port(LAST_PORT, "where 0 takes any free port").default(8480)),
  /** Address that the HTTP API listens on. Only this machine can reach it by default. */
  HOST: z.preprocess(unsetWhenEmpty, z.string().default("127.0.0.1")),
  /** Everything that must survive a restart is below this folder. */
  DATA_DIR: z.preprocess(unsetWhenEmpty, z.string().default(".data")),
  /** Set: this NATS is used (several servers separated by commas) and none is started. */
  NATS_URL: z.preprocess(unsetWhenEmpty, natsAddress().optional()),
  /** Set: this PostgreSQL is used and none is started. */
  DATABASE_URL: z.preprocess(unsetWhenEmpty, databaseAddress.optional()),
  /** Set: the processes answer Prometheus on this port and the four after it; 0 takes any free ports. */
  METRICS_PORT: z.preprocess(
    unsetWhenEmpty,
    port(
      LAST_PORT - METRICS_PORTS + 1,
      "because the four ports after it are used, too; 0 takes any free ports",
    ).optional(),
  ),
  /** Address of the metrics ports. */
  METRICS_HOST: z.preprocess(unsetWhenEmpty, z.string().default("127.0.0.1")),
  /** Below this much free space on the disk of DATA_DIR, in megabytes, what can wait waits; 0 for never. */
  DISK_RESERVE_MB: z.preprocess(unsetWhenEmpty, megabytes(0, 1_048_576, "of the disk of DATA_DIR").default(512)),
  /** All logs together, in megabytes. */
  LOG_MAX_MB: z.preprocess(unsetWhenEmpty, megabytes(20, 1_000_000, "for all logs together").default(200)),
  LOG_LEVEL: z.preprocess(
    unsetWhenEmpty,
    z.enum(LOG_LEVELS, { error: `it must be one of ${LOG_LEVELS.join(", ")}` }).default("info"),
  ),
});

/** The settings of `npm start`, each with its default above. `dataDir` is absolute. */
export interface Settings {
  port: number;
  host: string;
  dataDir: string;
  natsUrl: string | undefined;
  /** For the NATS of `natsUrl`. */
  natsAccess: ServerAccess;
  databaseUrl: string | undefined;
  logLevel: string;
  logMaxBytes: number;
  diskReserveMb: number;
  metricsPort: number | undefined;
  metricsHost: string;
  /** The files with which the gateway speaks TLS. */
  tls: { keyFile: string; certFile: string } | undefined;
}

/** Reads the settings from environment variables, and checks what only a part reads. Throws UserError `invalid_setting` naming the variable; never its value, which may hold a password. */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const parsed = settingsSchema.safeParse(environment);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw unusable(String(issue?.path[0]), issue?.message ?? "it is invalid");
  }
  const values = parsed.data;
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
  throw unusable(
    "METRICS_PORT",
    `metrics take the ports ${ports[0]} to ${ports.at(-1)}, and PORT is ${httpPort}; choose one above PORT, or at least ${METRICS_PORTS} below it`,
  );
}

function unusable(name: string, why: string): UserError {
  return new UserError(`The setting ${name} is not usable: ${why}.`, { code: "invalid_setting" });
}
