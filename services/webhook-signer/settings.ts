/** What an operator sets about the webhook signer. */
import { z } from "zod";
import { oldSecretsKeys, SECRETS_KEY_MEANING, secretsKey } from "../runtime/secrets-key.ts";
import { parseSettings, setting, wholeNumber } from "../runtime/settings.ts";
import { checkedNameServers, ownNetworkBlocks, trustedRoots } from "./http/sender-settings.ts";

export const signerSettingsSchema = z.object({
  WEBHOOK_SECRETS_KEY: setting(secretsKey, {
    meaning: `Encrypts the secrets that sign webhooks: ${SECRETS_KEY_MEANING}.`,
    shared: true,
    secret: true,
  }),
  WEBHOOK_SECRETS_OLD_KEYS: setting(oldSecretsKeys, {
    meaning:
      "Earlier values of WEBHOOK_SECRETS_KEY, between commas; what they encrypted is encrypted again at the start.",
    shared: true,
    secret: true,
    unset: "none",
  }),
  // Never those of `live` consumers.
  WEBHOOK_ALLOW_LOOPBACK: setting(z.stringbool("it must be true or false").default(false), {
    meaning: "For development: endpoints of `test` consumers may be on this machine, by http or https.",
    shared: true,
  }),
  WEBHOOK_DNS_SERVERS: setting(
    z
      .string()
      .optional()
      .transform((text) => text?.split(",").map((part) => part.trim())),
    {
      meaning: "Name servers that are asked for targets, between commas, as `address` or `address:port`.",
      shared: true,
      unset: "the system's",
    },
  ),
  WEBHOOK_CA_FILE: setting(z.string().optional(), {
    meaning: "A PEM file of authorities that are trusted beside Node's, for targets with a private authority.",
    shared: true,
    unset: "none",
  }),
  WEBHOOK_OWN_NETWORKS: setting(
    z
      .string()
      .optional()
      .transform((text) => text?.split(",").map((part) => part.trim())),
    {
      meaning:
        "Public addresses and blocks that lead back to this installation, between commas: they are refused as targets.",
      shared: true,
      unset: "none",
    },
  ),
  WEBHOOK_RETENTION_DAYS: setting(wholeNumber(1, 365).default(30), {
    meaning: "How many days a delivery that has ended can be read.",
    shared: true,
  }),
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
