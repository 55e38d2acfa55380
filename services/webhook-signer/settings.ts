/** What an operator sets about the webhook signer, and the sender's options that are made from it. */
import { X509Certificate } from "node:crypto";
import { Resolver } from "node:dns";
import { readFileSync } from "node:fs";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { z } from "zod";
import { oldSecretsKeys, SECRETS_KEY_MEANING, secretsKey } from "../runtime/keyring.ts";
import { parseSettings, setting, wholeNumber } from "../runtime/settings.ts";
import { UserError } from "../runtime/user-error.ts";
import { type Block, blocks } from "./target/address-rule.ts";

const list = z
  .string()
  .optional()
  .transform((text) => text?.split(",").map((part) => part.trim()));

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
  // Endpoints of `live` consumers never may.
  WEBHOOK_ALLOW_LOOPBACK: setting(z.stringbool("it must be true or false").default(false), {
    meaning: "For development: endpoints of `test` consumers may be on this machine, by http or https.",
    shared: true,
  }),
  WEBHOOK_DNS_SERVERS: setting(list, {
    meaning: "Name servers that are asked for targets, between commas, as `address` or `address:port`.",
    shared: true,
    unset: "the system's",
  }),
  WEBHOOK_CA_FILE: setting(z.string().optional(), {
    meaning: "A PEM file of authorities that are trusted beside Node's, for targets with a private authority.",
    shared: true,
    unset: "none",
  }),
  WEBHOOK_OWN_NETWORKS: setting(list, {
    meaning:
      "Public addresses and blocks that lead back to this installation, between commas: they are refused as targets.",
    shared: true,
    unset: "none",
  }),
  WEBHOOK_RETENTION_DAYS: setting(wholeNumber(1, 365).default(30), {
    meaning: "How many days a delivery that has ended can be read.",
    shared: true,
  }),
});
type SignerSettings = z.infer<typeof signerSettingsSchema>;

/** Throws UserError `invalid_setting`, for what the sender cannot use as well. */
export function readSignerSettings(environment: NodeJS.ProcessEnv): SignerSettings {
  const settings = parseSettings(signerSettingsSchema, environment);
  trustedRoots(settings.WEBHOOK_CA_FILE);
  checkedNameServers(settings.WEBHOOK_DNS_SERVERS ?? []);
  ownNetworkBlocks(settings.WEBHOOK_OWN_NETWORKS ?? []);
  return settings;
}

/**
 * The authorities whose certificates a target may have: those that Node trusts, and those of the file. One context
 * serves all connections, because reading the authorities takes longer than a handshake.
 */
export function trustedRoots(caFile: string | undefined): SecureContext {
  return read("WEBHOOK_CA_FILE", "it must name a file of certificates in PEM", () => {
    const own = caFile === undefined ? [] : certificatesOf(readFileSync(caFile, "utf8"));
    return createSecureContext({ ca: [...getCACertificates("default"), ...own], minVersion: "TLSv1.2" });
  });
}

/** The certificates of a PEM text; throws when there is none or one is damaged. OpenSSL would ignore both. */
function certificatesOf(text: string): readonly string[] {
  const found = text.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g) ?? [];
  if (found.length === 0) throw new Error("The file holds no certificate.");
  return found.map((certificate) => new X509Certificate(certificate).toString());
}

/** Returns the name servers when all are valid. */
export function checkedNameServers(servers: readonly string[]): readonly string[] {
  return read("WEBHOOK_DNS_SERVERS", "each must be an address or address:port", () => {
    new Resolver().setServers(servers);
    return servers;
  });
}

export function ownNetworkBlocks(networks: readonly string[]): readonly Block[] {
  return read("WEBHOOK_OWN_NETWORKS", "each must be an address or a block like 192.0.2.0/24", () => blocks(networks));
}

function read<Value>(name: string, rule: string, value: () => Value): Value {
  try {
    return value();
  } catch (cause) {
    throw new UserError(`The setting ${name} is not usable: ${rule}.`, { code: "invalid_setting", cause });
  }
}
