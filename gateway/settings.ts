/** The gateway's own settings; NATS_URL and LOG_LEVEL are shared by all processes. */
import { isIP } from "node:net";
import { z } from "zod";
import { parseSettings, wholeNumber } from "../services/runtime/settings.ts";
import { checkTlsFiles } from "./server/tls-files.ts";

/** 24 random bytes as base64 are 32 characters, which nobody guesses; what is longer than the most is no key. */
const PLATFORM_KEY_CHARACTERS = { min: 32, max: 256 } as const;
const PLATFORM_KEY_RULE = `it must be a key of ${PLATFORM_KEY_CHARACTERS.min} to ${PLATFORM_KEY_CHARACTERS.max} random characters`;

const isProxy = (entry: string): boolean => {
  const [address = "", prefix] = entry.split("/");
  const bits = isIP(address) === 6 ? 128 : 32;
  return isIP(address) !== 0 && (prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits));
};

export const gatewaySettingsSchema = z
  .object({
    HOST: z.string().default("127.0.0.1"),
    PORT: wholeNumber(0, 65_535).default(8_080),
    /** Several gateways on one port; the kernel spreads the connections (Linux). */
    SHARED_PORT: z.stringbool("it must be true or false").default(false),
    /** Connections at once, in all and of one address; there may be fewer below the limit of open files (`server/limits.ts`). */
    MAX_CONNECTIONS: wholeNumber(1, 1_000_000).optional(),
    MAX_CONNECTIONS_PER_ADDRESS: wholeNumber(1, 1_000_000).optional(),
    /** Addresses and CIDR ranges of proxies whose X-Forwarded-For and X-Forwarded-Proto count, separated by commas. */
    TRUSTED_PROXIES: z
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
    /** Opens the endpoints of the platform to whoever operates the installation; without it there are none. */
    PLATFORM_KEY: z.preprocess(
      (value) => (value === "" ? undefined : value),
      z
        .string()
        .min(PLATFORM_KEY_CHARACTERS.min, PLATFORM_KEY_RULE)
        .max(PLATFORM_KEY_CHARACTERS.max, PLATFORM_KEY_RULE)
        .regex(/^[\x21-\x7e]+$/, "it must be a key of ASCII characters without spaces")
        .optional(),
    ),
    /** PEM files for TLS at the gateway itself; both or none. */
    TLS_KEY_FILE: z.string().optional(),
    TLS_CERT_FILE: z.string().optional(),
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
export type GatewaySettings = z.infer<typeof gatewaySettingsSchema>;

/** Throws UserError `invalid_setting`, for files of TLS that cannot be used as well. */
export function readGatewaySettings(environment: NodeJS.ProcessEnv): GatewaySettings {
  const settings = parseSettings(gatewaySettingsSchema, environment);
  if (settings.tls !== undefined) checkTlsFiles(settings.tls);
  return settings;
}
