/** The lease of the relay that delivers. Only the clock of PostgreSQL decides when it lapses. */
import type { Database, Queryable } from "../../db/pool.ts";
import { RELAY_LIMITS } from "../limits.ts";

/**
 * Takes a lapsed lease and returns its new epoch; returns undefined while another relay holds the lease. A lease with more
 * than `leaseMs` left exists only after the clock was set back, so it counts as lapsed. Never waits for a lock: when the row
 * is locked, the holder is renewing the lease.
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

/** Returns false when another relay has taken the lease. */
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

/** Another relay has taken the lease, so the statement wrote nothing. */
export class LeaseLostError extends Error {
  readonly code = "relay_lease_lost";
  constructor(epoch: number) {
    super(`Another relay has taken over from epoch ${epoch}.`);
    this.name = "LeaseLostError";
  }
}

/**
 * The first part of a statement that only the relay with this epoch may run. The other parts join `fence`, which has no row
 * for another epoch. The lease row stays locked until the statement has committed, so that no relay can take over in between.
 */
export function fence(sql: Queryable, epoch: number) {
  return sql`with fence as (select epoch from relay_lease where epoch = ${epoch} for share)`;
}
