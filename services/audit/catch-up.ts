/**
 * How a reader makes sure that the copy has what the log had when it was asked: it compares the copier's position with
 * the newest sequence in the stream. A reader may run in another process than the copier, so the database is asked.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { AuditDeps, AuditedLog } from "./deps.ts";
import { AUDIT_LIMITS } from "./limits.ts";
import { readPosition } from "./sql/position.ts";

/**
 * Waits until the copy is known to hold everything that the log says now about the station (or, without one, that all logs
 * say about any). False when the bound passed first, or when a leader does not answer.
 */
export async function waitUntilCopied(deps: AuditDeps, stationId?: number): Promise<boolean> {
  const deadlineMs = performance.now() + AUDIT_LIMITS.catchUpMs;
  const logs = stationId === undefined ? deps.logs.all : [deps.logs.of(stationId)];
  const waited = await Promise.all(
    logs.map((log) =>
      waitForLog(deps, { log, stationId, deadlineMs }).catch((error: unknown) => {
        deps.log.warn({ reason: String(error), stream: log.name }, "how far the audit copy must be is not known");
        return false;
      }),
    ),
  );
  return waited.every(Boolean);
}

interface Waiting {
  readonly log: AuditedLog;
  readonly stationId: number | undefined;
  readonly deadlineMs: number;
}

async function waitForLog(deps: AuditDeps, { log, stationId, deadlineMs }: Waiting): Promise<boolean> {
  const readCopied = () => readPosition(deps.database, log.name);
  let position = await readCopied();
  // A position that has reached the sequence proves the copy complete in whichever order the two were asked for. One
  // behind the log's end proves that the log has lost its end, and that the copier has not noticed yet.
  let end = await endOf(deps, log);
  const newest = await newestCommit(deps, log, { stationId, end });
  let pauseMs: number = AUDIT_LIMITS.catchUpPauseMs;
  while (position < newest || position > end) {
    if (performance.now() >= deadlineMs) return false;
    await pause(pauseMs);
    pauseMs = Math.min(pauseMs * 2, AUDIT_LIMITS.catchUpLongestPauseMs);
    position = await readCopied();
    if (position > end) end = await endOf(deps, log);
  }
  return true;
}

/** From the stream's leader, not from a copy that may lag. */
async function endOf({ jsm }: AuditDeps, log: AuditedLog): Promise<number> {
  return (await jsm.streams.info(log.name)).state.last_seq;
}

/** The newest commit of the station, or of all: the log has other messages, too, which are not copied. */
async function newestCommit(
  { jsm, logs }: AuditDeps,
  log: AuditedLog,
  { stationId, end }: { readonly stationId: number | undefined; readonly end: number },
): Promise<number> {
  const subject = stationId === undefined ? log.commits : logs.subject(stationId);
  const newest = await jsm.streams.getMessage(log.name, { last_by_subj: subject });
  return Math.min(newest?.seq ?? 0, end);
}
