/** PostgreSQL's code for a lock that was not granted within `lock_timeout`. */
const LOCK_NOT_AVAILABLE = "55P03";
/** PostgreSQL's code for a statement that ran longer than `statement_timeout`, or that its client cancelled. */
const STATEMENT_CANCELLED = "57014";

/** Whether a statement has failed because it waited for a lock longer than its transaction's `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === LOCK_NOT_AVAILABLE;
}

/**
 * Whether a statement has failed while it waited for the lock of a row. Behind another statement that waits for the same row, it
 * waits for two locks, each up to `lock_timeout`. So `statement_timeout` may end it first, and PostgreSQL's context, in English
 * only, shows that it waited. Any other slow statement is a fault.
 */
export function isEndedWhileLocking(error: unknown): boolean {
  if (!(error instanceof Error && "code" in error && "where" in error)) return false;
  return error.code === STATEMENT_CANCELLED && String(error.where).startsWith("while locking tuple");
}
