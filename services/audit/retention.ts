/** Deletes copied events and intents that are past their retention. */
import type { Retention } from "../runtime/retention.ts";
import type { AuditDeps } from "./deps.ts";
import { AUDIT_LIMITS } from "./limits.ts";
import type { AuditSettings } from "./settings.ts";
import { deleteOldEvents, deleteOldIntents } from "./sql/copy.ts";
import { deleteOldPayments } from "./sql/payments.ts";

export function copyRetention(
  { database }: Pick<AuditDeps, "database">,
  { eventRetentionDays: olderThanDays }: AuditSettings,
): Retention<"events" | "intents" | "payments"> {
  return {
    what: "old audit rows",
    ...AUDIT_LIMITS.retention,
    removals: {
      events: (rows) => deleteOldEvents(database, { olderThanDays, rows }),
      intents: (rows) => deleteOldIntents(database, { olderThanDays, rows }),
      payments: (rows) => deleteOldPayments(database, { olderThanDays, rows }),
    },
  };
}
