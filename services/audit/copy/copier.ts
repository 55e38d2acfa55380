/**
 * The copier: follows one log of the stations and writes each commit to PostgreSQL exactly once.
 *
 *   hold the position ──► read the log from there ──► write a batch and the new position ──► …
 *          ▲                                                                             │
 *          └── anything that fails (database, bus, hold lost): pause, and from the start ◄┘
 *
 * The position is stored in the same transaction as the rows, so there is nothing to acknowledge and nothing that could be
 * delivered twice: a crash at any point continues at the row after the last one written, at once and in order. Any copy
 * of the log answers the reads (`bus/direct-reader.ts`), so no server's end stops them. Copiers of other processes stand by.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type ReadMessage, readBatch, readNext } from "../../bus/direct-reader.ts";
import { OutageLog } from "../../runtime/repeat.ts";
import type { AuditDeps, AuditedLog } from "../deps.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import type { CopierFigures } from "../metrics.ts";
import { holdPosition, releasePosition } from "../sql/position.ts";
import type { CopiedCommit } from "./commit-rows.ts";
import { readCommit } from "./read-commit.ts";
import { startingPosition } from "./starting-position.ts";
import { HoldLostError, writeBatch } from "./write-batch.ts";

export interface CopierDeps extends AuditDeps {
  readonly figures: CopierFigures;
}

export interface Copier {
  /** Ends after the batch that is being written; a database that does not answer is not waited for. */
  stop(): Promise<void>;
}

/** Copies every log; of the copiers of one log in all processes one works. */
export function startCopiers(deps: CopierDeps): Copier {
  const stopping = new AbortController();
  const holder = randomUUID();
  const running = Promise.all(
    deps.logs.all.map((log) => new LogCopier(deps, { log, holder, signal: stopping.signal }).run()),
  );
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
      await Promise.all(deps.logs.all.map(({ name }) => release(deps, { stream: name, holder })));
    },
  };
}

async function release(deps: CopierDeps, key: { readonly stream: string; readonly holder: string }): Promise<void> {
  await releasePosition(deps.database, key).catch((error: unknown) => {
    deps.log.warn({ err: error, stream: key.stream }, "the hold on the audit copy lapses by itself");
  });
}

interface Work {
  readonly log: AuditedLog;
  readonly holder: string;
  readonly signal: AbortSignal;
}

class LogCopier {
  readonly #deps: CopierDeps;
  readonly #work: Work;
  readonly #outage: OutageLog;
  #pauseMs: number = AUDIT_LIMITS.retryPauseMs;
  #position = 0;
  /** How far the log is read: its messages that are of no station move this, and not the position. */
  #readTo = 0;
  #heldAtMs = 0;

  constructor(deps: CopierDeps, work: Work) {
    this.#deps = deps;
    this.#work = work;
    this.#outage = new OutageLog(deps.log, `the audit copy of ${work.log.name}`);
  }

