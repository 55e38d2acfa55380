/** Every limit and wait of the sandbox provider, with its reason. */
export const SANDBOX_LIMITS = {
  /** Bytes of a request's body; a payment has a few hundred. */
  bodyBytes: 16 * 1_024,
  /** A client that is slower with its request is cut off. */
  requestMs: 10_000,
  connections: 256,
  /** How long a request that must hang is left open: longer than any client waits. */
  hangMs: 30_000,
  /** How long the answer is held back so that its callback overtakes it. */
  overtakenMs: 1_000,
  /** Accounts of one sandbox: each is opened by a test config and never closed. */
  accounts: 1_000,
  /** How far ahead a payment may expire. */
  longestPaymentMs: 24 * 3_600_000,
  /** After a rotation callbacks carry a signature with the old secret too, for as long as the old one may be accepted. */
  secretOverlapMs: 24 * 3_600_000,
  /** How often due decisions and callbacks are polled while requests come, and for how long after the last one. */
  workIntervalMs: 50,
  busyMs: 2_000,
  /** The longest pause between polls after that: other processes may have written due work. */
  idlePollMs: 500,
  decisionsPerTurn: 50,
  callbacksAtOnce: 32,
  /** A claimed callback is due again after this: longer than one attempt. */
  callbackClaimMs: 15_000,
  callbackMs: 5_000,
  /**
   * The first and the longest pause before a callback is sent again (each is twice the last), and the number of
   * attempts.
   */
  callbackPauseMs: 500,
  longestCallbackPauseMs: 60_000,
  callbackAttempts: 60,
  /** The pause between the callbacks of one payment, where a scenario sends several. */
  callbackGapMs: 150,
  /** How long after a cancellation or the deadline late money comes, or an unpaid payment expires. */
  lateMs: 1_000,
  /** Lines of one page of the statement. */
  statementLines: { default: 100, max: 1_000 },
  /** Payments, with their callbacks, are kept this long. */
  retentionDays: 30,
  retention: { everyMs: 3_600_000, rowsPerBatch: 500 },
  databaseConnections: 6,
  drainTimeoutMs: 3_000,
} as const;
