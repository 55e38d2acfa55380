/** What NATS_URL says: where the servers of the bus are, and how a client presents itself. */

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
