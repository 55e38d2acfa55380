/** How a process identifies itself to the bus and whom it trusts there, beside what the address of the bus says. */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { type ConnectionOptions, credsAuthenticator } from "nats";

/** Files of the settings NATS_CREDENTIALS_FILE, NATS_CA_FILE, NATS_CERT_FILE and NATS_KEY_FILE. */
export interface ServerAccess {
  /** The user's JWT and seed. */
  readonly credentialsFile?: string | undefined;
  /** The authority of the servers' certificates; it replaces those that Node trusts. */
  readonly caFile?: string | undefined;
  /** The certificate and key of the client; both or none. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

/** The client reads the files at each dial, so that renewed ones count after a reconnect. */
export function accessOptions(
  { credentialsFile, caFile, certFile, keyFile }: ServerAccess,
  { isTls, hosts }: { readonly isTls: boolean; readonly hosts: readonly string[] },
): Pick<ConnectionOptions, "tls" | "authenticator"> {
  // The client hands what it does not know to TLS.
  const tls = {
    checkServerIdentity: identityOf(hosts),
    ...(caFile === undefined ? {} : { caFile }),
    ...(certFile === undefined || keyFile === undefined ? {} : { certFile, keyFile }),
  };
  return {
    ...(isTls ? { tls } : {}),
    ...(credentialsFile === undefined
      ? {}
      : { authenticator: credsAuthenticator(() => new Uint8Array(readFileSync(credentialsFile))) }),
  };
}

/**
 * The client hands TLS no name for a server that is named by its IP address, and TLS then expects a certificate for
 * `localhost`. A certificate for an address that NATS_URL names is good there.
 */
function identityOf(hosts: readonly string[]) {
  const addresses = hosts.filter((host) => isIP(host) !== 0);
  return (host: string, certificate: PeerCertificate): Error | undefined => {
    const fits = (address: string): boolean => checkServerIdentity(address, certificate) === undefined;
    return addresses.some(fits) ? undefined : checkServerIdentity(host, certificate);
  };
}
