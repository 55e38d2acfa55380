/**
 * How far the audit copy is behind the logs. The reader may be in another process than the copier, so it reads the position
 * from the database and the end of the log from the stream.
 */
import { setTimeout as pause } from "node:timers/promises";
import { NoCopyAnswersError, readNext } from "../../bus/direct-reader.ts";
import { failuresOf } from "../../bus/outage.ts";
import type { StationLogDefinition } from "../../bus/streams.ts";
import type { AuditDeps } from "../deps.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import { readPosition } from "../sql/copy.ts";

/**
 * Waits until all commits that the log has now, of the station or of all stations, are copied. Returns false when that takes
 * longer than `catchUpMs`, or when a leader does not answer.
 */
export async function waitUntilCopied(deps: AuditDeps, stationId?: number): Promise<boolean> {
  const deadlineMs = performance.now() + AUDIT_LIMITS.catchUpMs;
  const logs = stationId === undefined ? deps.logs.all : [deps.logs.of(stationId)];
  const waited = await Promise.all(
    logs.map((log) =>
      waitForLog(deps, log, { stationId, deadlineMs }).catch((error: unknown) => {
        failuresOf(deps.log, "the end of the station log is unknown").failed(error, { stream: log.name });
        return false;
      }),
    ),
  );
  return waited.every(Boolean);
}

async function waitForLog(
  deps: AuditDeps,
  log: StationLogDefinition,
  { stationId, deadlineMs }: { readonly stationId: number | undefined; readonly deadlineMs: number },
): Promise<boolean> {
  const { database, jsm, logs } = deps;
  // The leader answers this; a copy may lag.
  const lastSequence = async (): Promise<number> => (await jsm.streams.info(log.name)).state.last_seq;
  let position = await readPosition(database, log.name);
  // A position that has reached the sequence of the newest commit proves that the copy is complete, in whichever order both
  // were read. A position beyond the end of the log proves that the log has lost its end and that the copier does not know yet.
  let end = await lastSequence();
  // The log also has messages that are not commits and are never copied.
  const subject = stationId === undefined ? log.commits : logs.subject(stationId);
  const newest = await jsm.streams.getMessage(log.name, { last_by_subj: subject });
  const wanted = Math.min(newest?.seq ?? 0, end);
  let pauseMs: number = AUDIT_LIMITS.catchUpPauseMs;
  while (position < wanted || position > end) {
    if (performance.now() >= deadlineMs) return false;
    await pause(pauseMs);
    pauseMs = Math.min(pauseMs * 2, AUDIT_LIMITS.catchUpLongestPauseMs);
    position = await readPosition(database, log.name);
    if (position > end) end = await lastSequence();
  }
  return true;
}

export interface CopyLag {
  readonly log: string;
  /** The sequence of the log's stream up to which everything is copied. */
  readonly position: number;
  /** Messages of the stream after that position. */
  readonly behind: number;
  /** How long the oldest commit that is not copied has waited; zero when all are copied. */
  readonly lateMs: number;
}

/** The lag of each log, whichever process copies it. Throws when the database does not answer, or no copy of a log does. */
export async function readCopyLags(deps: Pick<AuditDeps, "bus" | "database" | "logs">): Promise<readonly CopyLag[]> {
  return await Promise.all(deps.logs.all.map((log) => readCopyLag(deps, log)));
}

async function readCopyLag(
  { bus, database }: Pick<AuditDeps, "bus" | "database">,
  log: StationLogDefinition,
): Promise<CopyLag> {
  const { name: stream, commits: subjects } = log;
  const position = await readPosition(database, stream);
  const read = { stream, from: position + 1, timeoutMs: AUDIT_LIMITS.readMs };
  const oldest = await readNext(bus, { ...read, subjects });
  if (oldest === null) return { log: stream, position, behind: 0, lateMs: 0 };
  const lateMs = Math.max(0, bus.clock.nowMs() - oldest.storedAtMs);
  return { log: stream, position, behind: await countFrom(bus, stream, oldest.sequence), lateMs };
}

/** How many messages the stream has from this sequence on. With a batch of one, the server reports how many more there are. */
async function countFrom({ nc }: AuditDeps["bus"], stream: string, from: number): Promise<number> {
  const query = JSON.stringify({ seq: from, batch: 1 });
  const timeout = AUDIT_LIMITS.readMs;
  const message = await nc.request(`$JS.API.DIRECT.GET.${stream}`, query, { timeout }).catch((cause: unknown) => {
    throw new NoCopyAnswersError(stream, { cause });
  });
  return 1 + Number(message.headers?.get("Nats-Num-Pending") ?? 0);
}
