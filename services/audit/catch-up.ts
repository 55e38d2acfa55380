/**
 * How a reader makes sure that the copy has what the log had when it was asked: it compares the copier's position with
 * the newest sequence in the stream. A reader may run in another process than the copier, so the database is asked.
 */
import { setTimeout as pause } from "node:timers/promises";
import { STATION_LOG } from "../bus/streams.ts";
import { stationLogSubject } from "../bus/subjects.ts";
import type { AuditDeps } from "./deps.ts";
import { AUDIT_LIMITS } from "./limits.ts";
import { readPosition } from "./sql/position.ts";

/** What was read, with the position that the copy had in the same moment. */
export interface PositionedRead {
  readonly position: number;
}

/**
 * Reads until the copy is known to hold everything that the log says now about the station (or, without one, about
 * any), or until `isEnough` says that what was read cannot change. `isComplete` is false when the bound passed first.
 */
export async function readWhenCopied<TRead extends PositionedRead>(
  deps: AuditDeps,
  stationId: number | undefined,
  read: () => Promise<TRead>,
  isEnough: (found: TRead) => boolean = () => false,
): Promise<{ readonly found: TRead; readonly isComplete: boolean }> {
  const deadlineMs = Date.now() + AUDIT_LIMITS.catchUpMs;
  let found = await read();
  if (isEnough(found)) return { found, isComplete: true };
  // A position that has reached the sequence proves the read complete in whichever order the two were asked for. One
  // behind the log's end proves that the log has lost its end, and that the copier has not noticed yet.
  const newest = await newestSequence(deps, stationId);
  let end = await newestSequence(deps, undefined);
  let pauseMs: number = AUDIT_LIMITS.catchUpPauseMs;
  while ((found.position < newest || found.position > end) && !isEnough(found)) {
    if (Date.now() >= deadlineMs) return { found, isComplete: false };
    await pause(pauseMs);
    pauseMs = Math.min(pauseMs * 2, AUDIT_LIMITS.catchUpLongestPauseMs);
    found = await read();
    if (found.position > end) end = await newestSequence(deps, undefined);
  }
  return { found, isComplete: true };
}

/** Waits only. False when the bound passed first. */
export async function waitUntilCopied(deps: AuditDeps, stationId?: number): Promise<boolean> {
  const read = async () => ({ position: await readPosition(deps.database, STATION_LOG.name) });
  return (await readWhenCopied(deps, stationId, read)).isComplete;
}

/** From the stream's leader, not from a replica that may lag. */
async function newestSequence({ bus }: AuditDeps, stationId: number | undefined): Promise<number> {
  if (stationId === undefined) return (await bus.jsm.streams.info(STATION_LOG.name)).state.last_seq;
  const newest = await bus.jsm.streams.getMessage(STATION_LOG.name, { last_by_subj: stationLogSubject(stationId) });
  return newest?.seq ?? 0;
}
