/** Every limit of the database access, with its reason. Milliseconds unless named otherwise. */
export const DATABASE_LIMITS = {
  /**
   * Pieces of evidence about an ended intent that are read with it, the newest: a station keeps some four of each kind, and a
   * person has long been at work on one with more.
   */
  laterEvidence: 200,
  /** Connections of one pool; each service has one, and nine of them stay within PostgreSQL's default of 100. */
  maxConnections: 10,
  /** A statement that runs longer is a fault, and its caller has given up: calls over the bus wait for 5 s. */
  statementTimeoutMs: 4_000,
  /** Waiting for a row that another transaction has locked; shorter than a statement, so that the cause is named. */
  lockTimeoutMs: 3_000,
  /**
   * A transaction whose process hangs must not keep its locks: the request is repeated by another process, which waits for
   * them for `lockTimeoutMs` at most. Between two statements of ours there are milliseconds.
   */
  idleInTransactionTimeoutMs: 2_000,
  /** A server that stands still says nothing: longer than a statement or a connection may take, then the pool is replaced. */
  statementDeadlineMs: 6_000,
  /** The same for a transaction once it has begun; a few statements, none of which may take longer than its time-out. */
  transactionDeadlineMs: 10_000,
  /** How often a process uses the connection by which it shows how many it may open: well within `idleConnectionSeconds`. */
  saidMs: 60_000,
  /** How long it is known which process carries out a request: far longer than any caller waits for the answer. */
  claimSeconds: 600,
  /** How often a process that claims requests removes the old claims. */
  claimRemovalMs: 60_000,
  /** An unused connection is closed after this long; a busy minute opens it again in a few milliseconds. */
  idleConnectionSeconds: 300,
  /** Connections are renewed now and then, so that none outlives a fail-over or a changed address for long. */
  connectionLifetimeSeconds: 3_600,
  /** PostgreSQL on the same network answers in milliseconds; longer means that it is not there. */
  connectTimeoutSeconds: 5,
  /** A check whether PostgreSQL answers at all: twice this is within what the gateway waits for a service's health. */
  probeMs: 400,
  /**
   * First and longest pause of a pool between two dials that the server has not answered; it doubles, and up to half of it
   * is left out by chance. A restarted server is found quickly, and no pool dials more than twice a second for long.
   */
  redial: { firstMs: 50, longestMs: 1_000 },
  /**
   * A peer that is gone without a word is noticed on an idle connection after the first of these and `keepAliveCount`
   * intervals, on both sides: a dead client's session must not keep its locks, which PostgreSQL's own default of two hours
   * would let it.
   */
  keepAliveIdleSeconds: 3,
  keepAliveIntervalSeconds: 1,
  keepAliveCount: 3,
  /** The same on a connection on which the server has sent something that the client does not acknowledge. */
  unacknowledgedMs: 6_000,
  /** Shutdown waits this long for running statements before it cuts them off: a process ends within 2 s of Ctrl-C. */
  closeTimeoutSeconds: 1,
  /** How often a stopping process cancels the statement of a transaction that has not ended: the next statement may have begun. */
  cancelAgainMs: 50,
  /** How long a starting process tries to reach PostgreSQL before it ends with a sentence, as with the bus. */
  startDeadlineMs: 10_000,
  /** The longest statement of a migration: one that rewrites a large table. Longer means that no answer comes any more. */
  migrationStatementMs: 30 * 60_000,
  /** How long one program waits for another that migrates the same database. */
  migrationLockTimeoutMs: 30_000,
  /** By how much all numbers jump in a restored database: more than years of a large installation can have given. */
  restoredGap: 1_000_000,
  /** `migrate` logs what it waits for after this long: without a line, a person would think that it hangs. */
  longWaitMs: 2_000,
} as const;
