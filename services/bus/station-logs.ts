/**
 * The logs of the stations: one or several streams, each for a range of partitions (design §2.5). Each has a leader of its
 * own, so that the loss of one server touches the stations of that server's logs alone. `migrate` fixes their number.
 *
 *   station ──► partition (0 … 255) ──► log (0 … count - 1) ──► stream STATION_LOG_<log>
 */
import { PARTITION_COUNT, partitionOf, partitionToken } from "../../machines/partition.ts";
import type { StateStreamDefinition } from "./streams.ts";

/** The most logs: each is a replicated group of its own, which costs every server memory and disk writes. */
export const MOST_LOGS = 32;

/** One of the streams. A place in the log of a station is a sequence of this stream. */
export interface StationLogDefinition extends StateStreamDefinition {
  readonly index: number;
  /** The subjects of its commits, all stations together. */
  readonly commits: string;
  /**
   * Where a host confirms that its state of a station is the newest: an append under the condition that the station's subject
   * still has the sequence that the host knows. One subject for all stations, so that few of these messages are kept.
   */
  readonly confirmSubject: string;
  /** The subjects of the beats of its readers (`beats.ts`), without the last token. */
  readonly beats: string;
  /** The subjects of commits and of beats, and of nothing else. */
  readonly commitsAndBeats: string;
}

export class StationLogs {
  readonly all: readonly StationLogDefinition[];
  /** The log of each partition. */
  readonly #byPartition: readonly StationLogDefinition[];

  constructor(count: number) {
    this.all = Array.from({ length: count }, (_, index) => stationLog(index));
    this.#byPartition = Array.from(
      { length: PARTITION_COUNT },
      (_, partition) => this.all[Math.floor((partition * count) / PARTITION_COUNT)] as StationLogDefinition,
    );
  }

  get count(): number {
    return this.all.length;
  }

  /** The log that holds a station's commits. */
  of(stationId: number): StationLogDefinition {
    return this.ofPartition(partitionOf(stationId));
  }

  ofPartition(partition: number): StationLogDefinition {
    const log = this.#byPartition[partition];
    if (log === undefined) throw new RangeError(`There is no partition ${partition}.`);
    return log;
  }

  /** One subject per station; one message per commit; expected-last-sequence makes each append exclusive. */
  subject(stationId: number): string {
    const partition = partitionOf(stationId);
    return `station.log.${this.ofPartition(partition).index}.${partitionToken(partition)}.${stationId}`;
  }

  /** Every commit of a partition's stations. */
  partitionSubject(partition: number): string {
    return `station.log.${this.ofPartition(partition).index}.${partitionToken(partition)}.*`;
  }
}

/**
 * 64 commits of a station are what the audit copy may fall behind before it notes a gap (design §2.1). Beside the commits are
 * the hosts' confirmations and the gateways' beats, which have no content.
 */
function stationLog(index: number): StationLogDefinition {
  const commits = `station.log.${index}.*.*`;
  const confirmSubject = `station.confirm.${index}`;
  const beats = `station.beat.${index}`;
  return {
    keeps: "newest",
    index,
    name: `STATION_LOG_${index}`,
    subjects: [commits, confirmSubject, `${beats}.*`],
    maxMessagesPerSubject: 64,
    commits,
    confirmSubject,
    beats,
    commitsAndBeats: `station.*.${index}.>`,
  };
}
