/**
 * The limits of the gateway, each with its reason. `read-model/replica-feed.ts` and `read-model/throttles.ts` have the limits
 * of feeds and throttles. `services/bus/bounds.ts` has the bounds of what people and devices write, which the services check
 * too.
 */
import { BOUNDS } from "../services/bus/bounds.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;

export const LIMITS = {
  /** A credential has 49 characters. The gateway does not hash a longer text than this. */
  credentialCharacters: 128,
  /**
   * Devices whose views stay in memory, about 1 KB each. Beyond this, a further device replaces another one, whose views the
   * gateway renders again at its next poll.
   */
  devicesRendered: 250_000,
  /** A body is a few hundred bytes; 16 KiB leaves room for a heartbeat's summary (design §4, "bodies"). */
  bodyBytes: 16 * 1_024,
  /**
   * An offer to a robot: 200 lines with names of 200 characters are 247 KB, because many JSON writers need six bytes for a
   * character that is not ASCII (`\u4e2d`). The rest is for the destination and the other fields.
   */
  offerBodyBytes: 256 * 1_024,
  /** A mapping with 200 words of 200 characters in each of its lists. Real mappings have 2 KB. */
  mappingBodyBytes: 256 * 1_024,
  /** A device with a bad mobile connection sends 16 KiB in this time. A slower body would occupy its connection for too long. */
  bodyTimeoutMs: 5_000,
  /**
   * From the first byte of a request to its answer: longer than the longest wait for a service (`BUS_LIMITS.callMs`,
   * `webhookTestMs`) and then for a replica.
   */
  requestTimeoutMs: 12_000,
  /** How often the gateway checks pending requests for these two limits; a request may last this much longer. */
  sweepIntervalMs: 250,
  /** The deepest nesting of a body: no request needs more, and recursion over a deeper one could exhaust the stack. */
  jsonDepth: 32,
  /**
   * Requests under way that need more than memory and have their body. Beyond this the gateway answers `busy` at once.
   * Unknown callers may hold only a part of these slots, so that the rest stays free for devices and people.
   */
  requestsInFlight: 4_096,
  unknownRequestsInFlight: 2_048,
  /**
   * Requests whose body has not arrived, in total. At one more, the gateway closes the connection of the oldest. One address
   * may have as many of them as it may have connections: a client whose connection is closed early connects again at once,
   * which costs more than a wait of 5 s.
   */
  unreadBodies: 16_384,
  /** No more than this share of all connections may wait for a body. */
  unreadBodiesShare: 0.5,
  /** Bytes of incomplete bodies that have arrived: 4,096 of the largest bodies that most operations accept. */
  unreadBodyBytes: 64 * 1_024 * 1_024,
  /**
   * Callbacks among the requests in flight (`callback-lanes.ts`), about 900 in total: while the providers service does not
   * answer, a flood of callbacks must leave room for all other requests. These two are for addresses that have sent a valid
   * callback for the config: in total, and for one config, so that a flood for one config leaves room for the other configs.
   */
  verifiedCallbacksInFlight: 256,
  verifiedCallbacksInFlightPerConfig: 128,
  /**
   * Callbacks of all other addresses. One address may hold half of these slots at most (`FairSlots`), and the last slots of
   * that half are for configs without a callback under way. Waiting callbacks get slots in turn. This wait and then the
   * longest wait for the service (`BUS_LIMITS.callMs`) are within `requestTimeoutMs`.
   */
  newCallbacksInFlight: 256,
  newCallbacksInFlightPerConfig: 64,
  newCallbacksKeptForConfigs: 32,
  newCallbacksWaiting: 384,
  newCallbackWaitMs: 4_000,
  /**
   * Callbacks without a usable signature, which the service only records and counts: more than it records in a second. One
   * address may hold only a few of these slots, so that the service also records the callbacks of other addresses.
   */
  unsignedCallbacksInFlight: 32,
  unsignedCallbacksInFlightPerAddress: 4,
  /**
   * How long an address counts as verified for a config: longer than a restaurant stays closed. How many addresses of one
   * config: as many as a provider has. And for how many configs: about 10 MB. A sender that knows a secret can only use up the
   * places of its config.
   */
  verifiedSenderMs: 3 * 24 * 3_600_000,
  verifiedSendersPerConfig: 32,
  verifiedConfigs: 10_000,
  /**
   * Log-ins that the registry works on for this gateway: in total, and of one place or address. Also how many may wait for
   * a slot, and how long. `first` has more slots than the registry has places for unknown passwords (8), where an attempt may
   * wait for a second. The other slots are for look-ups of a millisecond or two, which find the known places that this gateway
   * has forgotten. The attempts of a flood wait, or get `busy`.
   */
  logIns: {
    known: { total: 32, perKey: 4, waiting: 256, waitingPerKey: 8 },
    first: { total: 24, perKey: 4, waiting: 1_024, waitingPerKey: 32 },
    others: { total: 16, perKey: 4, waiting: 1_024, waitingPerKey: 32 },
    maxWaitMs: 2_000,
  },
  /** The same for enrollments, by address. */
  enrollments: { total: 16, perKey: 2, waiting: 1_024, waitingPerKey: 32 },
  enrollmentMaxWaitMs: 2_000,
  /** Uploads under way, in total and of one organization: each needs about half a megabyte and occupies a connection for long. */
  uploads: { total: 32, perKey: 4, waiting: 0, waitingPerKey: 0 },
  /**
   * A client that sends an upload more slowly occupies a place that others need. Only the time in which the service waits for
   * the client counts, without the first `uploadGraceMs`: a phone's connection may stall.
   */
  uploadBytesPerSecond: 4 * KIB,
  /**
   * Bytes of uploads that have arrived and are not stored, of one upload and of all. The gateway pauses a connection, but
   * uWebSockets.js continues to read for as long as each read fills its buffer of 512 KiB (`us_internal_dispatch_ready_poll`
   * of uSockets). A client on the same machine could send a whole file in this way. Most statements are smaller.
   */
  uploadHeldBytes: { each: 128 * MIB, inAll: 512 * MIB },
  uploadGraceMs: 20_000,
  /** An idempotency key is a UUID or a few words; the services check the same bound. */
  idempotencyKeyCharacters: BOUNDS.idempotencyKeyCharacters,
  /** A reference that a cashier copies from a slip; a slip's reference has about twenty characters. */
  referenceCharacters: 200,
  /** How long an old secret stays valid beside the new one, unless the request has another time: a day to change the other side. */
  secretOverlapUnlessAskedSeconds: 24 * 3_600,
  /** How long an offer to a robot is valid, unless the request has another time: a fleet polls every second or two. */
  offerUnlessAskedSeconds: 120,
  /** How long the signer may take to test a webhook endpoint: ten seconds for the attempt, and one to store its result. */
  webhookTestMs: 11_000,
  /** The most field errors in one answer. */
  fieldErrors: 32,
  /** A heartbeat's summary (design §4, "heartbeat"). */
  summaryBytes: 4 * 1_024,
  summaryDepth: 8,
  /** How long the bus may take to store a heartbeat: a device sends one every ten seconds, and repeats a failed one. */
  heartbeatStoredMs: 2_000,
  /** A gateway publishes at most one note of a companion's polls in this time, because no reader needs each poll. */
  pollNoteMs: 10_000,
  /** A companion that has not asked for its assignment for this long counts as not polling: the time of three notes and a half. */
  pollSilenceMs: 35_000,
  /**
   * How long the registry may take to answer whether a station exists that the replica does not have, and how many such
   * questions may be under way. A caller without an answer repeats its request. So a flood of invented ids costs no more.
   */
  missingStationMs: 1_000,
  missingStationsAsked: 16,
  /**
   * How long the registry may take to store that a session takes a station. Cash must not wait for the registry: without its
   * answer the lease is bound to no session, and lasts only as long as a cashier who has left may block the station.
   */
  bindStationMs: 1_000,
  unboundLeaseMs: 120_000,
  /** How long an answer waits until this gateway's replica shows a station's commit. A commit arrives in a millisecond. */
  commandVisibleMs: 250,
  /**
   * How long a blocked device's report waits until its station has stored it: longer than a hand-over of its partition takes.
   * The gateway refuses the device in any case, so the device should not wait longer.
   */
  blockedReportMs: 1_000,
  /** How long an answer waits until the replicas show a change of a service, which the relay delivers. */
  barrierVisibleMs: 1_000,
  /** How long the reset of a sandbox waits until its collection is cancelled: a settlement under way takes less. */
  sandboxCancelMs: 3_000,
  sandboxPollMs: 50,
  /** How long a service may take to report its health: it makes two checks of 400 ms at most (services/db/limits.ts). */
  healthAnswerMs: 1_000,
  /** The gateway asks the services at most this often, however often monitors read its readiness. */
  healthCachedMs: 1_000,
  /**
   * How long a report of readiness waits for the answers of the services. It reports a service without an answer as not
   * ready. Load balancers wait for a second in total. So an answer "ready" is never older than these two limits together.
   */
  healthWaitMs: 250,
  /** A starting gateway ends with an error when its feeds are not fresh this long after it has loaded them. */
  freshWithinMs: 10_000,
  /** How often a starting gateway checks whether its feeds are fresh. */
  freshPollMs: 20,
  /** How long running requests may take to finish after the gateway has closed its port. */
  drainMs: 5_000,
} as const;

