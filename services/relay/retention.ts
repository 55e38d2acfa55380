/** Deletes outbox rows that were delivered, or refused for good, and are past their retention. */
import { CREDENTIALS } from "../bus/streams.ts";
import type { Retention } from "../runtime/retention.ts";
import { removeMarker } from "./buckets.ts";
import type { RelayDeps } from "./deps.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { deleteDeliveredRows, deleteRows, listOldMarkedRows } from "./sql/outbox.ts";

/** Several relays may run it at once. */
export function outboxRetention(deps: Pick<RelayDeps, "bus" | "sql">): Retention<"delivered" | "marked"> {
  return {
    what: "old outbox rows",
    ...RELAY_LIMITS.retention,
    removals: {
      delivered: (rows) => deleteDeliveredRows(deps.sql, RELAY_LIMITS.deliveredRetentionHours, rows),
      marked: (rows) => removeMarked(deps, rows),
    },
  };
}

/** Removes the marker of a deleted credential from the bucket before its row, so that no marker is left behind. */
async function removeMarked({ bus, sql }: Pick<RelayDeps, "bus" | "sql">, limit: number): Promise<number> {
  const rows = await listOldMarkedRows(sql, RELAY_LIMITS.markedRetentionHours, limit);
  for (const { deleted_hash: hash } of rows) {
    if (hash !== null) await removeMarker(bus, CREDENTIALS, hash);
  }
  await deleteRows(
    sql,
    rows.map((row) => row.outbox_id),
  );
  return rows.length;
}
