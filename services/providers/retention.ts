/** How long the providers service keeps what it records. */
import type { Retention } from "../runtime/retention.ts";
import type { ProvidersDeps } from "./deps.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import * as callbacks from "./sql/callbacks.ts";
import { deleteOldWithdrawals } from "./sql/payments.ts";
import { deleteOldTasks } from "./sql/tasks.ts";

/** Several processes may run it at once. */
export function providersRetention({
  database,
}: Pick<ProvidersDeps, "database">): Retention<"callbacks" | "variants" | "tasks" | "withdrawals" | "refusals"> {
  const { callbackRetentionDays, variantRetentionDays, taskRetentionDays } = PROVIDER_LIMITS;
  const { refusalRetentionDays: olderThanDays, refusalRows: keep } = PROVIDER_LIMITS;
  return {
    what: "old provider records",
    ...PROVIDER_LIMITS.retention,
    removals: {
      callbacks: (rows) => callbacks.deleteOldCallbacks(database, callbackRetentionDays, rows),
      variants: (rows) => callbacks.deleteOldVariants(database, variantRetentionDays, rows),
      tasks: (rows) => deleteOldTasks(database, taskRetentionDays, rows),
      withdrawals: (rows) => deleteOldWithdrawals(database, taskRetentionDays, rows),
      refusals: (rows) => callbacks.deleteOldRefusals(database, { olderThanDays, keep, rows }),
    },
  };
}
