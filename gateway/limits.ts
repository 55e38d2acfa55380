/**
 * The bounds of the gateway, each with its reason. `read-model/replica-feed.ts` and `read-model/throttles.ts` have those of
 * feeds and throttles, `services/bus/bounds.ts` those of what people and devices write, which the services check as well.
 */
import { BOUNDS } from "../services/bus/bounds.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;

export const LIMITS = {
  /** A credential has 49 characters; nothing longer than this is worth hashing. */
  credentialCharacters: 128,
  /**
   * Devices whose views are kept, about 1 KB each; a further one takes the place of another. A display that polls every
   * two seconds stays in, a device that was silent for long is rendered anew.
   */
  devicesRendered: 250_000,
  /** A body is a few hundred bytes; 16 KiB leaves room for a heartbeat's summary (design §4, "bodies"). */
  bodyBytes: 16 * 1_024,
  /**
   * An offer to a robot: 200 lines with names of 200 characters, each written as six bytes (`\u4e2d`), as many JSON writers
   * do with what is not ASCII, are 247 KB; with them a destination and the rest.
   */
  offerBodyBytes: 256 * 1_024,
  /** A mapping with two hundred words of two hundred characters in each of its lists; real ones have 2 KB. */
  mappingBodyBytes: 256 * 1_024,
  /** A device on a bad mobile line sends 16 KiB in this time; a body that trickles longer holds a socket for nothing. */
  bodyTimeoutMs: 5_000,
  /** From the first byte of a request to its answer; longer than the longest wait for a service (`BUS_LIMITS.callMs`, `webhookTestMs`) and a replica. */
  requestTimeoutMs: 12_000,
  /** How often pending requests are checked for those two; a request may live this much longer. */
  sweepIntervalMs: 250,
  /** The deepest nesting of a body: no request needs more, and recursion over it costs stack. */
  jsonDepth: 32,
  /**
   * Requests that wait for something other than memory and their body; beyond it the gateway answers `busy` at once. Callers
   * that are not known may hold this part of them, so that the rest stays free for devices and people.
   */
  requestsInFlight: 4_096,
  unknownRequestsInFlight: 2_048,
  /**
   * Requests whose body has not arrived, in all; with one more the connection of the oldest is closed. Of one address as
   * many as it may have connections: who is closed early comes back at once, and that costs more than to wait for 5 s.
   */
  unreadBodies: 16_384,
  /** No more than this share of all connections may wait for a body. */
  unreadBodiesShare: 0.5,
  /** Bytes that have arrived of bodies that are not whole: 4,096 of the largest bodies that most operations take. */
  unreadBodyBytes: 64 * 1_024 * 1_024,
  /**
   * Callbacks of those (`callback-lanes.ts`), about 900 in all: while the providers service does not answer, a flood of
   * callbacks must leave room for all other requests. First those of addresses that have sent a right one for the config,
   * in all and for one config, so that one config's flood leaves room for the other configs.
   */
  verifiedCallbacksInFlight: 256,
  verifiedCallbacksInFlightPerConfig: 128,
  /**
   * Then those of other addresses, of which one may hold half at most (`FairSlots`), and the last of that half are for configs
   * that have none under way. What waits gets a slot in turn; 4 s, and the longest wait for the service (`BUS_LIMITS.callMs`)
   * behind it, are within `requestTimeoutMs`.
   */
  newCallbacksInFlight: 256,
  newCallbacksInFlightPerConfig: 64,
  newCallbacksKeptForConfigs: 32,
  newCallbacksWaiting: 384,
  newCallbackWaitMs: 4_000,
  /**
   * At last those without a usable signature, which the service only records and counts: more than it records in a second.
   * One address may hold so few that those of another are recorded beside it.
   */
  unsignedCallbacksInFlight: 32,
  unsignedCallbacksInFlightPerAddress: 4,
  /**
   * How long an address counts as verified for a config, longer than a restaurant is closed; how many of one config, as many
   * as a provider has; and of how many configs: some 10 MB. A sender with a secret can fill those of its configs only.
   */
  verifiedSenderMs: 3 * 24 * 3_600_000,
  verifiedSendersPerConfig: 32,
  verifiedConfigs: 10_000,
  /**
   * Log-ins that the registry works on for this gateway, in all and of one place or address; those that may wait for that,
   * and how long. The first ones of addresses are more than the registry has places for unknown passwords (8), where they
   * may wait for a second: the rest are look-ups of a millisecond or two, so that a known place that this gateway has
   * forgotten is found. A flood waits, or gets `busy`.
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
  /** Uploads under way, and of one organization: each has about half a megabyte in memory and keeps its connection for long. */
  uploads: { total: 32, perKey: 4, waiting: 0, waitingPerKey: 0 },
  /**
   * A client that sends an upload more slowly holds a place that others need. Only the time counts in which the service waits
   * for it, and the first seconds do not: a phone's connection may stall.
   */
  uploadBytesPerSecond: 4 * KIB,
  /**
   * What has come of uploads and is not stored, of one and of all. A pause stops a connection, but uWebSockets.js first
   * reads on for as long as each read fills its buffer of 512 KiB (`us_internal_dispatch_ready_poll` of uSockets): a
   * client at the speed of memory, on this machine, could send a whole file so. Statements are smaller as a rule.
   */
  uploadHeldBytes: { each: 128 * MIB, inAll: 512 * MIB },
  uploadGraceMs: 20_000,
  /** An idempotency key is a UUID or a few words; the services check the same bound. */
  idempotencyKeyCharacters: BOUNDS.idempotencyKeyCharacters,
  /** A reference that a cashier types off a slip; a slip has some twenty characters. */
  referenceCharacters: 200,
  /** How long an old secret is taken beside the new one unless the request says otherwise: a day to change the other side. */
  secretOverlapUnlessAskedSeconds: 24 * 3_600,
  /** How long an offer to a robot stands unless the request says otherwise: a fleet that polls each second has seen it long before. */
  offerUnlessAskedSeconds: 120,
  /** How long the signer may take to try a webhook endpoint: its ten seconds for an attempt, and a moment to write it down. */
  webhookTestMs: 11_000,
  /** A request id that is longer or odd is replaced, because it goes into the log. */
  requestIdCharacters: 64,
  /** How many field errors one answer names. */
  fieldErrors: 32,
  /** A heartbeat's summary (design §4, "heartbeat"). */
  summaryBytes: 4 * 1_024,
  summaryDepth: 8,
  /** How long a heartbeat may take to be stored: a device beats every ten seconds and comes again. */
  heartbeatStoredMs: 2_000,
  /** At most one note of a companion's polls in this time: a companion polls every second or two, and no reader needs each poll. */
  pollNoteMs: 10_000,
  /** A companion that has not asked for its assignment for this long is not polling: three notes and some. */
  pollSilenceMs: 35_000,
  /**
   * How long the registry may take to say whether there is a station that the replica does not have, and how many are asked
   * about at once: a caller that gets no answer in time, or is one too many, asks again, and made-up names cost no more.
   */
  missingStationMs: 1_000,
  missingStationsAsked: 16,
  /**
   * How long the registry may take to note that a session takes a station. Cash must not wait for it: without the note the
   * lease is bound to no session, and lasts only as long as a station may stay blocked by a cashier who has left.
   */
  bindStationMs: 1_000,
  unboundLeaseMs: 120_000,
  /** How long an answer waits for this gateway's replica to show a station's commit; a commit arrives in a millisecond. */
  commandVisibleMs: 250,
  /**
   * How long a blocked device's report waits for its station to keep it: longer than a hand-over of its partition takes, and
   * no longer than a device that is refused anyway should wait.
   */
  blockedReportMs: 1_000,
  /** The same for what the registry or the settlement service wrote, which comes by way of the relay. */
  barrierVisibleMs: 1_000,
  /** How long the reset of a sandbox waits for its collection to be cancelled: a settlement under way takes less. */
  sandboxCancelMs: 3_000,
  sandboxPollMs: 50,
  /** How long a service may take to say how it is: it checks twice what it depends on, 400 ms each (services/db/limits.ts). */
  healthAnswerMs: 1_000,
  /** Services are asked at most this often, however often readiness is asked for. */
  healthCachedMs: 1_000,
  /**
   * How long readiness waits for their answers; a service that has not answered by then is reported as not ready. Balancers
   * wait for a second in all. An answer that says "ready" is therefore never older than these two limits together.
   */
  healthWaitMs: 250,
  /** A gateway whose feeds are not fresh this long after it has loaded them ends instead of waiting for ever. */
  freshWithinMs: 10_000,
  /** How often a starting gateway checks whether they are. */
  freshPollMs: 20,
  /** After the listen socket is closed: how long running requests may take to finish. */
  drainMs: 5_000,
} as const;

