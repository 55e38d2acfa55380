/** Removes what is past its retention, in the background, a batch at a time. */
import type { AuditDeps } from "./deps.ts";
import { AUDIT_LIMITS } from "./limits.ts";
import type { AuditSettings } from "./settings.ts";
import { purgeEvents, purgeIntents } from "./sql/purge-copy.ts";

/** One turn: all that is past its retention now. */
export async function purgeOnce(
  deps: Pick<AuditDeps, "database">,
  settings: AuditSettings,
  isStopping = () => false,
): Promise<void> {
  const rows = AUDIT_LIMITS.purgeBatchRows;
  const olderThanDays = settings.eventRetentionDays;
  const purges = [
    () => purgeEvents(deps.database, { olderThanDays, rows }),
    () => purgeIntents(deps.database, { olderThanDays, rows }),
  ];
  for (const purge of purges) {
    let purged: number = rows;
    while (purged === rows && !isStopping()) purged = await purge();
  }
}

/** Purges now and then until stopped. A turn that fails is made up for by the next. */
export function startPurge(deps: AuditDeps, settings: AuditSettings): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const turn = async (): Promise<void> => {
    await purgeOnce(deps, settings, () => stopping.signal.aborted).catch((error: unknown) => {
      deps.log.warn({ err: error }, "old audit rows could not be purged");
    });
  };
  let running = turn();
  const timer = setInterval(() => {
    running = running.then(turn);
  }, AUDIT_LIMITS.purgeIntervalMs);
  return {
    async stop() {
      stopping.abort();
      clearInterval(timer);
      await running;
    },
  };
}
