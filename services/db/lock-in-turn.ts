/** The locks that order the rows of one key, which each writer of the key waits for. */
import { DATABASE_LIMITS } from "./limits.ts";
import type { Fragment, Transaction } from "./pool.ts";

/**
 * Locks the keys, an `integer[]`, until the transaction ends. They are locked in one order, so that no two
 * transactions wait for each other. Throws when others keep a key for `lockTimeoutMs`.
 */
export async function lockInTurn(sql: Transaction, lockClass: number, keys: Fragment): Promise<void> {
  const giveUpAtMs = performance.now() + DATABASE_LIMITS.lockTimeoutMs;
  // PostgreSQL waits for a moment each time: the queue of a lock then holds no transaction whose process has hung.
  for (;;) {
    const [row] = await sql<[{ is_locked: boolean }]>`select lock_in_turn(${lockClass}, ${keys}) as is_locked`;
    if (row.is_locked) return;
    if (performance.now() >= giveUpAtMs)
      throw new Error(`Other transactions keep a lock of class ${lockClass} too long.`);
  }
}
