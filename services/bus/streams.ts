/** Streams and buckets as data: what each holds, how much, and why. `ensureStreams` makes them so at start. */
import { HEARTBEATS_ALL, POLLS_ALL, STATION_LOG_ALL } from "./subjects.ts";

export interface StreamDefinition {
  readonly name: string;
  readonly subjects: readonly string[];
  /** How many messages of one subject are kept; the newest is the truth, the others are for the audit copy to catch up. */
  readonly maxMessagesPerSubject: number;
  readonly republish?: { readonly source: string; readonly destination: string };
}

/** A station's commits. 64 a station is what the audit copy may fall behind before it notes a gap (design §2.1). */
export const STATION_LOG: StreamDefinition = {
  name: "STATION_LOG",
  subjects: [STATION_LOG_ALL],
  maxMessagesPerSubject: 64,
};

/**
 * The last heartbeat of each device, republished to the owning host once it is stored (design §3), and when each companion
 * last asked for its assignment, which the gateways note and follow.
 */
export const LIVENESS: StreamDefinition = {
  name: "LIVENESS",
  subjects: [HEARTBEATS_ALL, POLLS_ALL],
  maxMessagesPerSubject: 1,
  republish: { source: "station.heartbeat.>", destination: "station.heard.>" },
};

export const STREAMS = [STATION_LOG, LIVENESS] as const;

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
/** Who owns which partition (design §2.3): one record per host. A record is void after seconds; this only clears away what dead hosts left. */
export const LEASES: BucketDefinition = { name: "LEASES", history: 1, maxAgeMs: 3_600_000 };

export const BUCKETS = [CREDENTIALS, SESSIONS, SWITCHES, LEASES] as const;
