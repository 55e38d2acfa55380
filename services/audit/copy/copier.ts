/**
 * The copier: follows one station log and writes each commit to PostgreSQL exactly once.
 *
 *   hold the position ──► read the log from there ──► write a batch and the new position ──► …
 *          ▲                                                                             │
 *          └── anything that fails (database, bus, hold lost): pause, and from the start ◄┘
 *
 * One transaction stores the rows and the position, so the next copier after a crash continues after the last stored row.
 * Any copy of the log answers the reads (`services/bus/direct-reader.ts`), so the end of one server does not stop them.
 * The copiers of other processes stand by.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type ReadMessage, readBatch, readNext } from "../../bus/direct-reader.ts";
import type { StationLogDefinition } from "../../bus/streams.ts";
import type { Transaction } from "../../db/pool.ts";
import { OutageLog, within } from "../../runtime/repeat.ts";
import { AUDIT_LIMITS } from "../limits.ts";
import type { CopierMetrics } from "../metrics.ts";
import {
  type Hold,
  HoldLostError,
  holdPosition,
  insertEvents,
  movePosition,
  releasePosition,
  selectHeads,
  upsertHeads,
  upsertIntents,
} from "../sql/copy.ts";
import { applyLaterEvents, selectMissingEnds, upsertPayments } from "../sql/payments.ts";
import { CommitNotice } from "./commit-notice.ts";
import { type LossDeps, startingPosition } from "./lost-commits.ts";
import { paymentRow } from "./payment-rows.ts";
import { batchRows, type Gap, intentRow, readCommit, type StreamedCommit } from "./rows.ts";

interface CopierDeps extends LossDeps {
  readonly metrics: CopierMetrics;
}

interface Copier {
  /** Ends after the batch that is being written, or after `stopMs` when the database does not answer. */
  stop(): Promise<void>;
}

/** Copies every log. Each log has one active copier among all processes. */
export function startCopiers(deps: CopierDeps): Copier {
  const stopping = new AbortController();
  const holder = randomUUID();
  const running = Promise.all(deps.logs.all.map((log) => new LogCopier(deps, log, holder).run(stopping.signal)));
  return {
    async stop() {
      stopping.abort();
      if ((await within(running, AUDIT_LIMITS.stopMs)) === undefined) {
        // Another copier copies what this one has not committed.
        deps.log.warn({}, "the audit copier stops without its last batch: the database does not answer");
        await deps.database.end({ timeout: 0 });
        await running;
        return;
      }
      await Promise.all(deps.logs.all.map(({ name: stream }) => release(deps, { stream, holder })));
    },
  };
}

async function release({ database, log }: CopierDeps, hold: Hold): Promise<void> {
  await releasePosition(database, hold).catch((error: unknown) => {
    log.warn({ err: error, stream: hold.stream }, "the hold on the audit copy was not released; it lapses by itself");
  });
}

class LogCopier {
  readonly #deps: CopierDeps;
  readonly #log: StationLogDefinition;
  readonly #hold: Hold;
  readonly #outage: OutageLog;
  #pauseMs: number = AUDIT_LIMITS.retryPauseMs;
  #position = 0;
  /** The sequence up to which the log is read. Messages that are not commits increase it, but not the position. */
  #readTo = 0;
  readonly #notice: CommitNotice;
  /** Until this time another commit is likely, so the copier polls. */
  #busyUntilMs = 0;
  #heldAtMs = 0;
  /** When the first read of the log without an answer failed; undefined after an answer. */
  #silentSinceMs: number | undefined;

  constructor(deps: CopierDeps, log: StationLogDefinition, holder: string) {
    this.#deps = deps;
    this.#log = log;
    this.#hold = { stream: log.name, holder };
    this.#notice = new CommitNotice(deps.bus.nc, log.commits);
    this.#outage = new OutageLog(deps.log, `the audit copy of ${log.name}`);
  }

