/**
 * How a reader makes sure that the copy has what the log had when it was asked: it compares the copier's position with
 * the newest commit's sequence in the stream. A reader may run in another process than the copier, so the database is asked.
 */
import { setTimeout as pause } from "node:timers/promises";
import { STATION_LOG } from "../bus/streams.ts";
import { STATION_LOG_ALL, stationLogSubject } from "../bus/subjects.ts";
import type { AuditDeps } from "./deps.ts";
import { AUDIT_LIMITS } from "./limits.ts";
import { readPosition } from "./sql/position.ts";

/**
 * Waits until the copy is known to hold everything that the log says now about the station (or, without one, about any).
 * False when the bound passed first.
 */
export async function waitUntilCopied(deps: AuditDeps, stationId?: number): Promise<boolean> {
  const deadlineMs = Date.now() + AUDIT_LIMITS.catchUpMs;
  const readCopied = () => readPosition(deps.database, STATION_LOG.name);
  let position = await readCopied();
  // A position that has reached the sequence proves the copy complete in whichever order the two were asked for. One
  // behind the log's end proves that the log has lost its end, and that the copier has not noticed yet.
  const newest = await newestSequence(deps, stationId);
  let end = await newestSequence(deps, undefined);
  let pauseMs: number = AUDIT_LIMITS.catchUpPauseMs;
  while (position < newest || position > end) {
    if (Date.now() >= deadlineMs) return false;
    await pause(pauseMs);
    pauseMs = Math.min(pauseMs * 2, AUDIT_LIMITS.catchUpLongestPauseMs);
    position = await readCopied();
    if (position > end) end = await newestSequence(deps, undefined);
  }
  return true;
}

/** The newest commit, of one station or of any, from the stream's leader: another replica may lag. */
async function newestSequence({ bus }: AuditDeps, stationId: number | undefined): Promise<number> {
  const subject = stationId === undefined ? STATION_LOG_ALL : stationLogSubject(stationId);
  const newest = await bus.jsm.streams.getMessage(STATION_LOG.name, { last_by_subj: subject });
  return newest?.seq ?? 0;
}
