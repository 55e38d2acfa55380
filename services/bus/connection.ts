/** The connection to the bus, as every process uses it: while the connection is down, requests fail at once. */
import { type JetStreamClient, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { type ConnectionOptions, connect, errors, type Msg, type NatsConnection } from "nats";
import type { Registry } from "prom-client";
import type { LineLog } from "../runtime/log.ts";
import { addCount, addGauge } from "../runtime/metrics.ts";
import { backOffMs, within } from "../runtime/repeat.ts";
import { UserError } from "../runtime/user-error.ts";
import { type BusClock, startBusClock } from "./bus-clock.ts";
import { exchangesOf } from "./exchange.ts";
import { withLeaderErrors } from "./leader-errors.ts";
import { BUS_LIMITS } from "./limits.ts";
import {
  accessOptions,
  deniedByBus,
  hostAndPort,
  NATS_ADDRESS_RULE,
  parseNatsAddress,
  refusedByBus,
  refuseOldServer,
  type ServerAccess,
  unreachableBus,
} from "./nats-server.ts";
import { QuorumWatch, reachJetStream, ServerChoice } from "./quorum.ts";
import { ServerLinks } from "./server-links.ts";
import { explainTimeout, TlsOutage } from "./tls-failures.ts";
import { turnPublisher } from "./turn-publisher.ts";

export interface Bus {
  readonly nc: NatsConnection;
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  /** The time that all processes of the installation share. */
  readonly clock: BusClock;
  /** False from the moment the connection is lost until it is back. */
  isUp(): boolean;
  /**
   * Like `isUp`, and in a process with `awaitsQuorum` also false while the bus can store nothing: the server reaches no
   * majority of its cluster, or is a single one whose JetStream does not answer.
   */
  hasQuorum(): boolean;
  /** The names of the servers that are cut off from another one, as far as the process knows (`server-links.ts`). */
  cutOff(): ReadonlySet<string>;
  /** Checks all the time whether servers are cut off, until the returned function is called. */
  watchLinks(): () => void;
  /** Calls the listener on each change; the returned function removes the listener. */
  onChange(listener: (isUp: boolean) => void): () => void;
  /** Sends all published messages, then closes the connection. Requests under way fail. */
  close(): Promise<void>;
}

export interface ConnectOptions {
  readonly url: string;
  /** Files with credentials and certificates, besides the address. */
  readonly access?: ServerAccess | undefined;
  /** Shown by the server's monitoring. */
  readonly name: string;
  readonly log: LineLog;
  /**
   * How long to try to connect (by default `BUS_LIMITS.firstConnectMs`), and then how long to wait for a quorum (by
   * default `BUS_LIMITS.ensureMs`; without a limit when `awaitsQuorum` is set).
   */
  readonly withinMs?: number;
  /**
   * Set by a service: it waits for a quorum without a limit, and later it leaves a server that loses the quorum or that is
   * cut off from another server. A command that a person waits for does neither.
   */
  readonly awaitsQuorum?: boolean;
  /** Ends the attempt. */
  readonly signal?: AbortSignal;
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
 * Throws UserError `nats_unreachable`, `nats_refused` (credentials), `nats_denied`, `nats_too_old`,
 * `nats_without_jetstream`, `nats_no_quorum`, `nats_stores_nothing` or `start_stopped` (the signal was aborted).
 */
export async function connectBus(options: ConnectOptions): Promise<Bus> {
  const dialling = { pauses: new RedialPauses(), choice: new ServerChoice() };
  const { pauses, choice } = dialling;
  const nc = await firstConnection(options, dialling);
  try {
    refuseOldServer(nc.info?.version ?? "", nc.getServer());
  } catch (error) {
    await nc.close();
    throw error;
  }
  let isUp = true;
  let isClosing = false;
  let watch: QuorumWatch | undefined;
  let links: ServerLinks | undefined;
  const outage = new TlsOutage(connectionOptions(options, dialling), options.log);
  const listeners = new Set<(isUp: boolean) => void>();
  const change = (next: boolean): void => {
    if (isUp === next || isClosing) return;
    isUp = next;
    if (next) outage.end();
    else outage.begin();
    // The search for a server with a majority writes other log lines.
    if (!choice.isSearching()) {
      if (next) options.log.info({ server: nc.getServer() }, "the bus is back");
      else options.log.warn({}, "the bus is down");
    }
    for (const listener of listeners) listener(next);
  };
  const abandonRequests = failFast(nc, () => isUp);
  const clock = startBusClock(nc);
  let isRefused = false;
  let isDenied = false;
  /**
   * Logs the first subject that the server denies to the user, once for each connection: it may deny very many
   * subjects.
   */
  const logDenied = (error: Error): void => {
    const denied = deniedByBus(nc.getServer(), error);
    if (denied === undefined || isDenied) return;
    isDenied = true;
    options.log.warn({ errorCode: denied.code }, denied.message);
  };
  /**
   * Logs once that the server refuses the credentials while the bus is down: the password was changed, or a starting
   * server refuses all credentials for a moment.
   */
  const logRefused = (error: Error): void => {
    if (isUp || isClosing || isRefused || !(error instanceof errors.AuthorizationError)) return;
    isRefused = true;
    options.log.warn({}, refusedByBus(connectionOptions(options, dialling), error).message);
  };
  void (async () => {
    for await (const status of nc.status()) {
      if (status.type === "disconnect" || status.type === "staleConnection" || status.type === "close") {
        pauses.lost();
        change(false);
        abandonRequests();
      } else if (status.type === "reconnecting") pauses.dialled();
      else if (status.type === "error") {
        logRefused(status.error);
        logDenied(status.error);
      } else if (status.type === "reconnect") {
        pauses.connected();
        isRefused = false;
        isDenied = false;
        change(true);
        watch?.begin();
        links?.begin();
        void clock.measure();
      }
    }
  })();
  const { log, signal, awaitsQuorum = false } = options;
  const withinMs = awaitsQuorum ? undefined : (options.withinMs ?? BUS_LIMITS.ensureMs);
  await reachJetStream(nc, { log, signal, withinMs, choice }).catch(async (error: unknown) => {
    isClosing = true;
    outage.end();
    clock.stop();
    await nc.close();
    throw error;
  });
  const jsm = await jetstreamManager(nc, { timeout: BUS_LIMITS.manageMs, checkAPI: false });
  await clock.measure();
  if (awaitsQuorum) {
    const deps = { nc, isUp: () => isUp, choice, log };
    const serverLinks = new ServerLinks({ ...deps, dial: dialOne(options, dialling) });
    links = serverLinks;
    watch = new QuorumWatch({ ...deps, onSilence: () => serverLinks.checkSoon() });
    warnOfOneServer(options, nc.info);
  }
  return {
    nc,
    clock,
    js: withLeaderErrors(jetstream(nc, { timeout: BUS_LIMITS.manageMs })),
    jsm,
    isUp: () => isUp,
    hasQuorum: () => isUp && watch?.hasQuorum() !== false,
    cutOff: () => links?.cutOff() ?? new Set(),
    watchLinks: () => links?.watch() ?? (() => undefined),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      isClosing = true;
      watch?.stop();
      links?.stop();
      outage.end();
      clock.stop();
      if (isUp) await within(sendOutstanding(nc), BUS_LIMITS.closeMs).catch(() => undefined);
      isUp = false;
      abandonRequests();
      await nc.close();
    },
  };
}

/** Makes another connection, to one server, which ends when that server does. */
function dialOne(options: ConnectOptions, dialling: Dialling): (server: string) => Promise<NatsConnection> {
  const { reconnectToServer: _, ...shared } = connectionOptions(options, dialling);
  const alone = { ...shared, name: `${options.name} (links)`, reconnect: false, timeout: BUS_LIMITS.linksMs };
  return (server) => connect({ ...alone, servers: [server] });
}

/**
 * Logs a warning when NATS_URL names only one server of a cluster. A process connects to no other one, and cannot leave
 * it, also when the name has the addresses of all servers.
 */
function warnOfOneServer({ url, log }: ConnectOptions, info: NatsConnection["info"]): void {
  const [server, ...others] = parseNatsAddress(url)?.servers ?? [];
  const { cluster, connect_urls: known = [] } = info ?? {};
  if (server === undefined || others.length > 0 || cluster === undefined || known.length < 2) return;
  log.warn({ server: hostAndPort(server), known }, "NATS_URL names one server of its cluster: name all");
}

/** Resolves when the server has all published messages, with the replies of this turn of the event loop. */
async function sendOutstanding(nc: NatsConnection): Promise<void> {
  turnPublisher(nc).flush();
  await nc.flush();
  // Messages that became ready while the server confirmed the others.
  if (turnPublisher(nc).flush() > 0) await nc.flush();
}

interface Dialling {
  readonly pauses: RedialPauses;
  readonly choice: ServerChoice;
}

async function firstConnection(
  { url, access, name, withinMs, signal }: ConnectOptions,
  dialling: Dialling,
): Promise<NatsConnection> {
  const options = connectionOptions({ url, access, name }, dialling);
  const limitMs = withinMs ?? BUS_LIMITS.firstConnectMs;
  const deadlineMs = performance.now() + limitMs;
  const stopped = whenAborted(signal);
  // One attempt dials all servers one after another. If they did not answer, it would take a multiple of the limit.
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => undefined);
  const tooLate = new errors.TimeoutError();
  const timer = setTimeout(() => late.reject(tooLate), Math.max(limitMs, BUS_LIMITS.dialMs));
  let reason: unknown;
  try {
    for (let attempt = 1; ; attempt += 1) {
      const connecting = connect(options);
      try {
        const nc = await Promise.race([connecting, stopped, late.promise]);
        // The client has removed the servers that did not answer. They may be back when it needs another one.
        nc.setServers(options.servers);
        return nc;
      } catch (cause) {
        void connecting.then((nc) => nc.close()).catch(() => undefined);
        if (signal?.aborted === true) throw cause;
        if (cause instanceof errors.AuthorizationError) throw refusedByBus(options, cause);
        // The error of a failed attempt explains more than a time-out.
        if (cause !== tooLate || reason === undefined) reason = cause;
        if (performance.now() >= deadlineMs)
          throw unreachableBus(options.servers, await explainTimeout(options, reason));
        const pause = new Promise((resolve) => setTimeout(resolve, backOffMs(attempt, BUS_LIMITS.redial)));
        await Promise.race([pause, stopped]);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Rejects when the signal is aborted; otherwise it never settles. */
function whenAborted(signal: AbortSignal | undefined): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined);
  const stop = (): void => reject(new UserError("The start was stopped.", { code: "start_stopped" }));
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted === true) stop();
  return promise;
}

/** The pauses between dials of a lost connection. The client reads the same pause several times. */
class RedialPauses {
  #attempts = 0;
  #pauseMs = 0;
  #connectedAtMs = performance.now();

  currentMs(): number {
    return this.#pauseMs;
  }

  dialled(): void {
    this.#attempts += 1;
    this.#pauseMs = backOffMs(this.#attempts, BUS_LIMITS.redial);
  }

  connected(): void {
    this.#connectedAtMs = performance.now();
  }

  /** After a short connection the pauses go on growing: a server may accept every connection and close it at once. */
  lost(): void {
    if (performance.now() - this.#connectedAtMs < BUS_LIMITS.goodConnectionMs) return;
    this.#attempts = 0;
    this.#pauseMs = 0;
  }
}

/** The client does not read credentials from a URL, so this takes them out of it. */
function connectionOptions(
  { url, access = {}, name }: Pick<ConnectOptions, "url" | "access" | "name">,
  { pauses, choice }: Dialling,
): ConnectionOptions & { servers: string[] } {
  const address = parseNatsAddress(url);
  if (address === undefined) {
    throw new UserError(`The setting NATS_URL is not usable: ${NATS_ADDRESS_RULE}.`, { code: "invalid_setting" });
  }
  return {
    servers: address.servers.map(hostAndPort),
    name,
    ...accessOptions(access, { isTls: address.isTls, hosts: address.servers.map(({ host }) => host) }),
    ...address.credentials,
    timeout: BUS_LIMITS.dialMs,
    maxReconnectAttempts: -1,
    // A server names the others of its cluster before it accepts or refuses the credentials. A client that dials those
    // as well never ends when all of them refuse. Their addresses may also be unreachable from here.
    ignoreClusterUpdates: true,
    // A restarting server may refuse all credentials for a moment. A client that stopped then would leave its process without a bus.
    ignoreAuthErrorAbort: true,
    reconnectDelayHandler: () => pauses.currentMs(),
    reconnectToServer: (servers) => choice.choose(servers),
    pingInterval: BUS_LIMITS.pingMs,
    maxPingOut: BUS_LIMITS.unansweredPings,
    // Each request would otherwise capture a stack, which costs more than sending it.
    noAsyncTraces: true,
  };
}

/**
 * The client lets a request wait for its full time-out while disconnected, and drops its outbound buffer at the next
 * dial. This makes the request fail at once instead, and also requests under way when the connection breaks. The
 * returned function fails them.
 */
function failFast(nc: NatsConnection, isUp: () => boolean): () => void {
  const underWay = new Set<(error: Error) => void>();
  const exchanges = exchangesOf(nc);
  exchanges.refuseWhile(() => (isUp() ? undefined : new BusDownError()));
  const send = nc.request.bind(nc);
  nc.request = async (subject, payload, options) => {
    if (!isUp()) throw new BusDownError();
    const { promise: abandoned, reject: abandon } = Promise.withResolvers<Msg>();
    underWay.add(abandon);
    try {
      return await Promise.race([send(subject, payload, options), abandoned]);
    } catch (error) {
      throw deniedByBus(nc.getServer(), error) ?? error;
    } finally {
      underWay.delete(abandon);
    }
  };
  const flush = nc.flush.bind(nc);
  nc.flush = async () => {
    try {
      await flush();
    } catch (error) {
      throw error instanceof errors.RequestError ? new BusDownError() : error;
    }
  };
  return () => {
    for (const reject of underWay) reject(new BusDownError());
    underWay.clear();
    exchanges.fail(new BusDownError());
  };
}

/** Metrics: whether the bus can be used, and how often its connection was lost. */
export function addBusMetrics(metrics: Registry | undefined, bus: Bus): void {
  addGauge(metrics, "bus_up", "1 while the bus can be used: a majority of its servers answers.", () =>
    Number(bus.hasQuorum()),
  );
  addGauge(
    metrics,
    "bus_servers_cut_off",
    "NATS servers that are cut off from another one while a third reaches both, as far as the process knows.",
    () => bus.cutOff().size,
  );
  const losses = addCount(metrics, { name: "bus_losses_total", help: "How often the bus could not be used any more." });
  bus.onChange((isUp) => {
    if (!isUp) losses.add({});
  });
}
