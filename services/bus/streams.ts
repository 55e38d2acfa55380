/** Streams and buckets as data: what each holds, how much, and why. `migrate` makes them so. */

import { PARTITION_COUNT, partitionOf, partitionToken } from "../../machines/partition.ts";
import { HEARTBEATS_ALL, ISSUE_EVENTS_ALL, POLLS_ALL, ROBOTICS_EVENTS_ALL } from "./subjects.ts";

interface StreamFacts {
  readonly name: string;
  readonly subjects: readonly string[];
}
/** A stream whose newest message per subject is the truth. */
export interface StateStreamDefinition extends StreamFacts {
  readonly keeps: "newest";
  /** How many messages of one subject are kept; the newest is the truth, the others are for the audit copy to catch up. */
  readonly maxMessagesPerSubject: number;
  readonly republish?: { readonly source: string; readonly destination: string };
}
/** A stream of work: a message stays until the one durable consumer has dealt with it. */
export interface WorkStreamDefinition extends StreamFacts {
  readonly keeps: "undone";
  /** Beyond this nothing more is taken, and it waits where it comes from. */
  readonly maxMessages: number;
}
export type StreamDefinition = StateStreamDefinition | WorkStreamDefinition;

/**
 * The last heartbeat of each device, republished to the owning host once it is stored (design §3), and when each companion
 * last asked for its assignment, which the gateways note and follow.
 */
export const LIVENESS: StateStreamDefinition = {
  keeps: "newest",
  name: "LIVENESS",
  subjects: [HEARTBEATS_ALL, POLLS_ALL],
  maxMessagesPerSubject: 1,
  republish: { source: "station.heartbeat.>", destination: "station.heard.>" },
};

/**
 * What consumers are to receive, until the webhook signer has stored it as deliveries. A full stream refuses, and
 * events wait in the outbox, so none is lost; a million of a kilobyte each is an hour of the fastest restaurant chain.
 */
export const ROBOTICS_EVENTS: WorkStreamDefinition = {
  keeps: "undone",
  name: "ROBOTICS_EVENTS",
  subjects: [ROBOTICS_EVENTS_ALL],
  maxMessages: 1_000_000,
};

/**
 * Issues that were opened or decided, for programs that follow them. PostgreSQL has the truth: a program that was away for
 * longer than an organization's newest ten thousand events reads the list of issues.
 */
export const ISSUE_EVENTS: StateStreamDefinition = {
  keeps: "newest",
  name: "ISSUE_EVENTS",
  subjects: [ISSUE_EVENTS_ALL],
  maxMessagesPerSubject: 10_000,
};

/** Beside the logs of the stations (`StationLogs`). */
export const STREAMS = [LIVENESS, ROBOTICS_EVENTS, ISSUE_EVENTS] as const;

export interface BucketDefinition {
  readonly name: string;
  readonly history: number;
  /** Entries older than this vanish; zero keeps them. Milliseconds. */
  readonly maxAgeMs: number;
}

/** SHA-256 of a device credential → whose it is. Every gateway holds a replica. */
export const CREDENTIALS: BucketDefinition = { name: "CREDENTIALS", history: 1, maxAgeMs: 0 };
/** SHA-256 of a session token → who acts. A session ends by deletion or by its own expiry, at the latest by this age. */
export const SESSIONS: BucketDefinition = { name: "SESSIONS", history: 1, maxAgeMs: 7 * 24 * 3_600_000 };
/** Kill switches that are on. */
export const SWITCHES: BucketDefinition = { name: "SWITCHES", history: 1, maxAgeMs: 0 };
/**
 * Who owns which partition (design §2.3): one record per host. A record is void after seconds; this only clears away what dead
 * hosts left. On a cluster with several logs the records are in the logs (`StationLogDefinition.leases`).
 */
export const LEASES: BucketDefinition = { name: "LEASES", history: 1, maxAgeMs: 3_600_000 };

/** The id of the installation that the bus belongs to, written once. */
export const INSTALLATION: BucketDefinition = { name: "INSTALLATION", history: 1, maxAgeMs: 0 };

export const BUCKETS = [CREDENTIALS, SESSIONS, SWITCHES, LEASES, INSTALLATION] as const;

/** Files, in chunks, by the convention of object stores, so that `nats object` shows them too (`statement-files.ts`). */
export interface FileBucketDefinition {
  readonly name: string;
  readonly maxAgeMs: number;
  /** Chunks of all files, and one more message for each file; beyond it no file is taken. */
  readonly maxMessages: number;
}

/**
 * Uploaded statement files, until their imports have ended. The bucket deletes by age what an
 * uncompleted upload has left, and a file that waits for an operator for a quarter of a year. 32 GiB in chunks of 128 KiB are sixteen of the
 * largest files; the reserve of the disk ends uploads before.
 */
export const STATEMENT_FILES: FileBucketDefinition = {
  name: "STATEMENTS",
  maxAgeMs: 90 * 24 * 3_600_000,
  maxMessages: 262_144,
};

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
  /** The subjects of the hosts' leases of this log's partitions, without the last token, which is the host's id. */
  readonly leases: string;
  /** The subjects of commits and of beats, and of nothing else. */
  readonly commitsAndBeats: string;
}

/**
 * The logs of the stations: one or several streams, each for a range of partitions (design §2.5). Each has a leader of its
 * own, so that the loss of one server touches the stations of that server's logs alone. `migrate` fixes their number.
 *
 *   station ──► partition (0 … 255) ──► log (0 … count - 1) ──► stream STATION_LOG_<log>
 */
export class StationLogs {
  readonly all: readonly StationLogDefinition[];
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

  partitionsOf({ index }: StationLogDefinition): readonly number[] {
    return [...this.#byPartition.keys()].filter((partition) => this.#byPartition[partition]?.index === index);
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
 * the hosts' confirmations and the gateways' beats, which have no content, and the hosts' leases.
 */
function stationLog(index: number): StationLogDefinition {
  const commits = `station.log.${index}.*.*`;
  const confirmSubject = `station.confirm.${index}`;
  const beats = `station.beat.${index}`;
  const leases = `host.lease.${index}`;
  return {
    keeps: "newest",
    index,
    name: `STATION_LOG_${index}`,
    subjects: [commits, confirmSubject, `${beats}.*`, `${leases}.*`],
    maxMessagesPerSubject: 64,
    commits,
    confirmSubject,
    beats,
    leases,
    commitsAndBeats: `station.*.${index}.>`,
  };
}
