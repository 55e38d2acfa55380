/**
 * Creates and updates the streams and buckets of `streams.ts`, and checks them. Only `migrate` creates and updates
 * them: a service with a wrong setting could otherwise remove their copies. Each service checks them at its start.
 *
 * A cluster refuses requests during an election, and until all its servers have joined. So this repeats each request
 * until the time is over.
 */
import { setTimeout as delay } from "node:timers/promises";
import { JetStreamApiCodes, JetStreamApiError, type StreamInfo } from "@nats-io/jetstream";
import { errors } from "nats";
import type { LineLog } from "../runtime/log.ts";
import { UserError } from "../runtime/user-error.ts";
import { type Bus, BusDownError } from "./connection.ts";
import { BUS_LIMITS } from "./limits.ts";
import { busThatStoresNothing, isSingle } from "./nats-server.ts";
import { QuorumWait } from "./quorum.ts";
import {
  type BusLayout,
  firstDifference,
  LAYOUT_VERSION,
  layoutOf,
  type MigratedLayout,
  type WantedConfig,
  wantedConfigs,
} from "./stream-config.ts";
import { INSTALLATION, STATEMENT_FILES } from "./streams.ts";

/** The stream has more copies than there are running servers with JetStream and free space. */
const NO_SUITABLE_PEERS = 10_005;
/** The stream has more than one copy, and the server has no cluster. */
const NO_CLUSTER = 10_074;
/** The account or the server has no more streams, disk or memory left. */
const NO_SPACE_CODES: ReadonlySet<number> = new Set([10_002, 10_023, 10_027, 10_028, 10_047]);
/** Errors that no longer occur when the cluster has elected its leaders and all its servers have joined. */
const PASSING_CODES: ReadonlySet<number> = new Set([
  // A server has not joined yet.
  NO_SUITABLE_PEERS,
  // JetStream is temporarily unavailable, the server is not the leader, the stream is offline.
  10_008,
  10_009,
  10_118,
  // Another program has created the same stream at the same moment.
  10_058,
]);

/** `migrate` creates this stream before all others. Like every stream it has the layout in its metadata. */
const FIRST = `KV_${INSTALLATION.name}`;
const FILES = `OBJ_${STATEMENT_FILES.name}`;

export interface EnsureOptions extends BusLayout, Pick<InsistOptions, "signal" | "withinMs"> {}

/**
 * Creates or updates all streams and buckets. Resolves when each has a leader and all its copies are complete. Throws what
 * `insist` throws.
 */
export async function ensureStreams(bus: Bus, options: EnsureOptions): Promise<void> {
  await ensureConfigs(bus, wantedConfigs(options), options);
}

/** Creates or updates the bucket that names the installation, alone. */
export async function ensureInstallationBucket(bus: Bus, options: EnsureOptions): Promise<void> {
  await ensureConfigs(bus, wantedConfigs(options).slice(0, 1), options);
}

/**
 * The layout that `migrate` has written earlier; undefined for a new bus. A bus may have lost any of its streams, and the
 * others still have the layout. The files do not count: they outlive an emptied bus (`emptyBus`). Throws what
 * `insist` throws.
 */
export async function readLayout(
  bus: Bus,
  options: Pick<InsistOptions, "signal"> = {},
): Promise<MigratedLayout | undefined> {
  const layoutIn = async (name: string) => layoutOf((await streamInfo(bus, name))?.config.metadata);
  return await insist(bus, FIRST, options, async () => {
    const layout = await layoutIn(FIRST);
    if (layout !== undefined) return layout;
    for await (const name of bus.jsm.streams.names()) {
      const another = name === FILES ? undefined : await layoutIn(name);
      if (another !== undefined) return another;
    }
    return undefined;
  });
}

async function ensureConfigs(bus: Bus, configs: readonly WantedConfig[], options: EnsureOptions): Promise<void> {
  for (const config of configs) await insist(bus, config.name, options, () => ensure(bus, config));
  for (const { name } of configs) await insist(bus, name, options, () => requireComplete(bus, name));
}

/** The stream's info from its leader; undefined when there is no such stream. */
async function streamInfo(bus: Pick<Bus, "jsm">, name: string): Promise<StreamInfo | undefined> {
  return await bus.jsm.streams.info(name).catch((error: unknown) => {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return undefined;
    throw error;
  });
}

/** Whether a later attempt may succeed, because the request itself is not wrong. */
function isPassing(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return PASSING_CODES.has(error.code);
  return error instanceof IncompleteError || error instanceof errors.TimeoutError || error instanceof BusDownError;
}

/** Copies of the stream are not complete yet. */
class IncompleteError extends Error {
  /** The servers that have these copies. */
  readonly servers: readonly string[];

  constructor(stream: string, servers: readonly string[]) {
    super(`The copies of ${stream} are not complete yet.`);
    this.servers = servers;
  }
}

async function ensure(bus: Bus, config: WantedConfig): Promise<void> {
  const known = await streamInfo(bus, config.name);
  if (known === undefined) await bus.jsm.streams.add(config);
  else if (firstDifference(known.config, config) !== undefined) await bus.jsm.streams.update(config.name, config);
}

async function requireComplete(bus: Bus, name: string): Promise<void> {
  const cluster = (await bus.jsm.streams.info(name)).cluster;
  // A server without a cluster leaves this out.
  if (cluster === undefined) return;
  const behind = (cluster.replicas ?? []).filter(({ current }) => !current).map((copy) => serverOf(copy.name));
  if (cluster.leader === undefined || behind.length > 0) throw new IncompleteError(name, behind);
}

/** The server's name, or the id of its peer: a server that has been restarted does not know the names of those that are away. */
function serverOf(name: string): string {
  const [, peerId] = /^Server name unknown .*\(peerID: (\w+)\)$/.exec(name) ?? [];
  return peerId === undefined ? name : `peer ${peerId}`;
}

