/** Every limit and wait of the audit service, with its reason. Times are in milliseconds unless the name has another unit. */
export const AUDIT_LIMITS = {
  /** Commits in one transaction: enough to share a disk flush, and at most a few megabytes. */
  batchCommits: 256,
  /**
   * How long the first commit of a batch waits for more: one transaction for many commits costs a fraction of one transaction
   * for each, and no reader needs a commit sooner.
   */
  lingerMs: 25,
  /** The time-out of one read of the log: a copy answers in a few milliseconds, or the copier reads again at once. */
  readMs: 300,
  /** After this long without an answer the copier logs an outage: it is very unlikely that seven reads in a row reach one stalled copy. */
  silentMs: 2_000,
  /**
   * How often a copier polls for the next commit, and for how long after the last one. Each poll costs the server one read.
   */
  pollMs: 50,
  busyMs: 1_000,
  /** How often it polls after that. The next commit of a host wakes it; these polls find commits whose notice was lost. */
  idlePollMs: 500,
  /** The time-out of a request to the leader of a log. Without an answer the log probably has no leader, and the copier tries again. */
  leaderMs: 1_000,
  /** How often the copier compares its position with the log although nothing has failed: a log may lose its end without an error. */
  checkMs: 10_000,
  /**
   * A log counts as having lost its end when its leader reports it this many times, with this pause: a newly elected leader
   * applies its messages within milliseconds.
   */
  lossConfirmations: 3,
  lossConfirmMs: 300,

  /** A hold lapses when its copier does not renew it for this long. After a crash the copy lags by this time. */
  holdMs: 2_000,
  /** How often an idle copier renews its hold, and how often the other copiers try to take it. */
  holdRenewalMs: 500,
  /** First and longest pause after a failure of a copier, for example because the database does not answer. */
  retryPauseMs: 100,
  longestRetryPauseMs: 2_000,

  /** When a commit waits longer than this to be copied, the service reports a fault: the change to another copier takes less. */
  lateMs: 10_000,
  /** How long a report waits for the lag of the copy: twice this is less than the gateway waits for a service's health. */
  lagReadMs: 400,

  /** Stations that one statement checks when the log has lost commits; each may have years of events. */
  lossStations: 50,

  /** How long a stopping service waits for the batch under way before it closes the copier's connection. */
  stopMs: 1_000,

  /** How long a reader waits until the newest commits are copied: less than an actor host waits for the reader. */
  catchUpMs: 1_500,
  /** First and longest pause between two reads of the copy's position: mostly the copy takes a few milliseconds. */
  catchUpPauseMs: 4,
  catchUpLongestPauseMs: 100,

  /** Steps in one timeline, the creation and the newest; a device may report once a second for half an hour. */
  timelineSteps: 500,
  /** Characters of a reference or a code in a sentence: four times the longest real one. The data has the whole text. */
  quotedCharacters: 128,
  /** The newest kill switches in one timeline: only a script causes more in half an hour, and the owner's audit log has all. */
  timelineSwitches: 50,
  /** Attributions in one timeline: each is an operator's decision about another provider payment for the same intent. */
  timelineAttributions: 20,
  /** The newest closed issues in one timeline: each is a person's decision about another provider payment for the intent. */
  timelineClosedIssues: 20,

  /** Characters of a reference in the list of payments; the timeline has all of it. */
  paymentReferenceCharacters: 255,
  /** The most stations, open collections and open issues that a live count reads: more than any organization has. */
  liveCount: 100_000,

  /** How often the retention job runs, and how many rows one statement deletes. */
  retention: { everyMs: 3_600_000, rowsPerBatch: 5_000 },

  /** The copiers of all logs share these connections, which readers cannot use. Each copier writes one batch after another. */
  copierConnections: 2,
  /** Readers run a few short statements each. */
  readerConnections: 4,
} as const;
