/**
 * The NATS servers of the bus: their addresses, the credentials of a process, the oldest version that it accepts, and the
 * errors about servers that it cannot reach or use. Errors name a server as `host:port`, without credentials.
 */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { JetStreamApiError } from "@nats-io/jetstream";
import { type ConnectionOptions, credsAuthenticator, errors, type NatsConnection } from "nats";
import { cannotBeUsed, faultOf } from "../runtime/fault.ts";
import { UserError } from "../runtime/user-error.ts";

/** Completes "The setting NATS_URL is not usable: …". */
export const NATS_ADDRESS_RULE =
  "it must be an address like nats://token@127.0.0.1:4222, or several separated by commas, with percent escapes for special characters of user and password";

const DEFAULT_PORT = 4222;

interface NatsServerAddress {
  /** A host name, an IPv4 address, or an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
}

interface NatsAddress {
  readonly servers: readonly NatsServerAddress[];
  /** From the first address; all servers of a bus accept the same credentials. */
  readonly credentials: { readonly user?: string; readonly pass?: string; readonly token?: string };
  readonly isTls: boolean;
}

/** Parses addresses separated by commas, each once. Returns undefined when one of them is not an address of a NATS server. */
export function parseNatsAddress(text: string): NatsAddress | undefined {
  const urls = text.split(",").map((part) => URL.parse(part.trim()));
  const [first] = urls;
  if (first === null || first === undefined || !urls.every(isNatsServer)) return undefined;
  try {
    const user = decodeURIComponent(first.username);
    const pass = decodeURIComponent(first.password);
    const servers = urls.map((url) => ({
      host: (url?.hostname ?? "").replace(/^\[|\]$/g, ""),
      port: url?.port ? Number(url.port) : DEFAULT_PORT,
    }));
    return {
      servers: [...new Map(servers.map((server) => [hostAndPort(server), server])).values()],
      credentials: pass !== "" ? { user, pass } : user !== "" ? { token: user } : {},
      isTls: first.protocol === "tls:",
    };
  } catch {
    // The user or the password contains a percent sign that does not begin an escape.
    return undefined;
  }
}

/** `host:port` for the client and for errors, without the credentials. */
export function hostAndPort({ host, port }: NatsServerAddress): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function isNatsServer(url: URL | null): boolean {
  return url !== null && ["nats:", "tls:"].includes(url.protocol) && url.hostname !== "";
}