interface InsistOptions {
  /** Ends the attempts. */
  readonly signal?: AbortSignal | undefined;
  /** How long the attempts go on; by default `BUS_LIMITS.ensureMs`. */
  readonly withinMs?: number;
  /** When set, the attempts go on without a limit, and this logs the wait. */
  readonly log?: LineLog | undefined;
}

/**
 * Repeats an attempt while a later one may succeed. Throws UserError `nats_storage`, `nats_incomplete`, `nats_no_quorum` or,
 * of a single server, `nats_stores_nothing`.
 */
export async function insist<T>(
  bus: Bus,
  stream: string,
  { signal, withinMs = BUS_LIMITS.ensureMs, log }: InsistOptions,
  attempt: () => Promise<T>,
): Promise<T> {
  const deadlineMs = log === undefined ? performance.now() + withinMs : Number.POSITIVE_INFINITY;
  const wait = log === undefined ? undefined : new QuorumWait(log);
  for (;;) {
    signal?.throwIfAborted();
    try {
      const result = await attempt();
      wait?.end(bus.nc);
      return result;
    } catch (cause) {
      if (performance.now() > deadlineMs || !isPassing(cause)) throw refused(bus, stream, cause);
      // A lost connection has a log line already.
      if (bus.isUp()) wait?.go(bus.nc);
    }
    await delay(BUS_LIMITS.ensurePauseMs, undefined, signal === undefined ? {} : { signal });
  }
}

function refused(bus: Bus, stream: string, cause: unknown): unknown {
  const server = bus.nc.getServer();
  if (cause instanceof JetStreamApiError) {
    const reason = cause.message.replace(/\.$/, "");
    const sentence = `The NATS at ${server} (NATS_URL) cannot keep the stream ${stream}: ${reason}; ${nextStep(cause)}.`;
    return new UserError(sentence, { code: "nats_storage", cause });
  }
  if (cause instanceof IncompleteError && cause.servers.length > 0) return incomplete(bus, stream, cause);
  return isPassing(cause) ? noQuorum(bus, stream, cause) : cause;
}

function nextStep({ code }: JetStreamApiError): string {
  if (code === NO_SUITABLE_PEERS) return "start as many servers as the stream has copies, or ask for fewer copies";
  if (code === NO_CLUSTER)
    return 'ask for one copy (--replicas 1), or begin with an empty cluster, see "From one NATS server to three" in docs/operations.md';
  if (NO_SPACE_CODES.has(code)) return "raise the limits of JetStream for this account, or free space";
  return "the server's log has the details";
}

/** UserError `nats_incomplete`: the majority stores the stream, and the other servers are down or behind. */
function incomplete(bus: Bus, stream: string, cause: IncompleteError): UserError {
  const sentence = `The NATS at ${bus.nc.getServer()} (NATS_URL) has no complete copy of the stream ${stream} on ${cause.servers.join(" and ")}: start those that are down, remove one that is gone for good (\`nats server cluster peer-remove\`), and try again.`;
  return new UserError(sentence, { code: "nats_incomplete", cause });
}

/** UserError `nats_no_quorum`, or `nats_stores_nothing` of a single server. */
function noQuorum(bus: Bus, stream: string, cause: unknown): UserError {
  if (isSingle(bus.nc)) return busThatStoresNothing(bus.nc, cause);
  const sentence = `The NATS at ${bus.nc.getServer()} (NATS_URL) does not answer about the stream ${stream}: most of its servers must run and reach each other; start them, and try again.`;
  return new UserError(sentence, { code: "nats_no_quorum", cause });
}

/** The streams and buckets of this version that the bus lacks. `logs` is its number of station logs. */
export async function missingStreams(bus: Pick<Bus, "jsm">, logs: number): Promise<readonly string[]> {
  const found = new Set<string>();
  for await (const name of bus.jsm.streams.names()) found.add(name);
  return wantedConfigs({ replicas: 1, logs }).flatMap(({ name }) => (found.has(name) ? [] : [name]));
}

export type CheckOptions = Pick<InsistOptions, "signal" | "log">;

/**
 * Returns the layout of the bus. Waits for a cluster that elects: for `checkStreamsMs`, and without a limit when `log` is set.
 * Throws UserError `bus_not_migrated` with the next step, or what `insist` throws.
 */
export async function checkStreams(bus: Bus, options: CheckOptions = {}): Promise<MigratedLayout> {
  return await insist(bus, FIRST, { ...options, withinMs: BUS_LIMITS.checkStreamsMs }, () => check(bus));
}

async function check(bus: Bus): Promise<MigratedLayout> {
  const layout = layoutOf((await streamInfo(bus, FIRST))?.config.metadata);
  if (layout === undefined) throw notMigrated(bus, "has not been prepared for this service");
  await Promise.all(
    wantedConfigs(layout).map(async (wanted) => {
      const info = await streamInfo(bus, wanted.name);
      if (info === undefined) throw notMigrated(bus, `has no stream ${wanted.name}`);
      // A newer version has migrated the bus: during an upgrade the older processes still run.
      if (layout.version > LAYOUT_VERSION) return;
      const difference = firstDifference(info.config, wanted);
      if (difference === undefined) return;
      throw notMigrated(bus, `has a stream ${wanted.name} whose ${difference} is not what this version needs`);
    }),
  );
  return layout;
}

function notMigrated(bus: Bus, what: string): UserError {
  const sentence = `The NATS at ${bus.nc.getServer()} (NATS_URL) ${what}: run \`npm run migrate\`, and start again.`;
  return new UserError(sentence, { code: "bus_not_migrated" });
}
