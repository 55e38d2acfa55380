/** What an operator sets about the sender, read once. All throw UserError `invalid_setting`. */
import { X509Certificate } from "node:crypto";
import { Resolver } from "node:dns";
import { readFileSync } from "node:fs";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { UserError } from "../../runtime/user-error.ts";
import { type Block, blocks } from "../target/address-rule.ts";

/**
 * Whose certificates a target may have: the authorities that Node trusts and those of the file. One context serves all
 * connections, because reading the authorities takes longer than a handshake.
 */
export function trustedRoots(caFile: string | undefined): SecureContext {
  return read("WEBHOOK_CA_FILE", "it must name a file of certificates in PEM", () => {
    const own = caFile === undefined ? [] : certificatesOf(readFileSync(caFile, "utf8"));
    return createSecureContext({ ca: [...getCACertificates("default"), ...own], minVersion: "TLSv1.2" });
  });
}

/** The certificates of a PEM text; throws when there is none or one is damaged. OpenSSL would pass over both. */
function certificatesOf(text: string): readonly string[] {
  const found = text.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/g) ?? [];
  if (found.length === 0) throw new Error("The file holds no certificate.");
  return found.map((certificate) => new X509Certificate(certificate).toString());
}

/** The same name servers, when all can be read. */
export function checkedNameServers(servers: readonly string[]): readonly string[] {
  return read("WEBHOOK_DNS_SERVERS", "each must be an address or address:port", () => {
    new Resolver().setServers(servers);
    return servers;
  });
}

export function ownNetworkBlocks(networks: readonly string[]): readonly Block[] {
  return read("WEBHOOK_OWN_NETWORKS", "each must be an address or a block like 192.0.2.0/24", () => blocks(networks));
}

function read<Value>(setting: string, rule: string, value: () => Value): Value {
  try {
    return value();
  } catch (cause) {
    throw new UserError(`The setting ${setting} is not usable: ${rule}.`, { code: "invalid_setting", cause });
  }
}
