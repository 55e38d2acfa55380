/** Keeps what the service records bounded. */
import { removeInBatches } from "../db/remove-in-batches.ts";
import type { ProvidersDeps } from "./deps.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import {
  deleteOldCallbacks,
  deleteOldRefusals,
  deleteOldTasks,
  deleteOldVariants,
  deleteOldWithdrawals,
} from "./sql/housekeeping.ts";

export async function removeOldRows({ database, log }: Pick<ProvidersDeps, "database" | "log">): Promise<void> {
  const { rowsPerRemoval: rows, refusalRows: keep } = PROVIDER_LIMITS;
  const { variantRetentionDays, callbackRetentionDays, taskRetentionDays, refusalRetentionDays } = PROVIDER_LIMITS;
  const callbacks = await removeInBatches(rows, () =>
    deleteOldCallbacks(database, { olderThanDays: callbackRetentionDays, rows }),
  );
  const variants = await removeInBatches(rows, () =>
    deleteOldVariants(database, { olderThanDays: variantRetentionDays, rows }),
  );
  const tasks = await removeInBatches(rows, () => deleteOldTasks(database, { olderThanDays: taskRetentionDays, rows }));
  const withdrawals = await removeInBatches(rows, () =>
    deleteOldWithdrawals(database, { olderThanDays: taskRetentionDays, rows }),
  );
  const refusals = await removeInBatches(rows, () =>
    deleteOldRefusals(database, { olderThanDays: refusalRetentionDays, rows, keep }),
  );
  if (callbacks + variants + tasks + withdrawals + refusals > 0)
    log.info({ callbacks, variants, tasks, withdrawals, refusals }, "removed old provider records");
}
