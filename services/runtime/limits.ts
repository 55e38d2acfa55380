/** Every limit of what all processes share, with its reason. Milliseconds unless the name says otherwise. */
export const LOG_LIMITS = {
  /** Log lines that wait for a slow reader, about a megabyte: two seconds of a gateway at full load. */
  waitingCharacters: 1_024 * 1_024,
  /** The pause after a write that failed: a full disk has room again after seconds, not after microseconds. */
  retryMs: 1_000,
  /** How long a process that ends waits for its last lines to be read. */
  flushMs: 500,
  /** How often it checks whether they were. */
  flushPollMs: 5,

  /** Lines about errors are counted in windows of this length; each window ends with a summary of what was left out. */
  windowMs: 10_000,
  /** Lines of one code in a window about callers who are not known: ten show what is tried, more show nothing new. */
  unknownCallerLines: 10,
  /** The same for one known device or person, and for all known ones together: one broken device does not hide the others. */
  knownCallerLines: 5,
  knownCallersLines: 50,
  /** The same for what failed inside, where each line may name another payment. */
  faultLines: 50,
  /** Lines about errors in a window, whatever their codes: about 40 KB/s at most while everything fails. */
  unknownCallerLinesInAll: 100,
  knownCallersLinesInAll: 300,
  faultLinesInAll: 300,
  /** Codes that are counted one by one; those beyond share one count. */
  codes: 256,
} as const;

export const DISK_LIMITS = {
  /** How often free space is measured: a disk that fills at 100 MB/s is noticed well within the default reserve. */
  checkMs: 1_000,
  /** A better tier needs this much more space than the worse one began with. */
  betterFrom: 1.25,
} as const;
