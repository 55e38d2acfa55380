/** Where a copier begins: behind what the log and the copy have in common. What the log has lost of the copy is noted first. */
import { setTimeout as pause } from "node:timers/promises";
import type { Transaction } from "../../db/pool.ts";
import type { AuditDeps, AuditedLog } from "../deps.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import { movePosition } from "../sql/position.ts";
import { findSharedPosition } from "./find-position.ts";
import { noteLosses } from "./note-losses.ts";
import { HoldLostError } from "./write-batch.ts";

export interface Start {
  readonly log: AuditedLog;
  readonly holder: string;
  /** What the copy says. */
  readonly position: number;
  readonly signal: AbortSignal;
}

/** Throws {@link HoldLostError}, and what the leader's silence throws. */
export async function startingPosition(deps: AuditDeps, start: Start): Promise<number> {
  const { log, holder, position } = start;
  const { name: stream } = log;
  const shared = await confirmedPosition(deps, start);
  if (shared === position) return position;
  deps.log.error({ stream, position, sharedPosition: shared }, "the station log has lost what its audit copy has");
  const move = async (sql: Transaction, to: number): Promise<void> => {
    const isHeld = await movePosition(sql, { stream, holder, holdMs: AUDIT_LIMITS.holdMs, from: position, to });
    if (!isHeld) throw new HoldLostError();
  };
  const fence = (sql: Transaction): Promise<void> => move(sql, position);
  const losses = await noteLosses(deps, { log, sequence: shared, nowMs: Date.now(), fence });
  for (const loss of losses) deps.log.error(loss, "a station has lost commits");
  await deps.database.begin((sql) => move(sql, shared));
  return shared;
}

/**
 * A leader that was elected a moment ago may not have applied all that it has, and would look as if it had lost it: only
 * what it still says after a while counts.
 */
async function confirmedPosition(deps: AuditDeps, { log, position, signal }: Start): Promise<number> {
  let found = await findSharedPosition(deps, log, position);
  for (let times = 1; found !== position && times < AUDIT_LIMITS.lossConfirmations; times += 1) {
    await pause(AUDIT_LIMITS.lossConfirmMs, undefined, { signal });
    const again = await findSharedPosition(deps, log, position);
    if (again !== found) times = 0;
    found = again;
  }
  return found;
}
