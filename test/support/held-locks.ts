/** For tests whose transactions hold locks while the product waits for them. */
import type { Database } from "../../services/db/pool.ts";

/** For the pool of a test whose transactions hold locks, longer than a service may, while the product waits for them. */
export const HOLDS_LOCKS = { idleInTransactionMs: 60_000 } as const;

/** Whether a session of this database waits for a lock. */
export async function isLockAwaited(database: Database): Promise<boolean> {
  const rows = await database`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  return rows.length > 0;
}
