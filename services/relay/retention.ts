/** Outbox rows that were delivered, or refused for good, longer ago than they are kept. */
import { CREDENTIALS } from "../bus/streams.ts";
import type { Database } from "../db/pool.ts";
import type { Retention } from "../runtime/retention.ts";
import { type BucketDeps, removeMarker } from "./buckets.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { deleteDeliveredRows, deleteRows, listOldMarkedRows } from "./sql/outbox-rows.ts";

interface OutboxRetentionDeps extends BucketDeps {
  readonly sql: Database;
}

/** Several relays may run it at once. */
export function outboxRetention(deps: OutboxRetentionDeps): Retention<"delivered" | "marked"> {
  return {
    what: "old outbox rows",
    ...RELAY_LIMITS.retention,
    removals: {
      delivered: (rows) => deleteDeliveredRows(deps.sql, RELAY_LIMITS.deliveredRetentionHours, rows),
      marked: (rows) => removeMarked(deps, rows),
    },
  };
}

/** The marker of a deleted credential leaves the bucket before its row goes, so that no marker is left behind. */
async function removeMarked(deps: OutboxRetentionDeps, limit: number): Promise<number> {
  const rows = await listOldMarkedRows(deps.sql, RELAY_LIMITS.markedRetentionHours, limit);
  for (const { deleted_hash: hash } of rows) {
    if (hash !== null) await removeMarker(deps, CREDENTIALS, hash);
  }
  await deleteRows(
    deps.sql,
    rows.map((row) => row.outbox_id),
  );
  return rows.length;
}
