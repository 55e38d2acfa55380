/** The connection to the bus, with the behaviour on failure that every process shares: requests fail at once while it is down. */
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { type ConnectionOptions, connect, errors, type Msg, type NatsConnection } from "nats";
import { UserError } from "../runtime/user-error.ts";
import { BUS_LIMITS } from "./limits.ts";
import { refuseOldServer } from "./server-version.ts";
import { turnPublisher } from "./turn-publisher.ts";

/** What the connection logs; pino fits. */
export interface BusLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface Bus {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  /** False from the moment the connection is lost until it is back. */
  isUp(): boolean;
  /** Calls the listener on each change; returns what ends that. */
  onChange(listener: (isUp: boolean) => void): () => void;
  /** Sends what is outstanding and closes; requests that are under way fail. */
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly url: string;
  /** Shown by the server's monitoring. */
  readonly name: string;
  readonly log: BusLog;
  /** How long to try before giving up; a starting system needs more than a command that a person waits for. */
  readonly patienceMs?: number;
}

/** Why a request failed at once: the bus is not reachable. Whether an earlier attempt took effect is unknown. */
export class BusDownError extends Error {
  readonly code = "bus_down";
  constructor() {
    super("The connection to NATS is down.");
    this.name = "BusDownError";
  }
}

/**
 * Connects; `url` is one or several servers separated by commas, with an optional token or user and password.
 * Throws UserError `nats_unreachable`, `nats_refused` (credentials), `nats_too_old` or `nats_without_jetstream`.
 */
export async function connectBus(options: ConnectOptions): Promise<Bus> {
  const nc = await firstConnection(options);
  try {
    refuseOldServer(nc.info?.version ?? "");
  } catch (error) {
    await nc.close();
    throw error;
  }
  let isUp = true;
  let isClosing = false;
  const listeners = new Set<(isUp: boolean) => void>();
  const change = (next: boolean): void => {
    if (isUp === next || isClosing) return;
    isUp = next;
    if (next) options.log.info({ server: nc.getServer() }, "the bus is back");
    else options.log.warn({}, "the bus is down");
    for (const listener of listeners) listener(next);
  };
  const abandonRequests = failFast(nc, () => isUp);
  void (async () => {
    for await (const status of nc.status()) {
      if (status.type === "disconnect" || status.type === "staleConnection" || status.type === "close") {
        change(false);
        abandonRequests();
      } else if (status.type === "reconnect") change(true);
    }
  })();
  const jsm = await jetstreamManager(nc, { timeout: BUS_LIMITS.manageMs }).catch(async (cause: unknown) => {
    await nc.close();
    throw new UserError("The NATS server has JetStream switched off, which this service needs.", {
      code: "nats_without_jetstream",
      cause,
    });
  });
  return {
    nc,
    js: jetstream(nc, { timeout: BUS_LIMITS.manageMs }),
    jsm,
    isUp: () => isUp,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      isClosing = true;
      if (isUp) await sendOutstanding(nc).catch(() => undefined);
      isUp = false;
      abandonRequests();
      await nc.close();
    },
  };
}

/** Resolves when the server has everything that was published, the replies of this turn of the event loop included. */
async function sendOutstanding(nc: NatsConnection): Promise<void> {
  turnPublisher(nc).flush();
  await nc.flush();
  // What became ready while the server confirmed the rest.
  if (turnPublisher(nc).flush() > 0) await nc.flush();
}

async function firstConnection({ url, name, patienceMs }: ConnectOptions): Promise<NatsConnection> {
  const options = connectionOptions(url, name);
  const deadlineMs = Date.now() + (patienceMs ?? BUS_LIMITS.firstConnectMs);
  for (;;) {
    try {
      return await connect(options);
    } catch (cause) {
      if (cause instanceof errors.AuthorizationError) {
        throw new UserError("The NATS server refuses the credentials in NATS_URL.", { code: "nats_refused", cause });
      }
      if (Date.now() >= deadlineMs) {
        throw new UserError(`No NATS server answers at ${options.servers.join(", ")}.`, {
          code: "nats_unreachable",
          cause,
        });
      }
      await new Promise((resolve) => setTimeout(resolve, BUS_LIMITS.reconnectPauseMs));
    }
  }
}

/** The client does not read credentials from a URL, so they are taken out of it here. */
function connectionOptions(url: string, name: string): ConnectionOptions & { servers: string[] } {
  const servers = url.split(",").map((part) => {
    const text = part.trim();
    return URL.parse(text.includes("://") ? text : `nats://${text}`);
  });
  const [first] = servers;
  if (first === null || first === undefined || servers.some((server) => (server?.hostname ?? "") === "")) {
    throw new UserError("The setting NATS_URL is not a NATS address like nats://token@127.0.0.1:4222.", {
      code: "invalid_setting",
    });
  }
  const user = decodeURIComponent(first.username);
  const pass = decodeURIComponent(first.password);
  return {
    servers: servers.filter((server) => server !== null).map((server) => server.host),
    name,
    ...(first.protocol === "tls:" ? { tls: {} } : {}),
    ...(pass !== "" ? { user, pass } : user !== "" ? { token: user } : {}),
    timeout: BUS_LIMITS.dialMs,
    maxReconnectAttempts: -1,
    // A server that is being restarted may refuse everybody for a moment; giving up would leave a process without a bus.
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: BUS_LIMITS.reconnectPauseMs,
    reconnectJitter: BUS_LIMITS.reconnectJitterMs,
    pingInterval: BUS_LIMITS.pingMs,
    maxPingOut: BUS_LIMITS.unansweredPings,
    // Each request would otherwise capture a stack, which costs more than sending it.
    noAsyncTraces: true,
  };
}

/**
 * The client lets a request wait for its full time-out while disconnected, and drops its outbound buffer at the next
 * dial. Here it fails at once instead, and so do those under way when the connection breaks. Returns what fails them.
 */
function failFast(nc: NatsConnection, isUp: () => boolean): () => void {
  const underWay = new Set<(error: Error) => void>();
  const send = nc.request.bind(nc);
  nc.request = async (subject, payload, options) => {
    if (!isUp()) throw new BusDownError();
    const { promise: abandoned, reject: abandon } = Promise.withResolvers<Msg>();
    underWay.add(abandon);
    try {
      return await Promise.race([send(subject, payload, options), abandoned]);
    } finally {
      underWay.delete(abandon);
    }
  };
  return () => {
    for (const reject of underWay) reject(new BusDownError());
    underWay.clear();
  };
}
