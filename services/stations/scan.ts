/**
 * What a host reads when it acquires partitions: which station it must wake when (from the headers of the station logs) and
 * which devices send heartbeats (from LIVENESS). It serves commands meanwhile.
 *
 * A server may have any copy of a stream, also one that lags, for example after the loss of its disk. Such a server reports
 * that it has sent everything, and means everything of its copy. So a scan ends only when it has what the leader has.
 */
import { setTimeout as delay } from "node:timers/promises";
import { partitionOf } from "../../machines/partition.ts";
import type { Bus } from "../bus/connection.ts";
import { type FeedMessage, openFeed } from "../bus/feed.ts";
import { heartbeatAtMs } from "../bus/messages/heartbeat.ts";
import { SequenceWait } from "../bus/sequence-wait.ts";
import { LIVENESS, type StationLogDefinition, type StationLogs } from "../bus/streams.ts";
import { HEARTBEATS_ALL, parseHeartbeatSubject, parseStationId, partitionHeartbeatsSubject } from "../bus/subjects.ts";
import type { Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { Partition } from "./partition.ts";
import { decodeWake, WAKE_HEADER } from "./station-log.ts";

/** The copy that a scan reads has not received what the leader has. The next scan probably reads another copy. */
class CopyLagsError extends Error {
  readonly code = "copy_lags";
  constructor(stream: string) {
    super(`The copy of ${stream} that the scan reads lags behind the leader.`);
    this.name = "CopyLagsError";
  }
}

export interface ScanDeps {
  /** A connection only for scans: a scan delays every answer on its connection. */
  readonly bus: Bus;
  readonly log: Log;
  readonly logs: StationLogs;
  /** The partition while this host holds it; messages of other partitions are skipped. */
  readonly partition: (index: number) => Partition | undefined;
  readonly lateWaits: LateWaits;
  /** A commit of any host that came after the scan. */
  readonly onLateCommit: (stationId: number, sequence: number) => void;
}

/**
 * The waits for late commits, by filter. A scan of stations for which another scan waits already makes that wait longer, so
 * consumers do not accumulate: a log has at most one of the whole log, and one per partition.
 */
export class LateWaits {
  readonly #lateCommitsMs: number | undefined;
  readonly #ends = new Map<string, number>();

  /** `lateCommitsMs` replaces both limits. */
  constructor(lateCommitsMs?: number) {
    this.#lateCommitsMs = lateCommitsMs;
  }

  /** Whether this scan has to wait. If not, the feed of an earlier scan receives the same commits, and now does so for longer. */
  begin(filter: string, wholeFilter: string, isCluster: boolean): boolean {
    const { lateCommitsMs, lateCommitsOnClusterMs } = STATION_LIMITS;
    const waitMs = this.#lateCommitsMs ?? (isCluster ? lateCommitsOnClusterMs : lateCommitsMs);
    const waiting = [wholeFilter, filter].find((each) => this.#ends.has(each));
    this.#ends.set(waiting ?? filter, performance.now() + waitMs);
    return waiting === undefined;
  }

  leftMs(filter: string): number {
    return (this.#ends.get(filter) ?? 0) - performance.now();
  }

  end(filter: string): void {
    this.#ends.delete(filter);
  }
}

/**
 * Reads the newest commit of each station of these partitions of one log. Resolves when they are read, and then reports late
 * commits for a while. Rejects when `signal` is aborted.
 */
export async function scanStations(
  deps: ScanDeps,
  log: StationLogDefinition,
  partitions: readonly number[],
  signal: AbortSignal,
): Promise<void> {
  await scan(deps, signal, partitions, {
    stream: log.name,
    keepsOnlyNewest: log.maxMessagesPerSubject === 1,
    wholeFilter: log.commits,
    wholeFrom: STATION_LIMITS.scanWholeFrom / deps.logs.count,
    filterOf: (partition) => deps.logs.partitionSubject(partition),
    receive: (message) => {
      const stationId = parseStationId(message.subject);
      const wake = decodeWake(message.headers?.get(WAKE_HEADER));
      deps.partition(partitionOf(stationId))?.noteWake(stationId, wake);
    },
    receiveLate: ({ subject, sequence }) => deps.onLateCommit(parseStationId(subject), sequence),
  });
}

/** Reads the newest heartbeat of each device. Rejects when `signal` is aborted. */
export async function scanHeartbeats(
  deps: ScanDeps,
  partitions: readonly number[],
  signal: AbortSignal,
): Promise<void> {
  await scan(deps, signal, partitions, {
    stream: LIVENESS.name,
    keepsOnlyNewest: LIVENESS.maxMessagesPerSubject === 1,
    wholeFilter: HEARTBEATS_ALL,
    wholeFrom: STATION_LIMITS.scanWholeFrom,
    filterOf: partitionHeartbeatsSubject,
    receive: (message) => {
      const { stationId, deviceId } = parseHeartbeatSubject(message.subject);
      deps.partition(partitionOf(stationId))?.presence.noteStoredHeartbeat(stationId, deviceId, heartbeatAtMs(message));
    },
  });
}

interface Source {
  readonly stream: string;
  readonly keepsOnlyNewest: boolean;
  readonly wholeFilter: string;
  /** From this many partitions on, the scan reads the whole stream. */
  readonly wholeFrom: number;
  readonly filterOf: (partition: number) => string;
  readonly receive: (message: FeedMessage) => void;
  /** What is stored after the scan (`LateWaits`); without it the scan ends with what there is. */
  readonly receiveLate?: (message: FeedMessage) => void;
}

/** One consumer for the whole stream, or a few at a time for single partitions, whichever reads less. */
async function scan(deps: ScanDeps, signal: AbortSignal, partitions: readonly number[], source: Source): Promise<void> {
  const isWhole = partitions.length >= source.wholeFrom;
  const filters = isWhole ? [source.wholeFilter] : partitions.map(source.filterOf);
  const readNext = async (): Promise<void> => {
    for (let filter = filters.pop(); filter !== undefined; filter = filters.pop()) {
      await readAll(deps, signal, source, filter);
    }
  };
  await Promise.all(Array.from({ length: STATION_LIMITS.scanConcurrency }, readNext));
}

async function readAll(deps: ScanDeps, signal: AbortSignal, source: Source, filter: string): Promise<void> {
  signal.throwIfAborted();
  const { stream, receiveLate } = source;
  const handled = new SequenceWait();
  const ended = new AbortController();
  const end = (): void => ended.abort();
  let { receive } = source;
  const feed = openFeed(deps.bus, {
    stream,
    filter,
    headersOnly: true,
    keepsOnlyNewest: source.keepsOnlyNewest,
    bitsPerSecond: STATION_LIMITS.scanBitsPerSecond,
    onMessage: (message) => {
      // First, because a message that is not understood counts as handled.
      handled.reached(message.sequence);
      receive(message);
    },
    onReset: () => {
      handled.reached(0);
      // From now on the feed reads the newest commits of all stations, and they are not late.
      if (receive === receiveLate) end();
    },
    log: deps.log,
  });
  signal.addEventListener("abort", end, { once: true });
  let isWaiting = false;
  ended.signal.addEventListener("abort", () => {
    signal.removeEventListener("abort", end);
    feed.stop();
    // At once, so that the next scan waits by itself.
    if (isWaiting) deps.lateWaits.end(filter);
  });
  const isCluster = deps.bus.nc.info?.cluster !== undefined;
  const requireNewest = async (): Promise<void> => {
    // One server has the only copy.
    if (!isCluster) return;
    const newest = await deps.bus.jsm.streams.getMessage(stream, { last_by_subj: filter });
    if (newest === null || (await handled.waitFor(newest.seq, STATION_LIMITS.scanLagMs))) return;
    throw new CopyLagsError(stream);
  };
  try {
    await feed.caughtUp;
    await requireNewest();
    signal.throwIfAborted();
  } catch (error) {
    end();
    throw error;
  }
  if (receiveLate === undefined || !deps.lateWaits.begin(filter, source.wholeFilter, isCluster)) return end();
  isWaiting = true;
  receive = receiveLate;
  void waitForLateCommits(deps.lateWaits, filter, requireNewest, ended.signal).finally(end);
}

/** Resolves when late commits are over and received: a copy that lags sends them later. */
async function waitForLateCommits(
  waits: LateWaits,
  filter: string,
  requireNewest: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const pause = (ms: number) => delay(ms, undefined, { ref: false, signal }).catch(() => undefined);
  let isOver = false;
  while (!isOver && !signal.aborted) {
    const leftMs = waits.leftMs(filter);
    if (leftMs > 0) {
      await pause(leftMs);
      continue;
    }
    try {
      await requireNewest();
      isOver = waits.leftMs(filter) <= 0;
    } catch {
      await pause(STATION_LIMITS.scanRetryMs);
    }
  }
}
