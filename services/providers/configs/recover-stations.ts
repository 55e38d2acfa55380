/** After a loss of the bus's newest data every station is told its provider again, behind the station itself. */
import type { Database } from "../../db/pool.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { markUntold, noteMarked, noteRecovered, takeRecovery } from "../sql/recovery.ts";

/** Marks the next stations; whoever looks for stations that have not been told does the rest. */
export async function recoverStations(database: Database): Promise<void> {
  await database.begin(async (sql) => {
    const recovery = await takeRecovery(sql);
    if (recovery === undefined) return;
    const newest = await markUntold(sql, recovery.marked_through, PROVIDER_LIMITS.stationsPerRecovery);
    if (newest === undefined) await noteRecovered(sql, recovery.announced);
    else await noteMarked(sql, { ...recovery, marked_through: newest });
  });
}
