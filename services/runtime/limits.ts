/** The limits of logging and of the disk watch, with their reasons. Times are in milliseconds unless the name has another unit. */
export const LOG_LIMITS = {
  /** Characters of log lines that wait for a slow reader: two seconds of a gateway at full load. */
  waitingCharacters: 1_024 * 1_024,
  /** The pause after a write that failed: a full disk has room again after seconds, not after microseconds. */
  retryMs: 1_000,
  /** How often a process tries to write to a terminal that takes nothing. */
  terminalPollMs: 100,
  /** How long a process that ends waits until its last lines are written. */
  flushMs: 500,
  /** How often it checks that. */
  flushPollMs: 5,

  /**
   * The log counts error lines in windows of this length. Each window ends with a summary of the lines that the log
   * left out.
   */
  windowMs: 10_000,
  /** Lines of one code in a window about unknown callers: ten lines show what they try, more show nothing new. */
  unknownCallerLines: 10,
  /**
   * The same for one known device or person, and for all of them together: one broken device does not hide the others.
   */
  knownCallerLines: 5,
  knownCallersLines: 50,
  /** The same for internal errors: each line may name another payment. */
  faultLines: 50,
  /** Error lines in a window for all codes together: about 40 KB/s at most while everything fails. */
  unknownCallerLinesInAll: 100,
  knownCallersLinesInAll: 300,
  faultLinesInAll: 300,
  /** Codes that have separate counts; all further codes share one count. */
  codes: 256,
} as const;

export const DISK_LIMITS = {
  /**
   * How often a process measures free space: it notices a disk that fills at 100 MB/s before the default reserve is
   * used up.
   */
  checkMs: 1_000,
  /** The process returns to a better tier when free space is this many times the threshold of the worse tier. */
  betterFrom: 1.25,
} as const;
