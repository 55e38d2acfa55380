/** Every limit of the relay, with its reason. */
import { BUS_LIMITS } from "../bus/limits.ts";

export const RELAY_LIMITS = {
  /**
   * How long the lease of the relay that delivers lasts after a renewal, by PostgreSQL's clock. With the two intervals below
   * another relay delivers within 2.5 s after the last sign of life of one that is stalled.
   */
  leaseMs: 2_000,
  /** How often it is renewed: three renewals may be lost. */
  renewMs: 500,
  /** A relay whose renewals were not answered for this long delivers no more, half a second before another one may. */
  selfStopMs: 1_500,
  /** How often a relay that stands by tries to take the lease. */
  standByMs: 250,
  /** How long the bus may take to answer before each renewal: a relay without a bus must not keep the lease. */
  busProbeMs: 700,
  /** One statement about the lease; the connection of one that takes longer is replaced, because the term is over then. */
  leaseStatementMs: 1_500,
  /** The pause after a renewal that failed: there is time for a few before the term is over. */
  renewAgainMs: 50,
  /** One statement of the deliveries, each of which reads or writes a few rows. */
  statementMs: 2_000,
  /** A relay that is stalled within a transaction holds its row locks no longer than this. */
  idleInTransactionMs: 1_000,
  /** How often the database's pulse is raised and written on the bus: rarely, because any backup is older than some of these. */
  pulseMs: 5_000,
  /** How often a relay checks that the bus has all streams, so that a person who deleted one soon learns of it. */
  streamsCheckMs: 2_000,
  /** How often the table is polled. Writers flush their own rows at once, so this is for rows that they could not flush. */
  pollIntervalMs: 250,
  /** Keys of one poll; the next poll goes on behind them, so that none waits for ever. */
  keysPerPoll: 500,
  /** Rows of one key read at a time. */
  rowsPerRead: 50,
  /** Stations that the poll sends commands to at once: each request waits for one durable append. */
  stationKeysAtOnce: 64,
  /** Sessions and credentials written at once by the poll; apart from stations, so that a log-in never waits for an actor. */
  bucketKeysAtOnce: 64,
  /** How long one command to a station may take; a station that is being handed over answers within 500 ms. */
  stationTimeoutMs: 2_000,
  /** How long one write to a bucket may take. */
  bucketTimeoutMs: 2_000,
  /** How long storing one event in a stream may take. */
  streamTimeoutMs: 2_000,
  /** A stream counts as having lost its end when its leader reports it this many times, with this pause between. */
  lossConfirmations: 3,
  lossConfirmMs: 300,
  /** To detect a purged log: how many stations are read, and how many of that log are checked. After a purge all are missing. */
  copiedStations: 1_000,
  askedStations: 5,
  /** First and longest pause before a key that could not be delivered is tried again, doubling; retries never end. */
  retryPauseMs: 100,
  longestRetryPauseMs: 5_000,
  /** How often one write of a kill switch is repeated because another came in between; one relay delivers, so once is rare. */
  switchAttempts: 10,
  /** A flush waits this long for its rows; its caller waits less. */
  flushTimeoutMs: 4_000,
  /** Rows that wait longer than this show a fault: the longest pause of a key is over by then. */
  lateMs: 10_000,
  /** How long a monitor waits for the count of waiting rows; twice this is less than the gateway waits for a service's health. */
  summaryMs: 400,
  /** Waiting rows counted at most: beyond it their exact number no longer matters, and counting costs. */
  summaryRows: 10_000,
  /**
   * A row that was delivered longer ago does not count for a flush: a replica that answers is complete up to 1.5 s ago, and a
   * stream that was lost since may never come as far again. A flush waits no longer than this for its own rows.
   */
  barrierAgeMs: 5_000,
  /** Delivered rows are kept this long for the analysis of faults; events that no webhook signer has taken, for longer. */
  deliveredRetentionHours: 24,
  /**
   * Failed rows, and deletions of credentials, are kept this long. With a deletion the bucket's own marker goes, and a
   * gateway that was cut off from the bus for longer than this without a restart would not learn of it.
   */
  markedRetentionHours: 30 * 24,
  /** How often the retention job runs, and how many rows one statement deletes. */
  retention: { everyMs: 600_000, rowsPerBatch: 1_000 },
  /**
   * How often the newest message of each stream is marked. A loss of what was stored since is noticed only if PostgreSQL has
   * noted it: a row of the outbox, or a copied commit. A small request for each stream, and a row only where something was stored.
   */
  markIntervalMs: 1_000,
  /** Stations, and entries of buckets, in one page of an announcement: its progress is written afterwards. */
  announcedStations: 100,
  announcedEntries: 500,
  /** Of those, how many at once: fewer than the outbox delivers at once, which must not wait for an announcement. */
  announcedAtOnce: 32,
  /**
   * How often the notice that a bucket is complete is repeated: entries of SESSIONS expire after seven days, and the notice
   * must outlive a relay that is away for days.
   */
  noticeIntervalMs: 24 * 3_600_000,
  /** How far back the newest entry of a bucket is searched for: twice what its reader needs, so that wrong clocks do not matter. */
  deliveredWithinMs: 2 * BUS_LIMITS.deliveredCountsMs,
  /**
   * How often the relay checks the leaders of the streams; a leader that has to move moves at the second check. Until then the
   * death of one more server stops more stations than it should.
   */
  spreadMs: 1_000,
  /**
   * How often the relay moves leaders away from servers that are cut off from each other. The servers elect from three
   * seconds after the cut on, and then no leader can be moved for some seconds.
   */
  leaveCutMs: 200,
  /** How long it then waits for a leader: one that does not answer must not delay the moves of the others. */
  askLeaderMs: 500,
  /** One request to a leader to step down. */
  stepDownMs: 2_000,
  /** How long a stopping relay waits for deliveries under way; what is cut off is delivered again by the next one. */
  drainTimeoutMs: 3_000,
} as const;
