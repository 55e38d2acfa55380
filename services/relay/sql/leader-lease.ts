/** The lease of the relay that delivers, judged by PostgreSQL's clock alone. */
import type { Database, Queryable } from "../../db/pool.ts";
import { RELAY_LIMITS } from "../limits.ts";

/**
 * Takes the lease when it has lapsed and returns its new epoch; undefined while another relay holds it. A lease that would
 * last longer than `leaseMs` was taken before the clock was set back, and counts as lapsed. Never waits for a lock:
 * a row that is locked is being renewed.
 */
export async function takeLease(sql: Database, holder: string): Promise<number | undefined> {
  const [row] = await sql<{ epoch: number }[]>`
    update relay_lease
    set epoch = epoch + 1, holder = ${holder},
        lapses_at = clock_timestamp() + ${RELAY_LIMITS.leaseMs} * interval '1 millisecond'
    where is_only in (
      select is_only from relay_lease
      where lapses_at not between clock_timestamp()
            and clock_timestamp() + ${RELAY_LIMITS.leaseMs} * interval '1 millisecond'
      for update skip locked)
    returning epoch`;
  return row?.epoch;
}

/** False when another relay has taken the lease. */
export async function renewLease(sql: Database, epoch: number): Promise<boolean> {
  const result = await sql`
    update relay_lease set lapses_at = clock_timestamp() + ${RELAY_LIMITS.leaseMs} * interval '1 millisecond'
    where epoch = ${epoch}`;
  return result.count === 1;
}

/** Releases the lease, so that another relay need not wait until it lapses. */
export async function releaseLease(sql: Database, epoch: number): Promise<void> {
  await sql`update relay_lease set lapses_at = '-infinity' where epoch = ${epoch}`;
}

/** Another relay has taken the lease: nothing was written. */
export class LeaseLostError extends Error {
  readonly code = "relay_lease_lost";
  constructor(epoch: number) {
    super(`Another relay has taken over from epoch ${epoch}.`);
    this.name = "LeaseLostError";
  }
}

/**
 * The first part of a statement that only the relay with this epoch may run: its other parts join `fence`, which is empty
 * for any other. The row stays locked until the statement has committed, so that no relay can take over in between.
 */
export function fence(sql: Queryable, epoch: number) {
  return sql`with fence as (select epoch from relay_lease where epoch = ${epoch} for share)`;
}
