/** Streams and buckets as data: what each holds, how much, and why. `migrate` makes them so. */
import { HEARTBEATS_ALL, POLLS_ALL, ROBOTICS_EVENTS_ALL } from "./subjects.ts";

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
 * What consumers are to be told, until the webhook signer has written it down as deliveries. A full stream refuses, and
 * events wait in the outbox, so none is lost; a million of a kilobyte each is an hour of the fastest restaurant chain.
 */
export const ROBOTICS_EVENTS: WorkStreamDefinition = {
  keeps: "undone",
  name: "ROBOTICS_EVENTS",
  subjects: [ROBOTICS_EVENTS_ALL],
  maxMessages: 1_000_000,
};

/** Beside the logs of the stations (`station-logs.ts`). */
export const STREAMS = [LIVENESS, ROBOTICS_EVENTS] as const;

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

/** The id of the installation that the bus belongs to, written once. */
export const INSTALLATION: BucketDefinition = { name: "INSTALLATION", history: 1, maxAgeMs: 0 };

export const BUCKETS = [CREDENTIALS, SESSIONS, SWITCHES, LEASES, INSTALLATION] as const;
