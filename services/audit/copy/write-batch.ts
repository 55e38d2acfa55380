/** Writes a batch of commits and the copier's new position in one transaction: all of it, or nothing. */
import type { Database } from "../../db/pool.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import { movePosition } from "../sql/position.ts";
import { insertEvents, selectHeads, upsertHeads, upsertIntents } from "../sql/write-copy.ts";
import { batchRows, type Gap } from "./batch-rows.ts";
import type { CopiedCommit } from "./commit-rows.ts";

/** Somebody else copies now; this copier steps back. */
export class HoldLostError extends Error {
  constructor() {
    super("Another process copies the station log now.");
    this.name = "HoldLostError";
  }
}

export interface Batch {
  readonly stream: string;
  readonly holder: string;
  /** The position before and after the batch. */
  readonly from: number;
  readonly to: number;
  readonly commits: readonly CopiedCommit[];
}

/** Returns the gaps that the batch showed. Throws {@link HoldLostError}, having written nothing. */
export async function writeBatch(database: Database, batch: Batch): Promise<readonly Gap[]> {
  const { stream, holder, from, to, commits } = batch;
  return await database.begin(async (sql) => {
    // First, because it locks the position: of two copiers that both believe they hold it, one writes.
    const isHeld = await movePosition(sql, { stream, holder, holdMs: AUDIT_LIMITS.holdMs, from, to });
    if (!isHeld) throw new HoldLostError();
    const stationIds = new Set(commits.map((copied) => copied.commit.state.stationId));
    const rows = batchRows(commits, await selectHeads(sql, [...stationIds]));
    // Sent together and answered together: one round trip for all four.
    await Promise.all([insertEvents(sql, rows.events), upsertIntents(sql, rows.intents), upsertHeads(sql, rows.heads)]);
    return rows.gaps;
  });
}