/** The paths in the settings NATS_CREDENTIALS_FILE, NATS_CA_FILE, NATS_CERT_FILE and NATS_KEY_FILE. */
export interface ServerAccess {
  /** The user's JWT and seed. */
  readonly credentialsFile?: string | undefined;
  /** The certificate authority of the servers; with it the client does not trust Node's authorities. */
  readonly caFile?: string | undefined;
  /** The client's certificate and key: both are set, or neither. */
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

/** The client reads the files each time it connects, so a renewed file takes effect at the next reconnect. */
export function accessOptions(
  { credentialsFile, caFile, certFile, keyFile }: ServerAccess,
  { isTls, hosts }: { readonly isTls: boolean; readonly hosts: readonly string[] },
): Pick<ConnectionOptions, "tls" | "authenticator"> {
  // The client passes options that it does not know, such as `checkServerIdentity`, to Node's TLS.
  const tls = {
    checkServerIdentity: identityCheck(hosts),
    ...(caFile === undefined ? {} : { caFile }),
    ...(certFile === undefined || keyFile === undefined ? {} : { certFile, keyFile }),
  };
  return {
    ...(isTls ? { tls } : {}),
    ...(credentialsFile === undefined ? {} : { authenticator: credsAuthenticator(credentialsReader(credentialsFile)) }),
  };
}

/** Whether the text is that of a `.creds` file. */
export const holdsCredentials = (text: string): boolean =>
  text.includes("-----BEGIN NATS USER JWT-----") && text.includes("-----BEGIN USER NKEY SEED-----");

/**
 * Reads the file at each connection. While the file is away or half written, as during its renewal, it returns the last
 * content: the client closes a connection for good when its credentials cannot be read.
 */
function credentialsReader(path: string): () => Uint8Array {
  let last: Uint8Array | undefined;
  return () => {
    try {
      const bytes = readFileSync(path);
      if (last === undefined || holdsCredentials(bytes.toString())) last = new Uint8Array(bytes);
    } catch (error) {
      if (last === undefined) throw error;
    }
    return last;
  };
}

/**
 * For a server with an IP address the client passes no name to TLS, and TLS then expects a certificate for `localhost`. So
 * this check first accepts a certificate for any IP address in NATS_URL.
 */
function identityCheck(hosts: readonly string[]) {
  const addresses = hosts.filter((host) => isIP(host) !== 0);
  return (host: string, certificate: PeerCertificate): Error | undefined => {
    const isFor = (address: string): boolean => checkServerIdentity(address, certificate) === undefined;
    return addresses.some(isFor) ? undefined : checkServerIdentity(host, certificate);
  };
}

/**
 * From this release on, a replicated stream acknowledges only one of two appends with the same expected sequence, and
 * `sync_interval: always` syncs everything before the server acknowledges it.
 */
export const OLDEST_NATS_SERVER = "2.12.0";

/** Throws UserError `nats_too_old` when the version of a connected server is too old; `server` is `host:port`. */
export function refuseOldServer(version: string, server: string): void {
  if (isNatsServerNewEnough(version)) return;
  throw new UserError(
    `The nats-server at ${server} (NATS_URL) has the version ${version || "unknown"}, and this service needs ${OLDEST_NATS_SERVER} or newer: upgrade it, or set NATS_URL to another one.`,
    { code: "nats_too_old" },
  );
}

/** Whether a process accepts this version, such as `2.15.1` or `2.12.0-RC.1`; false for a text that is not a version. */
export function isNatsServerNewEnough(version: string): boolean {
  const [actual, oldest] = [version, OLDEST_NATS_SERVER].map((text) =>
    text.split(/[.-]/).map((part) => Number.parseInt(part, 10) || 0),
  );
  for (const [place, wanted] of (oldest ?? []).entries()) {
    const number = actual?.[place] ?? 0;
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

/** UserError `nats_refused`: the server accepts none of the credentials. */
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

/** UserError `nats_denied`: the server refuses a subject to the user of this process. Undefined for any other error. */
export function deniedByBus(server: string, error: unknown): UserError | undefined {
  const denied = error instanceof errors.RequestError ? error.cause : error;
  if (!(denied instanceof errors.PermissionViolationError)) return undefined;
  const { operation, subject } = denied;
  const act = operation === "publish" ? "publish" : "subscribe";
  const sentence = `The NATS at ${server} (NATS_URL) cannot be used: its user may not ${act} to ${subject}; allow it everything in its account.`;
  return new UserError(sentence, { code: "nats_denied", cause: error });
}

/** UserError `nats_without_jetstream`, for an error of `jetstreamManager`. */
export function busWithoutJetStream(server: string, cause: unknown): UserError {
  const isOfAccount = cause instanceof Error && cause.cause instanceof JetStreamApiError;
  const rule = isOfAccount
    ? "JetStream is switched off for the account of its user; switch it on for that account in the server's configuration"
    : "JetStream is switched off there; switch it on in the server's configuration";
  const sentence = `The NATS at ${server} (NATS_URL) cannot be used: ${rule}.`;
  return new UserError(sentence, { code: "nats_without_jetstream", cause });
}

/** Whether the server of this connection belongs to no cluster. */
export const isSingle = ({ info }: Pick<NatsConnection, "info">): boolean => info?.cluster === undefined;

/**
 * For a server that runs and stores nothing. UserError `nats_no_quorum` when too few servers of its cluster run, or when it
 * is cut off from them; UserError `nats_stores_nothing` for a single server: its disk was full.
 */
export function busThatStoresNothing(nc: Pick<NatsConnection, "info" | "getServer">, cause: unknown): UserError {
  const server = nc.getServer();
  if (isSingle(nc)) {
    const sentence = `The NATS at ${server} (NATS_URL) runs, but stores nothing, as after its disk was full: free space on that disk, and start nats-server again.`;
    return new UserError(sentence, { code: "nats_stores_nothing", cause });
  }
  const sentence = `The NATS at ${server} (NATS_URL) runs, but reaches no majority of its cluster: start the servers that are down, and check that all reach each other.`;
  return new UserError(sentence, { code: "nats_no_quorum", cause });
}

/** Adds to an error of the client the error code with the same meaning; the client's errors have no code. */
function codedDialError(cause: unknown): unknown {
  if (faultOf(cause) !== undefined || !(cause instanceof Error)) return cause;
  return Object.assign(new Error(cause.message, { cause }), { code: codeOf(cause) });
}

function codeOf(error: Error): string {
  if (error instanceof errors.TimeoutError) return "ETIMEDOUT";
  return error.message.includes("does not support 'tls'") ? "EPROTO" : "nats_no_greeting";
}
