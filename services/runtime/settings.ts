/** Settings come from environment variables, which a process parses once at its start. Defaults are in the schemas. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { holdsCredentials, NATS_ADDRESS_RULE, parseNatsAddress, type ServerAccess } from "../bus/nats-server.ts";
import { reasonOf } from "./fault.ts";
import { LOG_LEVELS } from "./log.ts";
import { UserError } from "./user-error.ts";

/** An empty variable counts as not set: compose files and shells often leave empty variables. */
function withoutEmpty(environment: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== ""),
  );
}

/**
 * Parses the environment. Throws UserError `invalid_setting` with the variable's name, never with its value, which may
 * be a secret.
 */
export function parseSettings<TSchema extends z.ZodType>(
  schema: TSchema,
  environment: NodeJS.ProcessEnv,
): z.infer<TSchema> {
  const parsed = schema.safeParse(withoutEmpty(environment));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const name = String(issue?.path[0]);
  const reason = (issue?.message ?? "it is invalid").replace(/\.$/, "");
  // A rule about several settings has the path of one of them, which need not be missing.
  const isMissing = issue?.code !== "custom" && !Object.hasOwn(withoutEmpty(environment), name);
  throw new UserError(isMissing ? `Set ${name}: ${reason}.` : `The setting ${name} is not usable: ${reason}.`, {
    code: "invalid_setting",
  });
}

/**
 * The explanation of a setting in `--help` and `docs/settings.md`, besides its name and its default
 * (`settings-help.ts`).
 */
export interface SettingFacts {
  /** One or two sentences: what it is, without the default. */
  readonly meaning: string;
  /** All processes that read it must have the same value. */
  readonly shared?: true;
  /** Only the operator of the installation may know its value. */
  readonly secret?: true;
  /** The effect when it is not set and has no default: completes "not set: …". */
  readonly unset?: string;
}

/** One setting of a process. Each key of a settings schema uses this, so that each has an explanation. */
export function setting<TSchema extends z.ZodType>(schema: TSchema, facts: SettingFacts): TSchema {
  return schema.meta({ ...facts });
}

/** A setting that is a whole number. Its message completes "The setting X is not usable: …". */
export function wholeNumber(least: number, most: number) {
  const error = `it must be a whole number from ${least} to ${most}`;
  return z.coerce.number({ error }).int({ error }).min(least, { error }).max(most, { error });
}

/** The address of one NATS server, or several addresses separated by commas. */
export function natsAddress() {
  return z
    .string({ error: NATS_ADDRESS_RULE })
    .refine((text) => parseNatsAddress(text) !== undefined, NATS_ADDRESS_RULE);
}

const DATABASE_ADDRESS_RULE = "it must be an address like postgres://user:password@host:5432/database";

/** The address of a PostgreSQL database. For a Unix socket, its folder is the `host` parameter. */
export const databaseAddress = z.url({ protocol: /^postgres(ql)?$/, error: DATABASE_ADDRESS_RULE }).refine((text) => {
  const url = URL.parse(text);
  return url !== null && (url.hostname !== "" || url.searchParams.has("host"));
}, DATABASE_ADDRESS_RULE);

/** The address of a web server. The example is part of the error sentence. */
export function webAddress(example: string) {
  return z.url({ protocol: /^https?$/, error: `it must be an address like ${example}` });
}

/**
 * A setting with the path of a file that the process can read. Its users read the file at each use, so a renewed file
 * takes effect.
 */
function readableFile(holds: (text: string) => boolean, rule: string) {
  return z.string().check((context) => {
    const { value: path, issues } = context;
    try {
      if (!holds(readFileSync(path, "utf8"))) issues.push({ code: "custom", input: path, message: rule });
    } catch (error) {
      issues.push({ code: "custom", input: path, message: `the file cannot be read: ${reasonOf(error)}` });
    }
  });
}

const certificateFile = readableFile(
  (text) => text.includes("-----BEGIN CERTIFICATE-----"),
  "it must name a file with a certificate in PEM",
);
const keyFile = readableFile(
  (text) => text.includes("PRIVATE KEY-----"),
  "it must name a file with a private key in PEM",
);
const credentialsFile = readableFile(holdsCredentials, "it must name a file of NATS credentials, as nsc writes it");

function isKeyOf(key: string | undefined, certificate: string | undefined): boolean {
  if (key === undefined || certificate === undefined) return true;
  try {
    return new X509Certificate(readFileSync(certificate)).checkPrivateKey(createPrivateKey(readFileSync(key)));
  } catch {
    return false;
  }
}

/** How a process identifies itself to the bus, and which authority it trusts there. */
const busAccessFields = {
  NATS_CREDENTIALS_FILE: setting(credentialsFile.optional(), {
    meaning: "A file with the user's JWT and seed (`.creds`), for a NATS that has accounts by JWT.",
    secret: true,
    unset: "the user, password or token in NATS_URL counts",
  }),
  NATS_CA_FILE: setting(certificateFile.optional(), {
    meaning:
      "The certificate of the authority that signs the NATS servers' certificates, in PEM. It replaces the system's.",
    unset: "the authorities that Node trusts",
  }),
  NATS_CERT_FILE: setting(certificateFile.optional(), {
    meaning: "The certificate by which the process identifies itself to NATS, in PEM, where the servers demand one.",
    unset: "none",
  }),
  NATS_KEY_FILE: setting(keyFile.optional(), {
    meaning: "The private key of NATS_CERT_FILE, in PEM without a passphrase.",
    secret: true,
    unset: "none",
  }),
};

