/**
 * The copier: follows STATION_LOG and writes each commit to PostgreSQL exactly once.
 *
 *   hold the position ──► follow the stream from there ──► write a batch and the new position ──► …
 *          ▲                                                                                    │
 *          └──── anything that fails (database, bus, hold lost): pause, and from the start ◄────┘
 *
 * The position stands in the same transaction as the rows, so there is nothing to acknowledge and nothing that could be
 * delivered twice: a crash at any point continues at the row after the last one written, at once and in order. (A
 * durable consumer would hand out what a crashed copier had not acknowledged only after a time-out, behind newer
 * commits, and would take a restored database for one that has everything.) Copiers of other processes stand by.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import { STATION_LOG } from "../../bus/streams.ts";
import { STATION_LOG_ALL } from "../../bus/subjects.ts";
import type { Transaction } from "../../db/pool.ts";
import type { AuditDeps } from "../deps.ts";
import type { CopierFigures } from "../figures.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import { holdPosition, movePosition, releasePosition } from "../sql/position.ts";
import type { CopiedCommit } from "./commit-rows.ts";
import { findSharedPosition } from "./find-position.ts";
import { MessageQueue } from "./message-queue.ts";
import { noteLosses } from "./note-losses.ts";
import { readCommit } from "./read-commit.ts";
import { HoldLostError, writeBatch } from "./write-batch.ts";

export interface CopierDeps extends AuditDeps {
  readonly figures: CopierFigures;
}

export interface Copier {
  /** Ends after the batch that is being written; a database that does not answer is not waited for. */
  stop(): Promise<void>;
}

export function startCopier(deps: CopierDeps): Copier {
  const stopping = new AbortController();
  const holder = randomUUID();
  const running = copyUntilStopped(deps, holder, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      const hasEnded = await Promise.race([
        running.then(() => true),
        pause(AUDIT_LIMITS.stopMs, false, { ref: false }),
      ]);
      if (!hasEnded) {
        // What was not committed is copied again, by this or another copier.
        deps.log.warn({}, "the audit copy is cut off: the database does not answer");
        await deps.database.end({ timeout: 0 });
        await running;
        return;
      }
      await releasePosition(deps.database, { stream: STATION_LOG.name, holder }).catch((error: unknown) => {
        deps.log.warn({ err: error }, "the hold on the audit copy lapses by itself");
      });
    },
  };
}

async function copyUntilStopped(deps: CopierDeps, holder: string, signal: AbortSignal): Promise<void> {
  let pauseMs: number = AUDIT_LIMITS.retryPauseMs;
  while (!signal.aborted) {
    try {
      const key = { stream: STATION_LOG.name, holder, holdMs: AUDIT_LIMITS.holdMs };
      const position = await holdPosition(deps.database, key);
      if (position === undefined) {
        await sleep(AUDIT_LIMITS.holdRenewalMs, signal);
        continue;
      }
      const isProven = (): void => {
        pauseMs = AUDIT_LIMITS.retryPauseMs;
      };
      await follow(deps, { holder, signal, position, onWritten: isProven });
    } catch (error) {
      if (error instanceof HoldLostError) {
        deps.log.info({}, "another process copies the station log now");
      } else {
        deps.figures.interruptions.add({});
        deps.log.warn({ err: error, retryInMs: pauseMs }, "the audit copy is interrupted");
        await sleep(pauseMs, signal);
        pauseMs = Math.min(pauseMs * 2, AUDIT_LIMITS.longestRetryPauseMs);
      }
    }
  }
}

interface Follow {
  readonly holder: string;
  readonly signal: AbortSignal;
  readonly position: number;
  readonly onWritten: () => void;
}

async function follow(deps: CopierDeps, { holder, signal, position: start, onWritten }: Follow): Promise<void> {
  const stream = STATION_LOG.name;
  const { holdMs } = AUDIT_LIMITS;
  // A server that was away may have lost what it had, so the place in the stream has to be looked for anew.
  const interrupted = new AbortController();
  const stopListening = deps.bus.onChange(() => interrupted.abort());
  const over = AbortSignal.any([signal, interrupted.signal]);
  let feed: ConsumerMessages | undefined;
  const closeFeed = (): void => void feed?.close();
  over.addEventListener("abort", closeFeed, { once: true });
  try {
    let position = await startingPosition(deps, holder, start);
    feed = await openFeed(deps, position);
    if (over.aborted) return;
    const queue = new MessageQueue<JsMsg>(AUDIT_LIMITS.queuedCommits);
    void queue.fill(feed);
    while (!signal.aborted) {
      const messages = await queue.take(AUDIT_LIMITS.batchCommits, AUDIT_LIMITS.holdRenewalMs, AUDIT_LIMITS.lingerMs);
      if (messages === undefined) return;
      const newest = messages.at(-1);
      if (newest === undefined) {
        if ((await holdPosition(deps.database, { stream, holder, holdMs })) !== position) throw new HoldLostError();
        continue;
      }
      const batch = { stream, holder, from: position, to: newest.seq, commits: commitsOf(deps, messages) };
      const gaps = await writeBatch(deps.database, batch);
      position = newest.seq;
      deps.figures.commits.add({}, batch.commits.length);
      deps.figures.gaps.add({}, gaps.length);
      onWritten();
      for (const gap of gaps) deps.log.error(gap, "commits are missing in the audit copy");
    }
  } finally {
    over.removeEventListener("abort", closeFeed);
    stopListening();
    await feed?.close();
  }
}

/** Behind what the stream and the copy have in common; what the stream has lost of the copy is noted first. */
async function startingPosition(deps: AuditDeps, holder: string, position: number): Promise<number> {
  const stream = STATION_LOG.name;
  const shared = await findSharedPosition(deps, position);
  if (shared === position) return position;
  deps.log.error({ position, sharedPosition: shared }, "the station log has lost what its audit copy has");
  const move = async (sql: Transaction, to: number): Promise<void> => {
    const isHeld = await movePosition(sql, { stream, holder, holdMs: AUDIT_LIMITS.holdMs, from: position, to });
    if (!isHeld) throw new HoldLostError();
  };
  const losses = await noteLosses(deps, { sequence: shared, nowMs: Date.now(), fence: (sql) => move(sql, position) });
  for (const loss of losses) deps.log.error(loss, "a station has lost commits");
  await deps.database.begin((sql) => move(sql, shared));
  return shared;
}

async function openFeed(deps: AuditDeps, position: number): Promise<ConsumerMessages> {
  const consumer = await deps.bus.js.consumers.get(STATION_LOG.name, {
    opt_start_seq: position + 1,
    filter_subjects: STATION_LOG_ALL,
    inactive_threshold: AUDIT_LIMITS.feedForgottenMs,
  });
  return await consumer.consume({
    max_messages: AUDIT_LIMITS.prefetchedCommits,
    expires: AUDIT_LIMITS.pullExpiresMs,
    idle_heartbeat: AUDIT_LIMITS.feedHeartbeatMs,
  });
}

function commitsOf(deps: AuditDeps, messages: readonly JsMsg[]): readonly CopiedCommit[] {
  return messages.flatMap((message) => {
    const commit = readCommit(message);
    if (commit !== undefined) return [{ commit, streamSequence: message.seq }];
    deps.log.error({ subject: message.subject, sequence: message.seq }, "a message in the station log is no commit");
    return [];
  });
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => undefined);
}
