/** Keeps what the service records bounded. */
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
  const callbacks = await all(rows, () => deleteOldCallbacks(database, { olderThanDays: callbackRetentionDays, rows }));
  const variants = await all(rows, () => deleteOldVariants(database, { olderThanDays: variantRetentionDays, rows }));
  const tasks = await all(rows, () => deleteOldTasks(database, { olderThanDays: taskRetentionDays, rows }));
  const withdrawals = await all(rows, () => deleteOldWithdrawals(database, { olderThanDays: taskRetentionDays, rows }));
  const refusals = await all(rows, () =>
    deleteOldRefusals(database, { olderThanDays: refusalRetentionDays, rows, keep }),
  );
  if (callbacks + variants + tasks + withdrawals + refusals > 0)
    log.info({ callbacks, variants, tasks, withdrawals, refusals }, "removed old provider records");
}

async function all(rows: number, remove: () => Promise<number>): Promise<number> {
  let total = 0;
  for (;;) {
    const removed = await remove();
    total += removed;
    if (removed < rows) return total;
  }
}
