/** Every limit, wait and retry of the robotics service, with its reason. */
export const ROBOTICS_LIMITS = {
  /** Tasks of one consumer that are offered or accepted: no fleet at one filial carries as many at once. */
  openTasks: 500,
  /** The `Retry-After` of an offer that this limit refuses: a robot is under way for minutes. */
  openTasksRetryMs: 5_000,
  /** Consumers of one filial: a pause and each event concern them all. */
  consumersPerFilial: 50,
  /** Random bytes of a credential: 256 bits cannot be guessed, so that its SHA-256 needs neither salt nor stretching. */
  credentialBytes: 32,
  /** How often the service checks for offers past their deadline: their consumers receive the event within a second. */
  expiryIntervalMs: 250,
  /**
   * How often the service reads the next deadline: well within the shortest life of an offer, which another process may write.
   */
  expiryReadMs: 1_000,
  /** Offers that one transaction expires: a few hundred short statements, well within its deadline. */
  offersPerTransaction: 50,
  /** Transactions of one check; the next check expires what is left, so that a stopping process need not wait for all. */
  transactionsPerCheck: 20,
  /** How often the retention job runs, and how many tasks one statement deletes. */
  retention: { everyMs: 3_600_000, rowsPerBatch: 1_000 },
  /** A metric that PostgreSQL does not answer within this time is reported as unknown. */
  metricMs: 400,
  /** How long the relay may take to deliver; no request waits for it. */
  flushTimeoutMs: 4_000,
} as const;
