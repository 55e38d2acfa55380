/**
 * What the webhook signer deletes after its retention. A delivery that has waited for a paused endpoint for the same time
 * fails, and is then kept for as long again.
 */
import type { Database } from "../db/pool.ts";
import type { Retention } from "../runtime/retention.ts";
import { SIGNER_LIMITS } from "./limits.ts";
import * as sql from "./sql/deliveries.ts";
import { deleteExpiredSecrets } from "./sql/endpoints.ts";

/** Several processes may run it at once. `retentionDays`: how long a delivery that has ended can be read. */
export function signerRetention(
  database: Database,
  retentionDays: number,
): Retention<"forgotten" | "deliveries" | "events" | "secrets"> {
  const { eventRetentionDays, retention } = SIGNER_LIMITS;
  return {
    what: "old webhook records",
    ...retention,
    removals: {
      forgotten: (rows) => sql.endForgottenDeliveries(database, { olderThanDays: retentionDays, rows }),
      deliveries: (rows) => sql.deleteOldDeliveries(database, { olderThanDays: retentionDays, rows }),
      events: (rows) => sql.deleteOldEvents(database, { olderThanDays: eventRetentionDays, rows }),
      secrets: (rows) => deleteExpiredSecrets(database, rows),
    },
  };
}
