/** How long the reconciliation service keeps what it records. Lines, issues and decisions stay. */
import type { Retention } from "../runtime/retention.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { RUN_LIMITS } from "./limits.ts";
import { deleteOldDifferences } from "./sql/runs.ts";

/** Several processes may run it at once. */
export function reconciliationRetention({ database }: Pick<ReconciliationDeps, "database">): Retention<"differences"> {
  const { runRetentionDays, retention } = RUN_LIMITS;
  return {
    what: "differences of old runs",
    ...retention,
    removals: { differences: (rows) => deleteOldDifferences(database, runRetentionDays, rows) },
  };
}
