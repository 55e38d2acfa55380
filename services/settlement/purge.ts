/** Deletes what is past its retention, in the background, a batch at a time. */
import type { SettlementDeps } from "./deps.ts";
import { SETTLEMENT_LIMITS } from "./limits.ts";
import { deleteIntentRecords } from "./sql/intent-records.ts";
import { purgeOpenings } from "./sql/openings.ts";

const { openingRetentionDays, intentRecordRetentionDays, purgeBatchRows: rows } = SETTLEMENT_LIMITS;

/** One turn: all that is past its retention now. */
export async function purgeOnce(
  { database }: Pick<SettlementDeps, "database">,
  isStopping = () => false,
): Promise<void> {
  const jobs = [
    () => purgeOpenings(database, { olderThanDays: openingRetentionDays, rows }),
    () => deleteIntentRecords(database, { olderThanDays: intentRecordRetentionDays, rows }),
  ];
  for (const job of jobs) {
    let deleted: number = rows;
    while (deleted === rows && !isStopping()) deleted = await job();
  }
}

/** Deletes now and then until stopped. A turn that fails is tried again at the next one. */
export function startPurge(deps: SettlementDeps): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const turn = async (): Promise<void> => {
    await purgeOnce(deps, () => stopping.signal.aborted).catch((error: unknown) => {
      deps.log.warn({ err: error }, "old idempotency keys could not be deleted");
    });
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
