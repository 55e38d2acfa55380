import { resolve } from "node:path";
import { z } from "zod";
import { UserError } from "../services/runtime/user-error.ts";

/** An empty variable counts as not set, as compose files and shells leave them behind. */
const unsetWhenEmpty = (value: unknown) => (value === "" ? undefined : value);

const settingsSchema = z.object({
  /** Port of the HTTP API; 0 takes any free one. */
  PORT: z.preprocess(unsetWhenEmpty, z.coerce.number().int().min(0).max(65_535).default(8480)),
  /** Address that the HTTP API listens on. Only this machine can reach it by default. */
  HOST: z.preprocess(unsetWhenEmpty, z.string().default("127.0.0.1")),
  /** Everything that must survive a restart is below this folder. */
  DATA_DIR: z.preprocess(unsetWhenEmpty, z.string().default(".data")),
  /** Set: this NATS is used (several servers separated by commas) and none is started. */
  NATS_URL: z.preprocess(unsetWhenEmpty, z.string().optional()),
  /** Set: this PostgreSQL is used and none is started. */
  DATABASE_URL: z.preprocess(unsetWhenEmpty, z.url({ protocol: /^postgres(ql)?$/ }).optional()),
  /** Set: the processes answer Prometheus on this port and the two after it; 0 takes any free ports. */
  METRICS_PORT: z.preprocess(unsetWhenEmpty, z.coerce.number().int().min(0).max(65_533).optional()),
  LOG_LEVEL: z.preprocess(
    unsetWhenEmpty,
    z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  ),
});

/** The settings of `npm start`, each with its default above. `dataDir` is absolute. */
export interface Settings {
  port: number;
  host: string;
  dataDir: string;
  natsUrl: string | undefined;
  databaseUrl: string | undefined;
  logLevel: string;
  metricsPort: number | undefined;
}

/** Reads the settings from environment variables. Throws UserError `invalid_setting` naming the variable; never its value, which may hold a password. */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const parsed = settingsSchema.safeParse(environment);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const reason = (issue?.message ?? "it is invalid").replace(/\.$/, "");
    throw new UserError(`The setting ${String(issue?.path[0])} is not usable: ${reason}.`, { code: "invalid_setting" });
  }
  const values = parsed.data;
  return {
    port: values.PORT,
    host: values.HOST,
    dataDir: resolve(values.DATA_DIR),
    natsUrl: values.NATS_URL,
    databaseUrl: values.DATABASE_URL,
    logLevel: values.LOG_LEVEL,
    metricsPort: values.METRICS_PORT,
  };
}
