/** Every limit and wait of the audit service, with its reason. Milliseconds unless the name says otherwise. */
export const AUDIT_LIMITS = {
  /** Commits written in one transaction: enough to share a disk flush, few enough to stay within a few megabytes. */
  batchCommits: 256,
  /**
   * How long the first commit of a batch waits for more: one transaction for many costs PostgreSQL and this process a
   * fraction of one for each, and no reader needs a commit sooner.
   */
  lingerMs: 25,
  /** A read of the log; any of its copies answers it in a few milliseconds, and another attempt follows at once. */
  readMs: 300,
  /** After this long without an answer the copier reports an outage: seven reads in a row hardly all go to one stalled copy. */
  silentMs: 2_000,
  /**
   * How often a copier polls for the next commit, and for how long after the last one. Each poll costs the server a read at
   * the end of the stream.
   */
  pollMs: 50,
  busyMs: 1_000,
  /** How often it polls after that: a host's next commit wakes it, and this finds commits whose notice was lost. */
  idlePollMs: 500,
  /** A request to the leader of a log; without an answer there is none now, and the copier tries again. */
  leaderMs: 1_000,
  /** How often the copier checks its place in the log although nothing has failed: a log may lose its end unnoticed. */
  checkMs: 10_000,
  /**
   * A log counts as having lost its end when its leader reports it this many times, with this pause: a leader that was just
   * elected applies what it has within milliseconds.
   */
  lossConfirmations: 3,
  lossConfirmMs: 300,

  /** Another copier takes over from one that has not renewed its hold for this long; after a crash the copy lags by this time. */
  holdMs: 2_000,
  /** How often an idle copier renews its hold, and how often a stand-by tries to take it. */
  holdRenewalMs: 500,
  /** First and longest pause after a copier failed, for example because the database is away. */
  retryPauseMs: 100,
  longestRetryPauseMs: 2_000,

  /** Commits that wait longer than this to be copied show a fault: a take-over and a few pauses are over by then. */
  lateMs: 10_000,
  /** How long a monitor waits for the copy's lag; twice this is within what the gateway waits for a service's health. */
  lagReadMs: 400,

  /** Stations that one statement checks when the log has lost commits; each may have years of events. */
  lossStations: 50,

  /** How long a stopping service waits for the batch that is being written before it cuts the copier's connection. */
  stopMs: 1_000,

  /** How long a reader waits for the newest commits to be copied: less than an actor host waits for the reader. */
  catchUpMs: 1_500,
  /** First and longest pause between two reads of the copy's position: copying takes a few milliseconds, or has failed. */
  catchUpPauseMs: 4,
  catchUpLongestPauseMs: 100,

  /** Steps in one timeline, the creation and the newest; a device may report once a second for half an hour. */
  timelineSteps: 500,
  /** Characters of a reference or a code in a sentence: four times what the longest real one has; the data has all of it. */
  quotedCharacters: 128,
  /** Kill switches in one timeline, the newest: more in half an hour come from a script, and the owner's audit log has all. */
  timelineSwitches: 50,
  /** Attributions in one timeline: each is an operator's decision about another provider payment for the same intent. */
  timelineAttributions: 20,
  /** Closed issues in one timeline, the newest: each is a person's decision about another provider payment for the intent. */
  timelineClosedIssues: 20,

  /** Characters of a reference in the list of payments; the timeline has all of it. */
  paymentReferenceCharacters: 255,
  /** Stations, open collections and open issues that a live count goes through: more than any organization has. */
  liveCount: 100_000,

  /** How often the retention job runs, and how many rows one statement deletes. */
  retention: { everyMs: 3_600_000, rowsPerBatch: 5_000 },

  /** The copiers write one batch after another, on connections that no reader can keep from them; all logs share them. */
  copierConnections: 2,
  /** Readers run a few short statements each. */
  readerConnections: 4,
} as const;
