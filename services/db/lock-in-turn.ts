/** Locks that order the rows of one key: each writer of the key waits for them. */
import { DATABASE_LIMITS } from "./limits.ts";
import type { Fragment, Transaction } from "./pool.ts";

/**
 * Locks the keys, an `integer[]`, until the transaction ends. All transactions lock keys in the same order, so that no
 * two wait for each other. Throws when other transactions hold a key for `lockTimeoutMs`.
 */
export async function lockInTurn(sql: Transaction, lockClass: number, keys: Fragment): Promise<void> {
  const deadlineMs = performance.now() + DATABASE_LIMITS.lockTimeoutMs;
  // PostgreSQL waits only a moment in each round, so that a transaction whose process hangs does not stay in the queue
  // of a lock.
  for (;;) {
    const [row] = await sql<[{ is_locked: boolean }]>`select lock_in_turn(${lockClass}, ${keys}) as is_locked`;
    if (row.is_locked) return;
    if (performance.now() >= deadlineMs)
      throw new Error(`Other transactions keep a lock of class ${lockClass} too long.`);
  }
}
