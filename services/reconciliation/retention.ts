/** How long the reconciliation service keeps what it records. Lines, issues and decisions stay. */
import type { Bus } from "../bus/connection.ts";
import { deleteFile, listOldFiles } from "../bus/statement-files.ts";
import type { Retention } from "../runtime/retention.ts";
import type { ReconciliationDeps } from "./deps.ts";
import { IMPORT_LIMITS, MAPPING_LIMITS, RUN_LIMITS } from "./limits.ts";
import { clearFile, listEndedFiles, listUnknownFiles } from "./sql/imports.ts";
import { removeMappingTests } from "./sql/mapping-tests.ts";
import { deleteOldDifferences } from "./sql/runs.ts";

type Names = "differences" | "mapping_tests" | "files" | "orphans";

/** Several processes may run it at once. */
export function reconciliationRetention({
  database,
  bus,
}: Pick<ReconciliationDeps, "database"> & { readonly bus: Pick<Bus, "jsm" | "clock"> }): Retention<Names> {
  const { runRetentionDays, retention } = RUN_LIMITS;
  return {
    what: "differences of old runs, tests of mappings and files",
    ...retention,
    removals: {
      differences: (rows) => deleteOldDifferences(database, runRetentionDays, rows),
      files: (rows) => removeEndedFiles(database, bus, rows),
      orphans: () => removeOrphans(database, bus),
      mapping_tests: (rows) => removeMappingTests(database, { olderThanDays: MAPPING_LIMITS.testRetentionDays, rows }),
    },
  };
}

async function removeEndedFiles(
  database: ReconciliationDeps["database"],
  bus: Pick<Bus, "jsm" | "clock">,
  limit: number,
): Promise<number> {
  const ended = await listEndedFiles(database, { olderThanHours: IMPORT_LIMITS.fileRetentionHours, limit });
  for (const { import_id: importId, object_name: name } of ended) {
    await deleteFile(bus, name);
    await clearFile(database, importId);
  }
  return ended.length;
}

/** Deletes the files of interrupted uploads, all at once, because the bus lists them so. */
async function removeOrphans(
  database: ReconciliationDeps["database"],
  bus: Pick<Bus, "jsm" | "clock">,
): Promise<number> {
  const old = await listOldFiles(bus, IMPORT_LIMITS.orphanHours * 3_600_000);
  const orphans = await listUnknownFiles(database, old);
  for (const name of orphans) await deleteFile(bus, name);
  // Nothing is left for another batch.
  return 0;
}
