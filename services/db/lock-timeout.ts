/** PostgreSQL's code for a lock that was not granted within `lock_timeout`. */
const LOCK_NOT_AVAILABLE = "55P03";

/** Whether a statement has failed because it waited for a lock longer than its transaction's `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === LOCK_NOT_AVAILABLE;
}

/** PostgreSQL's code for a statement that ran longer than its `statement_timeout`. */
const STATEMENT_CANCELLED = "57014";

/**
 * Whether a statement has failed because it took too long. Behind another one that waits for the same row, a statement waits for
 * two locks, each up to `lock_timeout`, so `statement_timeout` may end it first.
 */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === STATEMENT_CANCELLED;
}
