/** Keeps what the signer records bounded. */
import { removeInBatches } from "../db/remove-in-batches.ts";
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
  const forgotten = await removeInBatches(rows, () =>
    failForgottenDeliveries(database, { olderThanDays: retentionDays, rows }),
  );
  const deliveries = await removeInBatches(rows, () =>
    deleteOldDeliveries(database, { olderThanDays: retentionDays, rows }),
  );
  const events = await removeInBatches(rows, () =>
    deleteOldEvents(database, { olderThanDays: eventRetentionDays, rows }),
  );
  const secrets = await removeInBatches(rows, () => deleteExpiredSecrets(database, rows));
  if (forgotten + deliveries + events + secrets > 0)
    log.info({ forgotten, deliveries, events, secrets }, "removed old webhook records");
}