/** The limits of connections and of their unsent answers. MAX_CONNECTIONS and MAX_CONNECTIONS_PER_ADDRESS may lower two of them. */
export const CONNECTION_LIMITS = {
  /**
   * Open files that the process needs besides its clients: the bus, the log, the metrics port, TLS files and those of Node,
   * about 60 in total. Where the limit of open files is small, half of it stays free instead.
   */
  otherFiles: 256,
  /** Open connections, where the limit of open files allows as many: about 10 KB each, so 1 GB, and one thread serves them. */
  connections: 100_000,
  /** Open connections of one address: a large restaurant has some hundred devices behind one address. */
  connectionsPerAddress: 1_024,
  /** No address may hold more than this share of all connections, however the two settings are chosen. */
  shareOfOneAddress: 0.5,
  /** From this share of all connections on, the gateway closes the connection of an unknown caller with its answer. */
  crowdedShare: 0.75,
  /** The same for one address, as a share of the connections that it may have. */
  crowdedShareOfAddress: 0.5,
  /** Connections of one address without a request that the gateway remembers, so that it can close some for a new one. */
  unusedPerAddress: 128,
  /**
   * The shortest time between two recounts of the connections of each address. The kernel writes a line for each connection
   * of the machine, which takes 10 ms for 20,000 connections.
   */
  recountMs: 2_000,
  /** Addresses without a connection that the gateway remembers until the next recount: about 1 MB. */
  unopenedAddresses: 10_000,
  /** The gateway logs refused connections at most once in this time. The metrics count each of them. */
  logMs: 60_000,
  /** Unsent bytes of one connection's answer: more than a page of a list has (`BOUNDS.listedBytes`). */
  unsentBytesPerConnection: 256 * KIB,
  /** The same for all connections: 256 of the largest answers, or 60,000 of 1 KB. The bytes of a file exist once and do not count. */
  unsentBytes: 64 * MIB,
  /** Unsent answers of any size: about 1 KB each besides their bytes. */
  unsentAnswers: 16_384,
  /** A client that reads nothing for this long counts as stalled. */
  stalledMs: 5_000,
  /** After this time the gateway abandons the answer to a slow client. At 10 KB/s a page of a list has arrived by then. */
  unsentMs: 30_000,
  /** How often the gateway checks unsent answers for these two limits. */
  unsentCheckMs: 250,
  /**
   * An answer of this size fits into the send buffer of a connection without unsent bytes, so the gateway can close the
   * connection right after it. Errors have some hundred bytes.
   */
  closingAnswerBytes: 8 * KIB,
  /**
   * How long a connection stays open after its last answer while the client may still be sending a body: some round trips of a
   * bad mobile connection. And how many connections may stay open for this: any further one is closed at once, so that a
   * flood of refused bodies does not occupy connections.
   */
  bodyFollowsMs: 1_000,
  bodiesFollowing: 256,
  /**
   * The server does not report the unsent part of an answer without a body. So the gateway sends some of these answers with
   * `Connection: close`: to a device after this many 304 in a row (250 KB of heads), and to other callers one of so many.
   */
  unchangedInARow: 1_024,
  bodilessInARow: 128,
} as const;
