/** Keeps the outbox bounded: rows go when their retention is over. */
import { CREDENTIALS } from "../bus/streams.ts";
import type { Database } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import { type BucketDeps, removeMarker } from "./buckets.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { deleteDeliveredRows, deleteRows, listOldMarkedRows } from "./sql/outbox-rows.ts";

export interface HousekeepingDeps extends BucketDeps {
  readonly sql: Database;
  readonly log: Pick<Log, "info" | "error">;
}

/** Removes what has outlived its retention. Never rejects: what fails now is done the next time. Several may run at once. */
export async function removeOldRows(deps: HousekeepingDeps): Promise<void> {
  try {
    const delivered = await removeDelivered(deps.sql);
    const marked = await removeMarked(deps);
    if (delivered + marked > 0) deps.log.info({ delivered, marked }, "removed old outbox rows");
  } catch (error) {
    deps.log.error({ err: error }, "old outbox rows could not be removed");
  }
}

async function removeDelivered(sql: Database): Promise<number> {
  const { deliveredRetentionHours, rowsPerRemoval } = RELAY_LIMITS;
  let total = 0;
  for (;;) {
    const removed = await deleteDeliveredRows(sql, deliveredRetentionHours, rowsPerRemoval);
    total += removed;
    if (removed < rowsPerRemoval) return total;
  }
}

/** A deleted credential's marker leaves the bucket before its row goes, so that none is forgotten there. */
async function removeMarked(deps: HousekeepingDeps): Promise<number> {
  const { markedRetentionHours, rowsPerRemoval } = RELAY_LIMITS;
  let total = 0;
  for (;;) {
    const rows = await listOldMarkedRows(deps.sql, markedRetentionHours, rowsPerRemoval);
    for (const { deleted_hash: hash } of rows) {
      if (hash !== null) await removeMarker(deps, CREDENTIALS, hash);
    }
    await deleteRows(
      deps.sql,
      rows.map((row) => row.outbox_id),
    );
    total += rows.length;
    if (rows.length < rowsPerRemoval) return total;
  }
}
