/** Every limit of the relay, with its reason. */
export const RELAY_LIMITS = {
  /**
   * How long the lease of the relay that delivers lasts after a renewal, by PostgreSQL's clock. With the two intervals below
   * another relay delivers within 2.5 s after the last sign of life of one that is stalled.
   */
  leaseMs: 2_000,
  /** How often it is renewed: three renewals may be lost. */
  renewMs: 500,
  /** Without a renewal that was answered for this long a relay delivers no more, half a second before another one may. */
  selfStopMs: 1_500,
  /** How often a relay checks that. */
  selfCheckMs: 50,
  /** How often a relay that stands by tries to take the lease. */
  standByMs: 250,
  /** How long the bus may take to show that it is there, before each renewal: a relay without a bus must not keep the lease. */
  busProbeMs: 700,
  /** One statement about the lease; the connection of one that takes longer is replaced, because the term is over then. */
  leaseStatementMs: 1_500,
  /** The pause after a renewal that failed: there is time for a few before the term is over. */
  renewAgainMs: 50,
  /** One statement of the deliveries, each of which reads or writes a few rows. */
  statementMs: 2_000,
  /** A relay that is stalled within a transaction holds its row locks no longer than this. */
  idleInTransactionMs: 1_000,
  /** How often the table is looked at. Writers ask for their own rows at once, so this is for what they could not ask for. */
  pollIntervalMs: 250,
  /** Keys taken into account by one look; the next look goes on behind them, so that none waits for ever. */
  keysPerPoll: 500,
  /** Rows of one key read at a time. */
  rowsPerRead: 50,
  /** Stations spoken to at once by the poll: each request waits for one durable append. */
  stationKeysAtOnce: 64,
  /** Sessions and credentials written at once by the poll; apart from stations, so that a log-in never waits for an actor. */
  bucketKeysAtOnce: 64,
  /** How long one command to a station may take; a station that is being handed over answers within 500 ms. */
  stationTimeoutMs: 2_000,
  /** How long one write to a bucket may take. */
  bucketTimeoutMs: 2_000,
  /** How long storing one event in a stream may take. */
  streamTimeoutMs: 2_000,
  /** A stream counts as having lost its end when its leader says so this often, with this pause between. */
  lossConfirmations: 3,
  lossConfirmMs: 300,
  /** First and longest pause before a key that could not be delivered is tried again, doubling; retries never end. */
  retryPauseMs: 100,
  longestRetryPauseMs: 5_000,
  /** How often one write of a kill switch is tried anew because another one came in between; one relay delivers, so once is rare. */
  switchAttempts: 10,
  /** A flush waits this long for its rows; its caller gives up sooner. */
  flushTimeoutMs: 4_000,
  /** Rows that wait longer than this show that something is wrong: the longest pause of a key is over by then. */
  lateMs: 10_000,
  /** A look at the waiting rows, for a monitor; twice this is within what the gateway waits for a service's health. */
  summaryMs: 400,
  /** Waiting rows counted by that look: beyond it their exact number no longer matters, and counting costs. */
  summaryRows: 10_000,
  /** The last rows of a key that tell a flush how far the replicas must come. */
  barrierRows: 16,
  /**
   * A row that was delivered longer ago tells a flush nothing: a replica that answers is complete up to 1.5 s ago, and a
   * stream that was lost since may never come as far again. A flush waits no longer than this for its own rows.
   */
  barrierAgeMs: 5_000,
  /** Delivered rows are kept this long for whoever looks into a fault. */
  deliveredRetentionHours: 24,
  /**
   * Failed rows, and deletions of credentials, are kept this long. With a deletion the bucket's own marker goes, and a
   * gateway that was cut off from the bus for longer than this without a restart would not learn of it.
   */
  markedRetentionHours: 30 * 24,
  /** How often the retention job runs, and how many rows one statement deletes. */
  retention: { everyMs: 600_000, rowsPerBatch: 1_000 },
  /**
   * How often the newest message of each stream is noted: what was stored since cannot be missed when it is lost. Three
   * small requests, and a row only where something was stored.
   */
  markIntervalMs: 1_000,
  /** Stations, and entries of buckets, that are told anew by one step: its progress is noted afterwards. */
  announcedStations: 100,
  announcedEntries: 500,
  /** Of those, how many at once: fewer than the outbox may, which must not wait for it. */
  announcedAtOnce: 32,
  /**
   * How often the word that a bucket is told is given anew: it vanishes with the age of seven days that entries of SESSIONS
   * have, and should outlive a relay that is away for days.
   */
  toldAgainMs: 24 * 3_600_000,
  /** How long a stopping relay waits for deliveries under way; what is cut off is delivered again by the next one. */
  drainTimeoutMs: 3_000,
} as const;
