/**
 * The NATS servers of the bus: where they are and how a process identifies itself to them, which versions may be used, and
 * the sentences about servers that cannot be reached or used. Sentences name servers as `host:port`, without credentials.
 */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { type ConnectionOptions, credsAuthenticator, errors } from "nats";
import { cannotBeUsed, faultOf } from "../runtime/fault.ts";
import { UserError } from "../runtime/user-error.ts";

/** Completes "The setting NATS_URL is not usable: …". */
export const NATS_ADDRESS_RULE = "it must be an address like nats://token@127.0.0.1:4222, several between commas";

const DEFAULT_PORT = 4222;

export interface NatsServerAddress {
  /** A name, or an address of IPv4 or IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
}

export interface NatsAddress {
  readonly servers: readonly NatsServerAddress[];
  /** The first server's: all servers of a bus take the same. */
  readonly credentials: { readonly user?: string; readonly pass?: string; readonly token?: string };
  readonly isTls: boolean;
}

/** Reads the servers between commas; undefined when one of them is no address of a NATS server. */
export function parseNatsAddress(text: string): NatsAddress | undefined {
  const urls = text.split(",").map((part) => URL.parse(part.trim()));
  const [first] = urls;
  if (first === null || first === undefined || !urls.every(isNatsServer)) return undefined;
  try {
    const user = decodeURIComponent(first.username);
    const pass = decodeURIComponent(first.password);
    return {
      servers: urls.map((url) => ({
        host: (url?.hostname ?? "").replace(/^\[|\]$/g, ""),
        port: url?.port ? Number(url.port) : DEFAULT_PORT,
      })),
      credentials: pass !== "" ? { user, pass } : user !== "" ? { token: user } : {},
      isTls: first.protocol === "tls:",
    };
  } catch {
    // A percent sign that begins no escape.
    return undefined;
  }
}

/** `host:port`, for the client and for sentences: never the credentials. */
export function hostAndPort({ host, port }: NatsServerAddress): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function isNatsServer(url: URL | null): boolean {
  return url !== null && ["nats:", "tls:"].includes(url.protocol) && url.hostname !== "";
}

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

/**
 * From this release on a replicated stream never acknowledges two conditional appends, and `sync_interval: always` covers
 * everything that is acknowledged.
 */
export const OLDEST_NATS_SERVER = "2.12.0";

/** Throws UserError `nats_too_old` for the version that a connected server names; `server` as `host:port`. */
export function refuseOldServer(version: string, server: string): void {
  if (isNatsServerNewEnough(version)) return;
  throw new UserError(
    `The nats-server at ${server} (NATS_URL) has the version ${version || "unknown"}, and this service needs ${OLDEST_NATS_SERVER} or newer: upgrade it, or set NATS_URL to another one.`,
    { code: "nats_too_old" },
  );
}

/** Whether this version, such as `2.15.1` or `2.12.0-RC.1`, may be used. A text that is no version may not. */
export function isNatsServerNewEnough(version: string): boolean {
  const [have, least] = [version, OLDEST_NATS_SERVER].map((text) =>
    text.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0),
  );
  for (const [place, wanted] of (least ?? []).entries()) {
    const number = have?.[place] ?? 0;
    if (number !== wanted) return number > wanted;
  }
  return true;
}

/** UserError `nats_unreachable`. */
export function unreachableBus(servers: readonly string[], cause: unknown): UserError {
  const subject = `The NATS at ${servers.join(", ")} (NATS_URL)`;
  const sentence = cannotBeUsed(subject, codedDialError(cause)).replace("NODE_EXTRA_CA_CERTS", "NATS_CA_FILE");
  return new UserError(sentence, { code: "nats_unreachable", cause });
}

interface Refused {
  readonly servers: readonly string[];
  readonly user?: unknown;
  readonly token?: unknown;
  readonly authenticator?: unknown;
}

/** UserError `nats_refused`: the server takes none of the credentials. */
export function refusedByBus({ servers, user, token, authenticator }: Refused, cause: unknown): UserError {
  const rule =
    authenticator !== undefined
      ? "the server refuses the credentials of NATS_CREDENTIALS_FILE; write the file again for a user that the account knows"
      : user === undefined && token === undefined
        ? "the server asks for credentials and there are none; name them as in nats://user:password@127.0.0.1:4222, or set NATS_CREDENTIALS_FILE"
        : "the server refuses the user, the password or the token of the address; correct them";
  const sentence = `The NATS at ${servers.join(", ")} (NATS_URL) cannot be used: ${rule}.`;
  return new UserError(sentence, { code: "nats_refused", cause });
}

/** UserError `nats_without_jetstream`. */
export function busWithoutJetStream(server: string, cause: unknown): UserError {
  const sentence = `The NATS at ${server} (NATS_URL) cannot be used: JetStream is switched off there; switch it on in the server's configuration.`;
  return new UserError(sentence, { code: "nats_without_jetstream", cause });
}

/** UserError `nats_no_quorum`: the server runs, and too few of the others do. */
export function busWithoutQuorum(server: string, cause: unknown): UserError {
  const sentence = `The NATS at ${server} (NATS_URL) runs, and its cluster has no quorum: start most of its servers, and see that they reach each other.`;
  return new UserError(sentence, { code: "nats_no_quorum", cause });
}

/** The client's own errors have no code; they get the one that says the same. */
function codedDialError(cause: unknown): unknown {
  if (faultOf(cause) !== undefined || !(cause instanceof Error)) return cause;
  return Object.assign(new Error(cause.message, { cause }), { code: codeOf(cause) });
}

function codeOf(error: Error): string {
  if (error instanceof errors.TimeoutError) return "ETIMEDOUT";
  return error.message.includes("does not support 'tls'") ? "EPROTO" : "nats_no_greeting";
}
