/**
 * What a host reads when it acquires partitions: which station it must wake when (from the headers of the station logs) and
 * which devices send heartbeats (from LIVENESS). It serves commands meanwhile.
 */
import { partitionOf } from "../../machines/partition.ts";
import type { Bus } from "../bus/connection.ts";
import { type FeedMessage, openFeed } from "../bus/feed.ts";
import { LIVENESS, type StationLogDefinition, type StationLogs } from "../bus/streams.ts";
import { HEARTBEATS_ALL, parseHeartbeatSubject, parseStationId, partitionHeartbeatsSubject } from "../bus/subjects.ts";
import type { Log } from "../runtime/log.ts";
import { STATION_LIMITS } from "./limits.ts";
import type { Partition } from "./partition.ts";
import { decodeWake, WAKE_HEADER } from "./station-log.ts";

export interface ScanDeps {
  /** A connection only for scans: a scan delays every answer on its connection. */
  readonly bus: Bus;
  readonly log: Log;
  readonly logs: StationLogs;
  /** The partition while this host holds it; messages of other partitions are skipped. */
  readonly partition: (index: number) => Partition | undefined;
  /** A commit of any host that came after the scan. */
  readonly onLateCommit: (stationId: number, sequence: number) => void;
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
      deps.partition(partitionOf(stationId))?.presence.noteStoredHeartbeat(stationId, deviceId, message.storedAtMs);
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
  /** What is stored after the scan, for `lateCommitsMs`; without it the scan ends with what there is. */
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
  let { receive } = source;
  const feed = openFeed(deps.bus, {
    stream: source.stream,
    filter,
    headersOnly: true,
    keepsOnlyNewest: source.keepsOnlyNewest,
    bitsPerSecond: STATION_LIMITS.scanBitsPerSecond,
    onMessage: (message) => receive(message),
    onReset: () => undefined,
    log: deps.log,
  });
  const stop = (): void => feed.stop();
  signal.addEventListener("abort", stop, { once: true });
  const end = (): void => {
    signal.removeEventListener("abort", stop);
    feed.stop();
  };
  try {
    await feed.caughtUp;
  } catch (error) {
    end();
    throw error;
  }
  if (source.receiveLate === undefined) return end();
  receive = source.receiveLate;
  setTimeout(end, STATION_LIMITS.lateCommitsMs).unref();
}
