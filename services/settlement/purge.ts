/** Removes answers that are past their retention, in the background, a batch at a time. */
import type { SettlementDeps } from "./deps.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";
import { purgeOpenings } from "./sql/openings.ts";

const BOUNDS = { olderThanDays: SETTLEMENT_LIMITS.openingRetentionDays, rows: SETTLEMENT_LIMITS.purgeBatchRows };

/** Purges now and then until stopped. A purge that fails is tried again at the next turn. */
export function startPurge(deps: SettlementDeps): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const turn = async (): Promise<void> => {
    try {
      let purged: number = BOUNDS.rows;
      while (purged === BOUNDS.rows && !stopping.signal.aborted) purged = await purgeOpenings(deps.database, BOUNDS);
    } catch (error) {
      deps.log.warn({ err: error }, "old idempotency keys could not be purged");
    }
  };
  let running = turn();
  const timer = setInterval(() => {
    running = running.then(turn);
  }, SETTLEMENT_LIMITS.purgeIntervalMs);
  return {
    async stop() {
      stopping.abort();
      clearInterval(timer);
      await running;
    },
  };
}
