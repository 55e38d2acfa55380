/** Every limit of the database access, with its reason. Times are in milliseconds unless the name has another unit. */
export const DATABASE_LIMITS = {
  /**
   * How many pieces of evidence a query reads with an ended intent: the newest ones. A station keeps about four of each
   * kind, and a person already handles an intent with so many.
   */
  laterEvidence: 200,
  /** Connections of one pool; each service has one, and nine of them stay within PostgreSQL's default of 100. */
  maxConnections: 10,
  /** A statement that runs longer is a fault. Callers over the bus wait only 5 s. */
  statementTimeoutMs: 4_000,
  /**
   * How long a statement waits for a row that another transaction has locked. It is shorter than the statement's
   * time-out, so that the error names the lock.
   */
  lockTimeoutMs: 3_000,
  /**
   * A transaction whose process hangs must not keep its locks: another process repeats the request and waits for the
   * locks for `lockTimeoutMs` at most. A healthy process pauses for milliseconds between two statements.
   */
  idleInTransactionTimeoutMs: 2_000,
  /**
   * A stalled server does not answer. After this time, longer than a statement or a connection may take, the process
   * replaces the pool.
   */
  statementDeadlineMs: 6_000,
  /** The same for a transaction, from its begin: a transaction has a few statements, each with its time-out. */
  transactionDeadlineMs: 10_000,
  /**
   * How often a process compares PostgreSQL's clock with the bus. It uses the connection whose name shows its connection
   * limit: often enough that the connection is never idle for `idleConnectionSeconds`.
   */
  showConnectionsMs: 10_000,
  /** How long the database keeps the claim of a request: far longer than any caller waits for the answer. */
  claimSeconds: 600,
  /** How often a process that claims requests removes the old claims. */
  claimRemovalMs: 60_000,
  /** An unused connection is closed after this long; a busy minute opens it again in a few milliseconds. */
  idleConnectionSeconds: 300,
  /**
   * A pool replaces a connection after this long, so that none stays with an old server after a fail-over or a changed
   * address.
   */
  connectionLifetimeSeconds: 3_600,
  /** PostgreSQL on the same network answers in milliseconds; longer means that it is not there. */
  connectTimeoutSeconds: 5,
  /** A check whether PostgreSQL answers at all: twice this is within what the gateway waits for a service's health. */
  probeMs: 400,
  /**
   * First and longest pause of a pool between two dials without an answer. It doubles, with a random part of up to
   * half. A pool finds a restarted server quickly, and in a long outage it dials at most twice a second.
   */
  redial: { firstMs: 50, longestMs: 1_000 },
  /**
   * When the other side of an idle connection is gone without closing it, each side notices after
   * `keepAliveIdleSeconds` and `keepAliveCount` intervals. A dead client's session must not keep its locks:
   * PostgreSQL's default is two hours.
   */
  keepAliveIdleSeconds: 3,
  keepAliveIntervalSeconds: 1,
  keepAliveCount: 3,
  /**
   * When the server has sent data that the client does not acknowledge, the server ends the connection after this long.
   */
  unacknowledgedMs: 6_000,
  /**
   * How long a shutdown waits for running statements before it closes their connections: a process ends within 2 s of
   * Ctrl-C.
   */
  closeTimeoutSeconds: 1,
  /** How often a stopping process cancels the statement of a transaction that has not ended: the next statement may have begun. */
  cancelAgainMs: 50,
  /** How long a starting process tries to reach PostgreSQL before it ends with an error. */
  startDeadlineMs: 10_000,
  /**
   * The longest statement of a migration: one that rewrites a large table. After this long `migrate` expects no answer.
   */
  migrationStatementMs: 30 * 60_000,
  /** How long one program waits for another that migrates the same database. */
  migrationLockTimeoutMs: 30_000,
  /**
   * By how much `migrate` raises all sequences of a restored database: more ids than were assigned since the backup. The busiest
   * restaurant chain has a million webhook deliveries an hour (`ROBOTICS_EVENTS`), so these are a thousand hours of it. Ids stay
   * exact in JavaScript for nine million restores.
   */
  restoredGap: 1_000_000_000,
  /** `migrate` logs what it waits for after this long: without a log line, a person would think that it hangs. */
  longWaitMs: 2_000,
} as const;
