/** Every wait and size of the start-up tooling, with its reason. Times are in milliseconds. */
export const deployLimits = {
  /** A loaded disk may take a while to replay JetStream's files after a crash. */
  natsReadyMs: 30_000,
  /** nats-server syncs its files before it ends; on a busy disk that takes seconds. */
  natsStopMs: 10_000,
  /** PostgreSQL replays its write-ahead log after a crash before it is ready. */
  postgresReadyMs: 60_000,
  /** A fast shutdown writes one checkpoint. */
  postgresStopMs: 15_000,
  /** initdb takes about a second; a slow disk gets a minute. */
  postgresInitMs: 60_000,
  /** After kill -9 of the postmaster its children hold the shared memory for a moment longer. */
  postgresRetryMs: 10_000,
  /** How often readiness is checked. */
  readyPollMs: 20,
  /** A server given by URL either answers within this time or is not there. */
  externalServerMs: 5_000,
  /** A service reports ready once its streams, buckets and pools exist; a cold machine needs some seconds. */
  serviceReadyMs: 60_000,
  /** Seeding hashes three passwords and waits until the stations have the devices. */
  seedMs: 15_000,
  /** A service completes the work that it has begun; its limits are shorter than this. */
  serviceStopMs: 15_000,
  /** How long a start that is asked to stop waits for the step that is just starting. */
  startAbandonedMs: 800,
  /** After Ctrl-C, or when a start is stopped, the parts that still run after this time are killed: all end within 2 s. */
  interruptedStopMs: 1_300,
  /** A step may delay the shutdown no longer than the time-outs of its children together. */
  stepStopMs: 20_000,
  /** The pause before a part that ended by itself is started again; it doubles with each further end. */
  restartFirstMs: 200,
  /** The longest such pause: a part runs again within seconds after the cause of its fault has ended. */
  restartMaxMs: 10_000,
  /** After a part has run this long, its next pause is `restartFirstMs` again. */
  restartQuietMs: 60_000,
  /** Ends of one part within `restartWindowMs` after which it is abandoned; with the pauses above that takes 40 s or more. */
  restartMaxEnds: 10,
  /** Ends longer ago than this do not count. A part that has been down for this long is abandoned, too. */
  restartWindowMs: 5 * 60_000,
  /** A server starts with at least this much space: PostgreSQL's recovery writes segments of 16 MB, nats-server an index. */
  startFreeBytes: 64 * 1024 * 1024,
  /** How often a part that waits for space checks whether there is some; the disk is measured once a second. */
  roomPollMs: 200,
  /** A part that ends this soon after the disk had no room ended because of it: a crash frees space, and a start uses it. */
  shortageEndsMs: 10_000,
  /** How often nats-server is asked whether it can store messages, and how long it may take to answer. */
  natsHealthMs: 1_000,
  /** How many answers in a row must report that it cannot store: a single one may be about a short fault. */
  natsHealthFailures: 3,
  /** A server left over from a killed start shuts down properly within this time, or is killed. */
  leftoverStopMs: 15_000,
  /** How long the watchdog lets the children of a killed parent shut down before it kills them. In whole seconds. */
  orphanGraceMs: 10_000,
  /** The size at which a log file is rotated, unless the log has its own: `npm start` divides LOG_MAX_MB. */
  logFileBytes: 4 * 1024 * 1024,
  /** Files of one log: the current one and four older ones, so that a rotation removes a fifth of what is kept. */
  logFiles: 5,
  /** The most that one write adds to a log: one read from a pipe, and the start of a line from earlier reads. */
  logWriteBytes: 128 * 1024,
  /** How much of each log waits in memory for a slow disk; more is dropped and counted. */
  logWaitingBytes: 1024 * 1024,
  /** The pause before a log that could not be written is opened again: a full disk has room again after seconds. */
  logRetryMs: 1_000,
  /** How long the end of a child waits for its last lines to be in its log. */
  logCloseMs: 1_000,
  /** How much of a server's log is read for the reason why it ended. */
  logTailBytes: 16 * 1024,
  /** Package lists and one package of a few megabytes. */
  aptDownloadMs: 180_000,
  /** After this long without a byte from a mirror the next one is tried. In whole seconds. */
  aptSilenceS: 15,
  /** One more try is enough after a single lost connection; after other failures the next mirror is tried. */
  aptRetries: 1,
  /** How many of the machine's Debian mirrors are tried before the public one. */
  debianMirrors: 2,
  /** `--version` of a binary. */
  versionProbeMs: 5_000,
  /** Tries to find a free port. */
  portTries: 50,
} as const;
