/** How long the reconciliation service keeps what it records. Lines, issues and decisions stay. */
import type { Retention } from "../runtime/retention.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { MAPPING_LIMITS, RUN_LIMITS } from "./limits.ts";
import { removeMappingTests } from "./sql/mapping-tests.ts";
import { deleteOldDifferences } from "./sql/runs.ts";

/** Several processes may run it at once. */
export function reconciliationRetention({
  database,
}: Pick<ReconciliationDeps, "database">): Retention<"differences" | "mapping_tests"> {
  const { runRetentionDays, retention } = RUN_LIMITS;
  return {
    what: "differences of old runs and tests of mappings",
    ...retention,
    removals: {
      differences: (rows) => deleteOldDifferences(database, runRetentionDays, rows),
      mapping_tests: (rows) => removeMappingTests(database, { olderThanDays: MAPPING_LIMITS.testRetentionDays, rows }),
    },
  };
}
