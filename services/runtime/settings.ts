/** Settings come from environment variables, parsed once at start; defaults stand beside the schema that uses them. */
import { z } from "zod";
import { NATS_ADDRESS_RULE, parseNatsAddress } from "../bus/nats-address.ts";
import { LOG_LEVELS } from "./log.ts";
import { UserError } from "./user-error.ts";

/** An empty variable counts as not set, as compose files and shells leave them behind. */
function withoutEmpty(environment: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
  );
}

/** Parses the environment. Throws UserError `invalid_setting` naming the variable, never its value, which may be a secret. */
export function parseSettings<TSchema extends z.ZodType>(
  schema: TSchema,
  environment: NodeJS.ProcessEnv,
): z.infer<TSchema> {
  const parsed = schema.safeParse(withoutEmpty(environment));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const reason = (issue?.message ?? "it is invalid").replace(/\.$/, "");
  throw new UserError(`The setting ${String(issue?.path[0])} is not usable: ${reason}.`, { code: "invalid_setting" });
}

/** A setting that is a number in plain digits; its message completes "The setting X is not usable: …". */
export function wholeNumber(least: number, most: number) {
  const error = `it must be a whole number from ${least} to ${most}`;
  return z.coerce.number({ error }).int({ error }).min(least, { error }).max(most, { error });
}

/** The address of one NATS server or of several between commas. */
export function natsAddress(whenMissing?: string) {
  return z
    .string({ error: whenMissing ?? NATS_ADDRESS_RULE })
    .refine((text) => parseNatsAddress(text) !== undefined, NATS_ADDRESS_RULE);
}

const DATABASE_ADDRESS_RULE = "it must be an address like postgres://user:password@host:5432/database";

/** The address of a PostgreSQL database; a socket's folder is its `host` parameter. */
export const databaseAddress = z.url({ protocol: /^postgres(ql)?$/, error: DATABASE_ADDRESS_RULE }).refine((text) => {
  const url = URL.parse(text);
  return url !== null && (url.hostname !== "" || url.searchParams.has("host"));
}, DATABASE_ADDRESS_RULE);

/** The address of a web server; the example is part of the sentence about one that is unusable. */
export function webAddress(example: string) {
  return z.url({ protocol: /^https?$/, error: `it must be an address like ${example}` });
}

/** What every process of this product reads; each service adds its own. */
export const sharedSettingsSchema = z
  .object({
    NATS_URL: natsAddress("it is needed and not set"),
    /** Copies of each stream; more than one needs a cluster of as many servers. */
    NATS_REPLICAS: wholeNumber(1, 5).default(1),
    /** Only services with a database need it. */
    DATABASE_URL: databaseAddress.optional(),
    LOG_LEVEL: z.enum(LOG_LEVELS, { error: `it must be one of ${LOG_LEVELS.join(", ")}` }).default("info"),
    /** Set: the process answers `GET /metrics` there; 0 takes any free port. */
    METRICS_PORT: wholeNumber(0, 65_535).optional(),
    METRICS_HOST: z.string().default("127.0.0.1"),
  })
  .transform((values) => ({
    natsUrl: values.NATS_URL,
    natsReplicas: values.NATS_REPLICAS,
    databaseUrl: values.DATABASE_URL,
    logLevel: values.LOG_LEVEL,
    ...(values.METRICS_PORT === undefined ? {} : { metrics: { host: values.METRICS_HOST, port: values.METRICS_PORT } }),
  }));
export type SharedSettings = z.infer<typeof sharedSettingsSchema>;

const MEGABYTE = 1_024 ** 2;

/** What a process reads that watches a disk (`disk-watch.ts`). */
export const diskSettingsSchema = z
  .object({
    /** The folder whose disk is watched. Unset where the data of NATS and PostgreSQL is on other machines. */
    DISK_FOLDER: z.string().optional(),
    /** Space for the collections of hours, and for PostgreSQL to write its log while somebody frees more. At most a terabyte. */
    DISK_RESERVE_MB: wholeNumber(0, MEGABYTE).default(512),
  })
  .transform((values) => ({ folder: values.DISK_FOLDER, reserveBytes: values.DISK_RESERVE_MB * MEGABYTE }));

/** The database's address for a service that cannot do without. Throws UserError `invalid_setting`. */
export function requireDatabaseUrl(settings: SharedSettings): string {
  if (settings.databaseUrl !== undefined) return settings.databaseUrl;
  throw new UserError("The setting DATABASE_URL is needed by this service and is not set.", {
    code: "invalid_setting",
  });
}