  /** Until the signal is aborted. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#work;
    while (!signal.aborted) {
      try {
        const position = await this.#hold();
        if (position === undefined) await sleep(AUDIT_LIMITS.holdRenewalMs, signal);
        else await this.#follow(position);
      } catch (error) {
        if (error instanceof HoldLostError) {
          this.#deps.log.info({ stream: this.#work.log.name }, "another process copies the station log now");
        } else {
          this.#deps.figures.interruptions.add({});
          this.#outage.failed(error);
          await sleep(this.#pauseMs, signal);
          this.#pauseMs = Math.min(this.#pauseMs * 2, AUDIT_LIMITS.longestRetryPauseMs);
        }
      }
    }
  }

  async #follow(held: number): Promise<void> {
    const { signal, holder, log } = this.#work;
    // A server that was away may have lost what it had, so the place in the log has to be found anew.
    const interrupted = new AbortController();
    const stopListening = this.#deps.bus.onChange(() => interrupted.abort());
    const over = AbortSignal.any([signal, interrupted.signal]);
    try {
      this.#position = await startingPosition(this.#deps, { log, holder, position: held, signal: over });
      this.#readTo = this.#position;
      const checkAtMs = performance.now() + AUDIT_LIMITS.checkMs;
      // A log can lose its end without a word to this process, so its place is checked again now and then.
      while (!over.aborted && performance.now() < checkAtMs) await this.#turn(over);
    } finally {
      stopListening();
    }
  }

  /** Copies one batch, or waits a moment where there is none. */
  async #turn(signal: AbortSignal): Promise<void> {
    const { name: stream, commits: subjects } = this.#work.log;
    const { bus } = this.#deps;
    const timeoutMs = AUDIT_LIMITS.readMs;
    const next = await this.#read(signal, () => readNext(bus, { stream, subjects, from: this.#readTo + 1, timeoutMs }));
    await this.#renewHold();
    if (next === undefined) return;
    if (next === null) return await sleep(AUDIT_LIMITS.pollMs, signal);
    await sleep(AUDIT_LIMITS.lingerMs, signal);
    for (let isFull = true; isFull && !signal.aborted; ) {
      const from = this.#readTo + 1;
      const most = AUDIT_LIMITS.batchCommits;
      const messages = await this.#read(signal, () => readBatch(bus.nc, { stream, from, most, timeoutMs }));
      if (messages === undefined) return;
      await this.#write(messages);
      isFull = messages.length === most;
    }
  }

  /** Undefined where no copy of the log answers: another attempt follows soon. */
  async #read<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read();
    } catch (error) {
      if (signal.aborted) return undefined;
      this.#outage.failed(error);
      await sleep(AUDIT_LIMITS.pollMs, signal);
      return undefined;
    }
  }

  async #write(messages: readonly ReadMessage[]): Promise<void> {
    const { log, database, figures } = this.#deps;
    const stored = messages.filter(({ subject }) => isOfStation(this.#work.log, subject));
    const to = stored.at(-1)?.sequence;
    if (to !== undefined) {
      const {
        log: { name: stream },
        holder,
      } = this.#work;
      const commits = this.#commitsOf(stored);
      const gaps = await writeBatch(database, { stream, holder, from: this.#position, to, commits });
      this.#position = to;
      this.#heldAtMs = performance.now();
      figures.commits.add({}, commits.length);
      figures.gaps.add({}, gaps.length);
      for (const gap of gaps) log.error(gap, "commits are missing in the audit copy");
    }
    this.#readTo = messages.at(-1)?.sequence ?? this.#readTo;
    this.#pauseMs = AUDIT_LIMITS.retryPauseMs;
    this.#outage.worked();
  }

  async #renewHold(): Promise<void> {
    if (performance.now() - this.#heldAtMs < AUDIT_LIMITS.holdRenewalMs) return;
    if ((await this.#hold()) !== this.#position) throw new HoldLostError();
    this.#outage.worked();
  }

  async #hold(): Promise<number | undefined> {
    const { log, holder } = this.#work;
    const key = { stream: log.name, holder, holdMs: AUDIT_LIMITS.holdMs };
    const position = await holdPosition(this.#deps.database, key);
    this.#heldAtMs = performance.now();
    return position;
  }

  #commitsOf(messages: readonly ReadMessage[]): readonly CopiedCommit[] {
    return messages.flatMap((message) => {
      const { subject, sequence } = message;
      const commit = readCommit(message);
      if (commit !== undefined) return [{ commit, streamSequence: sequence }];
      this.#deps.log.error({ subject, sequence }, "a message in the station log is no commit");
      return [];
    });
  }
}

/** The subjects of commits end in two wildcards. */
function isOfStation({ commits }: AuditedLog, subject: string): boolean {
  return subject.startsWith(commits.slice(0, commits.indexOf("*")));
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => undefined);
}