/**
 * The bounds of connections and of what waits to be sent on them. Two of them are settings: `MAX_CONNECTIONS` and
 * `MAX_CONNECTIONS_PER_ADDRESS`.
 */
export const CONNECTION_LIMITS = {
  /**
   * Files that the process keeps for everything but its clients: the bus, the log, the metrics port, TLS files, the
   * engine's own (about 60 in all). Where the limit of open files is small, half of it stays free instead.
   */
  otherFiles: 256,
  /** Connections at once where the limit of open files allows more: about 10 KB each, so 1 GB, and one thread serves them. */
  connections: 100_000,
  /** Connections of one address at once: a large restaurant's devices behind one address are some hundreds. */
  connectionsPerAddress: 1_024,
  /** No address may hold more than this share of all connections, however the two settings are chosen. */
  shareOfOneAddress: 0.5,
  /** From this share of all connections on, an answer to a caller that is not known ends its connection. */
  crowdedShare: 0.75,
  /** The same for one address and its share of what it may hold. */
  crowdedShareOfAddress: 0.5,
  /** Connections without a request that are remembered of one address, so that some can make room for a new one. */
  unusedPerAddress: 128,
  /**
   * How often the connections of each address are counted again at most. The kernel writes a line for each connection of
   * the machine: 10 ms of its time for 20,000.
   */
  recountMs: 2_000,
  /** Addresses that are remembered without a connection until the next count: about 1 MB. */
  unopenedAddresses: 10_000,
  /** At most one line in the log per this time says that connections are refused; the metrics have each. */
  logMs: 60_000,
  /** Bytes of one connection's answer that wait for its client: more than a page of a list has (`BOUNDS.listedBytes`). */
  unsentBytesPerConnection: 256 * KIB,
  /** The same of all connections: 256 of the largest, or 60,000 answers of 1 KB. A file's bytes exist once and do not count. */
  unsentBytes: 64 * MIB,
  /** Answers that wait at once, whatever their size: about 1 KB each beside their bytes. */
  unsentAnswers: 16_384,
  /** A client that takes nothing for this time is not reading. */
  stalledMs: 5_000,
  /** A client that takes a little now and then: after this time its answer is abandoned. A page has arrived at 10 KB/s. */
  unsentMs: 30_000,
  /** How often answers that wait are checked for those two. */
  unsentCheckMs: 250,
  /**
   * An answer of this size fits into the send buffer of a connection on which nothing waits, so that its connection can be
   * closed right behind it; errors are some hundred bytes.
   */
  closingAnswerBytes: 8 * KIB,
  /**
   * How long a connection stays behind its last answer while the client may still be sending a body: some round trips of a
   * bad mobile line. And how many do so at once; beyond that they end at once, so that a flood of refused bodies holds none.
   */
  bodyFollowsMs: 1_000,
  bodiesFollowing: 256,
  /**
   * The server does not report what waits of an answer without a body. A device that gets 304 this often in a row (250 KB
   * of heads) gets it with `Connection: close`, and every so often another caller whose answers have no body.
   */
  unchangedInARow: 1_024,
  bodilessInARow: 128,
} as const;