const busAccessOf = (values: z.infer<z.ZodObject<typeof busAccessFields>>): ServerAccess => ({
  credentialsFile: values.NATS_CREDENTIALS_FILE,
  caFile: values.NATS_CA_FILE,
  certFile: values.NATS_CERT_FILE,
  keyFile: values.NATS_KEY_FILE,
});

/** These settings alone, for a command that gets the address of the bus in another way. */
export const busAccessSchema = z.object(busAccessFields).transform(busAccessOf);

/** The settings of every process. Each service adds its own settings. */
export const sharedSettingsSchema = z
  .object({
    NATS_URL: setting(natsAddress(), {
      meaning:
        "All servers of the bus, between commas: nats://user:password@host:4222, nats://token@host:4222, or with tls:// in place of nats://. The process goes to no others.",
      shared: true,
      secret: true,
    }),
    ...busAccessFields,
    DATABASE_URL: setting(databaseAddress.optional(), {
      meaning: "The PostgreSQL of the installation: postgres://user:password@host:5432/database.",
      shared: true,
      secret: true,
      unset: "a service that needs it does not start",
    }),
    DATABASE_CONNECTIONS: setting(wholeNumber(1, 1_000).optional(), {
      meaning:
        "The most connections to PostgreSQL that this process opens; its services divide them. The sum over all processes must stay below PostgreSQL's max_connections.",
      unset: "as many as its services can use",
    }),
    LOG_LEVEL: setting(z.enum(LOG_LEVELS, { error: `it must be one of ${LOG_LEVELS.join(", ")}` }).default("info"), {
      meaning: `The least level of lines in the log: ${LOG_LEVELS.join(", ")}.`,
    }),
    METRICS_PORT: setting(wholeNumber(0, 65_535).optional(), {
      meaning:
        "The port of /metrics, /healthz and /readyz of this process, never to be reached from outside; 0 takes any free port.",
      unset: "none of them",
    }),
    METRICS_HOST: setting(z.string().default("127.0.0.1"), { meaning: "The address that METRICS_PORT listens on." }),
  })
  .refine((values) => (values.NATS_CERT_FILE === undefined) === (values.NATS_KEY_FILE === undefined), {
    path: ["NATS_CERT_FILE"],
    error: "set NATS_CERT_FILE and NATS_KEY_FILE together",
  })
  .refine((values) => isKeyOf(values.NATS_KEY_FILE, values.NATS_CERT_FILE), {
    path: ["NATS_KEY_FILE"],
    error: "it does not belong to the certificate in NATS_CERT_FILE, or needs a passphrase",
  })
  .refine((values) => values.NATS_CA_FILE === undefined || values.NATS_URL.startsWith("tls:"), {
    path: ["NATS_CA_FILE"],
    error: "it needs tls:// in NATS_URL",
  })
  .transform((values) => ({
    natsUrl: values.NATS_URL,
    natsAccess: busAccessOf(values),
    databaseUrl: values.DATABASE_URL,
    databaseConnections: values.DATABASE_CONNECTIONS,
    logLevel: values.LOG_LEVEL,
    ...(values.METRICS_PORT === undefined ? {} : { metrics: { host: values.METRICS_HOST, port: values.METRICS_PORT } }),
  }));
/** `natsAccess` is optional: the address of the bus may be enough. */
export type SharedSettings = Omit<z.infer<typeof sharedSettingsSchema>, "natsAccess" | "databaseConnections"> & {
  readonly natsAccess?: ServerAccess | undefined;
  readonly databaseConnections?: number | undefined;
};

const MEGABYTE = 1_024 ** 2;

/** The settings of a process that watches a disk (`disk-watch.ts`). */
export const diskSettingsSchema = z
  .object({
    DISK_FOLDER: setting(z.string().optional(), {
      meaning:
        "The folder whose disk the process watches: that of NATS or PostgreSQL, where it runs on the same machine.",
      unset: "no disk is watched",
    }),
    // The default is enough for hours of collections, and for PostgreSQL's log while a person frees space. The maximum
    // is a terabyte.
    DISK_RESERVE_MB: setting(wholeNumber(0, MEGABYTE).default(512), {
      meaning:
        "The reserve on that disk, in megabytes: with less free space the process defers work that can wait; 0 for never.",
    }),
  })
  .transform((values) => ({ folder: values.DISK_FOLDER, reserveBytes: values.DISK_RESERVE_MB * MEGABYTE }));

/** The database's address, for a service that needs a database. Throws UserError `invalid_setting`. */
export function requireDatabaseUrl(settings: SharedSettings): string {
  if (settings.databaseUrl !== undefined) return settings.databaseUrl;
  throw new UserError(`Set DATABASE_URL: ${DATABASE_ADDRESS_RULE}.`, { code: "invalid_setting" });
}
