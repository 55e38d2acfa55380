/** The settings that only the gateway has. All processes share those of services/runtime/settings.ts, such as NATS_URL. */
import { isIP } from "node:net";
import { z } from "zod";
import {
  diskSettingsSchema,
  parseSettings,
  setting,
  sharedSettingsSchema,
  wholeNumber,
} from "../services/runtime/settings.ts";
import type { ProcessDescription } from "../services/runtime/settings-help.ts";
import { checkTlsFiles } from "./tls-files.ts";

/** 24 random bytes as base64 are 32 characters, which cannot be guessed. A longer value than the maximum is no key. */
const PLATFORM_KEY_CHARACTERS = { min: 32, max: 256 } as const;
const PLATFORM_KEY_RULE = `it must be a key of ${PLATFORM_KEY_CHARACTERS.min} to ${PLATFORM_KEY_CHARACTERS.max} random characters`;

const isProxy = (entry: string): boolean => {
  const [address = "", prefix] = entry.split("/");
  const bits = isIP(address) === 6 ? 128 : 32;
  return isIP(address) !== 0 && (prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits));
};

export const gatewaySettingsSchema = z
  .object({
    HOST: setting(z.string().default("127.0.0.1"), {
      meaning: "The address that the API listens on; 0.0.0.0 or :: for all of the machine.",
    }),
    PORT: setting(wholeNumber(0, 65_535).default(8_480), {
      meaning: "The port that the API listens on; 0 takes any free port.",
    }),
    SHARED_PORT: setting(z.stringbool("it must be true or false").default(false), {
      meaning: "Several gateways on one port of one machine, to which Linux spreads the connections.",
    }),
    MAX_CONNECTIONS: setting(wholeNumber(1, 1_000_000).optional(), {
      meaning: "Connections at once, always below the limit of open files.",
      unset: "100000",
    }),
    MAX_CONNECTIONS_PER_ADDRESS: setting(wholeNumber(1, 1_000_000).optional(), {
      meaning: "Connections at once of one address that is no trusted proxy.",
      unset: "1024",
    }),
    TRUSTED_PROXIES: setting(
      z
        .string()
        .default("")
        .transform((text) =>
          text
            .split(",")
            .map((entry) => entry.trim())
            .filter((entry) => entry !== ""),
        )
        .refine(
          (entries) => entries.every(isProxy),
          "it must list addresses or blocks like 10.0.0.0/8, separated by commas",
        ),
      {
        meaning:
          "Addresses and blocks of the proxies whose X-Forwarded-For and X-Forwarded-Proto count, between commas: all lines are read from the right, past these.",
        shared: true,
        unset: "none",
      },
    ),
    PLATFORM_KEY: setting(
      z.preprocess(
        (value) => (value === "" ? undefined : value),
        z
          .string()
          .min(PLATFORM_KEY_CHARACTERS.min, PLATFORM_KEY_RULE)
          .max(PLATFORM_KEY_CHARACTERS.max, PLATFORM_KEY_RULE)
          .regex(/^[\x21-\x7e]+$/, "it must be a key of ASCII characters without spaces")
          .optional(),
      ),
      {
        meaning: `Opens the paths of the platform to the operator: ${PLATFORM_KEY_CHARACTERS.min} to ${PLATFORM_KEY_CHARACTERS.max} random characters.`,
        shared: true,
        secret: true,
        unset: "those paths do not exist",
      },
    ),
    TLS_KEY_FILE: setting(z.string().optional(), {
      meaning: "The private key for TLS at the gateway itself, in PEM without a passphrase.",
      secret: true,
      unset: "no TLS at the gateway",
    }),
    TLS_CERT_FILE: setting(z.string().optional(), {
      meaning: "The certificate for TLS at the gateway itself, in PEM with its chain.",
      unset: "no TLS at the gateway",
    }),
  })
  .refine((values) => (values.TLS_KEY_FILE === undefined) === (values.TLS_CERT_FILE === undefined), {
    path: ["TLS_KEY_FILE"],
    error: "set TLS_KEY_FILE and TLS_CERT_FILE together",
  })
  .transform((values) => ({
    host: values.HOST,
    port: values.PORT,
    sharedPort: values.SHARED_PORT,
    maxConnections: values.MAX_CONNECTIONS,
    maxConnectionsPerAddress: values.MAX_CONNECTIONS_PER_ADDRESS,
    trustedProxies: values.TRUSTED_PROXIES,
    platformKey: values.PLATFORM_KEY,
    tls:
      values.TLS_KEY_FILE === undefined || values.TLS_CERT_FILE === undefined
        ? undefined
        : { keyFile: values.TLS_KEY_FILE, certFile: values.TLS_CERT_FILE },
  }));
/** For `--help` and `docs/settings.md`. */
export const GATEWAY_DESCRIPTION: ProcessDescription = {
  name: "gateway",
  command: "node gateway/main.ts",
  does: "Answers HTTP. Several gateways share the requests behind a load balancer.",
  usesDatabase: false,
  schemas: [sharedSettingsSchema, diskSettingsSchema, gatewaySettingsSchema],
};

export type GatewaySettings = z.infer<typeof gatewaySettingsSchema>;

/** Throws UserError `invalid_setting`, also for TLS files that cannot be used. */
export function readGatewaySettings(environment: NodeJS.ProcessEnv): GatewaySettings {
  const settings = parseSettings(gatewaySettingsSchema, environment);
  if (settings.tls !== undefined) checkTlsFiles(settings.tls);
  return settings;
}
