/** The definitions of streams and buckets: what each holds, how much, and why. `migrate` creates and updates them. */

import { PARTITION_COUNT, partitionOf, partitionToken } from "../../machines/partition.ts";
import { HEARTBEATS_ALL, ISSUE_EVENTS_ALL, POLLS_ALL, ROBOTICS_EVENTS_ALL } from "./subjects.ts";

interface StreamFacts {
  readonly name: string;
  readonly subjects: readonly string[];
}
/** A stream in which the newest message of each subject is the current state. */
interface StateStreamDefinition extends StreamFacts {
  readonly keeps: "newest";
  /**
   * How many messages of one subject the stream keeps. The newest is the current state; the audit copy reads the others
   * to catch up.
   */
  readonly maxMessagesPerSubject: number;
  readonly republish?: { readonly source: string; readonly destination: string };
}
/** A stream of work: a message stays until the one durable consumer has acknowledged it. */
interface WorkStreamDefinition extends StreamFacts {
  readonly keeps: "undone";
  /** A full stream refuses messages, and they wait with their publisher. */
  readonly maxMessages: number;
}
export type StreamDefinition = StateStreamDefinition | WorkStreamDefinition;

/**
 * The last heartbeat of each device: the bus stores it and republishes it to the owning host (design §2.5). And the last
 * time at which each companion asked for its assignment: the gateways write and read it.
 */
export const LIVENESS: StateStreamDefinition = {
  keeps: "newest",
  name: "LIVENESS",
  subjects: [HEARTBEATS_ALL, POLLS_ALL],
  maxMessagesPerSubject: 1,
  republish: { source: "station.heartbeat.>", destination: "station.heard.>" },
};

/**
 * Events for consumers, until the webhook signer has stored them as deliveries. A full stream refuses events and they
 * wait in the outbox, so none is lost. A million events, a kilobyte each, are an hour of the busiest restaurant chain.
 */
export const ROBOTICS_EVENTS: WorkStreamDefinition = {
  keeps: "undone",
  name: "ROBOTICS_EVENTS",
  subjects: [ROBOTICS_EVENTS_ALL],
  maxMessages: 1_000_000,
};

/**
 * Events about issues, for programs that subscribe to them. The issues themselves are in PostgreSQL: a program that has
 * missed more than an organization's newest ten thousand events reads the list of issues.
 */
export const ISSUE_EVENTS: StateStreamDefinition = {
  keeps: "newest",
  name: "ISSUE_EVENTS",
  subjects: [ISSUE_EVENTS_ALL],
  maxMessagesPerSubject: 10_000,
};

/** All streams except the logs of the stations (`StationLogs`). */
export const STREAMS = [LIVENESS, ROBOTICS_EVENTS, ISSUE_EVENTS] as const;

export interface BucketDefinition {
  readonly name: string;
  readonly history: number;
  /** The bus deletes entries older than this; zero keeps them. */
  readonly maxAgeMs: number;
}

/** SHA-256 of a device credential → its device. Every gateway holds a replica. */
export const CREDENTIALS: BucketDefinition = { name: "CREDENTIALS", history: 1, maxAgeMs: 0 };
/**
 * SHA-256 of a session token → its person. A session ends when it is deleted or expires, and at the latest at this age.
 */
export const SESSIONS: BucketDefinition = { name: "SESSIONS", history: 1, maxAgeMs: 7 * 24 * 3_600_000 };
/** Kill switches that are on. */
export const SWITCHES: BucketDefinition = { name: "SWITCHES", history: 1, maxAgeMs: 0 };
/**
 * Who owns which partition (design §2.3): one record per host. A record is void after seconds; the age limit only
 * removes the records of dead hosts. On a cluster with several logs the records are in the logs
 * (`StationLogDefinition.leases`).
 */
export const LEASES: BucketDefinition = { name: "LEASES", history: 1, maxAgeMs: 3_600_000 };

/** The id of the installation that the bus belongs to, written once. */
export const INSTALLATION: BucketDefinition = { name: "INSTALLATION", history: 1, maxAgeMs: 0 };

export const BUCKETS = [CREDENTIALS, SESSIONS, SWITCHES, LEASES, INSTALLATION] as const;

/**
 * A bucket of files in chunks, in the format of NATS object stores, so that `nats object` shows them too
 * (`statement-files.ts`).
 */
export interface FileBucketDefinition {
  readonly name: string;
  readonly maxAgeMs: number;
  /** Chunks of all files, and one more message for each file. A full bucket takes no more files. */
  readonly maxMessages: number;
}

/**
 * Uploaded statement files, until their imports have ended. The age limit deletes the chunks of an upload that did not
 * complete, and a file that waits for an operator for 90 days.
 *
 * The bound is 8 GiB in chunks of 128 KiB, four of the largest files. It is far below the space of a NATS server: a server
 * whose space is used up stores nothing in any stream, and all stations stop. It is a number of messages, because a server
 * reserves a stream's bytes: one with less space would refuse the bucket.
 */
export const STATEMENT_FILES: FileBucketDefinition = {
  name: "STATEMENTS",
  maxAgeMs: 90 * 24 * 3_600_000,
  maxMessages: 65_536,
};

/** The largest number of logs: each is a separate replicated group, which costs every server memory and disk writes. */
export const MOST_LOGS = 32;

/** One of the log streams. A position in a station's log is a sequence of this stream. */
export interface StationLogDefinition extends StateStreamDefinition {
  readonly index: number;
  /** The subjects of the commits of all its stations. */
  readonly commits: string;
  /**
   * The subject on which a host confirms that its state of a station is the newest. The append has a condition: the
   * station's subject still has the sequence that the host knows. All stations share the subject, so the stream keeps
   * few of these messages.
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
 * The logs of the stations: one or several streams, each for a range of partitions (design §2.5). Each has a separate
 * leader, so the loss of one server affects only the stations of the logs that it leads. `migrate` fixes their number.
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

  /**
   * The subject of a station's commits: one message per commit. The expected last sequence of each append excludes a
   * second writer.
   */
  subject(stationId: number): string {
    const partition = partitionOf(stationId);
    return `station.log.${this.ofPartition(partition).index}.${partitionToken(partition)}.${stationId}`;
  }

  /** The subjects of all commits of a partition's stations. */
  partitionSubject(partition: number): string {
    return `station.log.${this.ofPartition(partition).index}.${partitionToken(partition)}.*`;
  }
}

/**
 * The audit copy may fall 64 commits of a station behind before it records a gap (design §2.1). Besides commits, the
 * stream has the hosts' confirmations and the gateways' beats, which have no content, and the hosts' leases.
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