  /** Copies until the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const position = await this.#holdPosition();
        if (position === undefined) await sleep(AUDIT_LIMITS.holdRenewalMs, signal);
        else await this.#follow(position, signal);
      } catch (error) {
        if (error instanceof HoldLostError) {
          this.#deps.log.info({ stream: this.#log.name }, "another process copies the station log now");
        } else {
          this.#deps.metrics.interruptions.add({});
          this.#outage.failed(error);
          await sleep(this.#pauseMs, signal);
          this.#pauseMs = Math.min(this.#pauseMs * 2, AUDIT_LIMITS.longestRetryPauseMs);
        }
      }
    }
  }

  async #follow(position: number, signal: AbortSignal): Promise<void> {
    // A server that was away may have lost messages, so the copier then compares its position with the log again.
    const interrupted = new AbortController();
    const stopListening = this.#deps.bus.onChange(() => interrupted.abort());
    const over = AbortSignal.any([signal, interrupted.signal]);
    try {
      this.#position = await startingPosition(this.#deps, { log: this.#log, hold: this.#hold, position }, over);
      this.#readTo = this.#position;
      const checkAtMs = performance.now() + AUDIT_LIMITS.checkMs;
      // A log can lose its end without an error, so the copier also compares its position at intervals.
      while (!over.aborted && performance.now() < checkAtMs) await this.#turn(over);
    } finally {
      stopListening();
      this.#notice.disarm();
    }
  }

  /** Copies what the log has after the position. Waits a moment when it has nothing. */
  async #turn(signal: AbortSignal): Promise<void> {
    const { name: stream, commits: subjects } = this.#log;
    const { bus } = this.#deps;
    const timeoutMs = AUDIT_LIMITS.readMs;
    const next = await this.#read(signal, () => readNext(bus, { stream, subjects, from: this.#readTo + 1, timeoutMs }));
    await this.#renewHold();
    if (next === undefined) return;
    if (next === null) {
      // The log answers, the hold is renewed, and nothing is left to copy.
      this.#outage.worked();
      return await this.#wait(signal);
    }
    await sleep(AUDIT_LIMITS.lingerMs, signal);
    for (let isFull = true; isFull && !signal.aborted; ) {
      const from = this.#readTo + 1;
      const most = AUDIT_LIMITS.batchCommits;
      const messages = await this.#read(signal, () => readBatch(bus.nc, { stream, from, most, timeoutMs }));
      if (messages === undefined) return;
      await this.#copy(messages);
      isFull = messages.length === most;
    }
  }

  /** Waits for the next commit: polls for a while after the last one, and then waits until a host sends one. */
  async #wait(signal: AbortSignal): Promise<void> {
    if (performance.now() < this.#busyUntilMs) return await sleep(AUDIT_LIMITS.pollMs, signal);
    // The caller reads again, because a commit may have arrived before the notice was armed.
    if (!this.#notice.isArmed) return this.#notice.arm();
    if (!(await this.#notice.within(AUDIT_LIMITS.idlePollMs, signal))) return;
    this.#busyUntilMs = performance.now() + AUDIT_LIMITS.busyMs;
    await sleep(AUDIT_LIMITS.lingerMs, signal);
  }

  /**
   * Undefined when no copy of the log answers; the caller reads again soon. The server picks a copy by chance, so while one of
   * three servers is stalled, a third of the reads have no answer. Only a longer silence is an outage.
   */
  async #read<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T | undefined> {
    try {
      const answer = await read();
      this.#silentSinceMs = undefined;
      return answer;
    } catch (error) {
      if (signal.aborted) return undefined;
      this.#silentSinceMs ??= performance.now();
      if (performance.now() - this.#silentSinceMs > AUDIT_LIMITS.silentMs) this.#outage.failed(error);
      await sleep(AUDIT_LIMITS.pollMs, signal);
      return undefined;
    }
  }

  async #copy(messages: readonly ReadMessage[]): Promise<void> {
    const { log, metrics } = this.#deps;
    // The subjects of commits end in two wildcards.
    const { commits: subjects } = this.#log;
    const prefix = subjects.slice(0, subjects.indexOf("*"));
    const stored = messages.filter(({ subject }) => subject.startsWith(prefix));
    const to = stored.at(-1)?.sequence;
    if (to !== undefined) {
      const commits = this.#commitsOf(stored);
      const gaps = await this.#write(commits, to);
      this.#position = to;
      this.#heldAtMs = performance.now();
      this.#busyUntilMs = this.#heldAtMs + AUDIT_LIMITS.busyMs;
      metrics.commits.add({}, commits.length);
      metrics.gaps.add({}, gaps.length);
      for (const { stationId, fromVersion, toVersion } of gaps)
        log.error({ stationId, fromVersion, toVersion }, "commits are missing in the audit copy");
    }
    this.#readTo = messages.at(-1)?.sequence ?? this.#readTo;
    this.#pauseMs = AUDIT_LIMITS.retryPauseMs;
    this.#outage.worked();
  }

  #commitsOf(messages: readonly ReadMessage[]): readonly StreamedCommit[] {
    return messages.flatMap((message) => {
      const { subject, sequence } = message;
      const commit = readCommit(message);
      if (commit !== undefined) return [{ commit, streamSequence: sequence }];
      this.#deps.log.error({ subject, sequence }, "a message in the station log is no commit");
      return [];
    });
  }

  /** Writes the commits and the new position in one transaction. Returns the gaps between the commits. */
  async #write(commits: readonly StreamedCommit[], to: number): Promise<readonly Gap[]> {
    return await this.#deps.database.begin(async (sql) => {
      // This locks the position, so it is first: of two copiers that both believe that they have the hold, only one writes.
      await movePosition(sql, this.#hold, { from: this.#position, to });
      const stationIds = new Set(commits.map(({ commit }) => commit.state.stationId));
      const rows = batchRows(commits, await selectHeads(sql, [...stationIds]));
      // All statements together take one round trip.
      await Promise.all([
        insertEvents(sql, rows.events),
        upsertIntents(sql, rows.intents),
        upsertPayments(sql, rows.payments),
        upsertHeads(sql, rows.heads),
      ]);
      for (const gap of rows.gaps) await copyEnds(sql, gap);
      await applyLaterEvents(sql, rows.laterEvents);
      return rows.gaps;
    });
  }

  async #renewHold(): Promise<void> {
    if (performance.now() - this.#heldAtMs < AUDIT_LIMITS.holdRenewalMs) return;
    if ((await this.#holdPosition()) !== this.#position) throw new HoldLostError();
  }

  async #holdPosition(): Promise<number | undefined> {
    const position = await holdPosition(this.#deps.database, this.#hold, this.#readTo);
    this.#heldAtMs = performance.now();
    return position;
  }
}

/** Copies how the collections ended that only the missing commits had. The settlement service has the end of each. */
async function copyEnds(sql: Transaction, gap: Gap): Promise<void> {
  const { state, atMs } = gap.next;
  const { stationId, organizationId } = state;
  const place = { stationId, organizationId, version: gap.toVersion, atMs };
  const ended = await selectMissingEnds(sql, gap);
  await upsertIntents(
    sql,
    ended.map((intent) => intentRow(place, intent)),
  );
  await upsertPayments(
    sql,
    ended.map((intent) => paymentRow(place, intent, state)),
  );
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => undefined);
}
