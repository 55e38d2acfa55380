/** What an operator sets about the webhook signer. */
import { z } from "zod";
import { oldSecretsKeys, secretsKey } from "../runtime/secrets-key.ts";
import { parseSettings, wholeNumber } from "../runtime/settings.ts";
import { checkedNameServers, ownNetworkBlocks, trustedRoots } from "./http/sender-settings.ts";

export const signerSettingsSchema = z.object({
  /** Encrypts the secrets of webhook endpoints. Without it nothing could be signed, so the service does not start. */
  WEBHOOK_SECRETS_KEY: secretsKey,
  /** What keys of before encrypted is encrypted anew at start. */
  WEBHOOK_SECRETS_OLD_KEYS: oldSecretsKeys,
  /** For development: lets endpoints of `test` consumers be on this machine, by http or https. Never those of `live` ones. */
  WEBHOOK_ALLOW_LOOPBACK: z.stringbool("it must be true or false").default(false),
  /** Name servers, separated by commas, as `address` or `address:port`; the system's when it is not set. */
  WEBHOOK_DNS_SERVERS: z
    .string()
    .optional()
    .transform((text) => text?.split(",").map((part) => part.trim())),
  /** A PEM file with roots that are trusted beside the system's, for targets with a private certificate authority. */
  WEBHOOK_CA_FILE: z.string().optional(),
  /** Public addresses, or blocks of them, that lead to this service or its network; separated by commas. They are no targets. */
  WEBHOOK_OWN_NETWORKS: z
    .string()
    .optional()
    .transform((text) => text?.split(",").map((part) => part.trim())),
  /** How many days a delivery that is done with can be read again. */
  WEBHOOK_RETENTION_DAYS: wholeNumber(1, 365).default(30),
});
export type SignerSettings = z.infer<typeof signerSettingsSchema>;

/** Throws UserError `invalid_setting`, for what the sender cannot use as well. */
export function readSignerSettings(environment: NodeJS.ProcessEnv): SignerSettings {
  const settings = parseSettings(signerSettingsSchema, environment);
  trustedRoots(settings.WEBHOOK_CA_FILE);
  checkedNameServers(settings.WEBHOOK_DNS_SERVERS ?? []);
  ownNetworkBlocks(settings.WEBHOOK_OWN_NETWORKS ?? []);
  return settings;
}
