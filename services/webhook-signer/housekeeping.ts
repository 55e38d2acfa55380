/** Keeps what the signer records bounded. */
import type { SignerDeps } from "./deps.ts";
import { SIGNER_LIMITS } from "./limits.ts";
import { deleteOldDeliveries, deleteOldEvents, failForgottenDeliveries } from "./sql/housekeeping.ts";
import { deleteExpiredSecrets } from "./sql/secrets.ts";

export async function removeOldRows({
  database,
  log,
  retentionDays,
}: Pick<SignerDeps, "database" | "log" | "retentionDays">): Promise<void> {
  const { rowsPerRemoval: rows, eventRetentionDays } = SIGNER_LIMITS;
  const forgotten = await all(() => failForgottenDeliveries(database, { olderThanDays: retentionDays, rows }));
  const deliveries = await all(() => deleteOldDeliveries(database, { olderThanDays: retentionDays, rows }));
  const events = await all(() => deleteOldEvents(database, { olderThanDays: eventRetentionDays, rows }));
  const secrets = await all(() => deleteExpiredSecrets(database, rows));
  if (forgotten + deliveries + events + secrets > 0)
    log.info({ forgotten, deliveries, events, secrets }, "removed old webhook records");
}

async function all(remove: () => Promise<number>): Promise<number> {
  for (let total = 0; ; ) {
    const removed = await remove();
    total += removed;
    if (removed < SIGNER_LIMITS.rowsPerRemoval) return total;
  }
}
