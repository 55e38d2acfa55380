/**
 * Repetitions and retries: at intervals, with growing pauses, with a time limit, and without a log line for each
 * failure.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { LineLog } from "./log.ts";

/**
 * The same reason is logged once in this time: a person who reads the newest lines sees it, and it does not flood the
 * log.
 */
const EVERY_MS = 60_000;
/** How many reasons of one job are remembered: some reasons name another thing each time. */
const REASONS = 32;

export interface Repeated {
  stop(): Promise<void>;
}

/**
 * Runs `work` at intervals until stopped, never twice at the same time, and first after `firstMs`, by default at once. After a
 * failure it runs again at the next turn.
 */
export function repeat(
  options: {
    readonly everyMs: number;
    readonly firstMs?: number;
    readonly what: string;
    readonly log: { warn(fields: object, message: string): void };
  },
  work: (stopping: AbortSignal) => Promise<unknown>,
): Repeated {
  const stopping = new AbortController();
  const { signal } = stopping;
  const pause = async (ms: number): Promise<void> => await delay(ms, undefined, { signal }).catch(() => undefined);
  const run = async (): Promise<void> => {
    // A failure may last for hours, so the same reason is logged only once and not at each turn. Where reasons
    // alternate, or successful turns come between, each reason is logged once a minute.
    let lastReason = "";
    const logged = new LoggedReasons();
    if (options.firstMs !== undefined) await pause(options.firstMs);
    while (!signal.aborted) {
      try {
        await work(signal);
        lastReason = "";
      } catch (error) {
        const reason = String(error);
        const isDue = reason !== lastReason && !signal.aborted && logged.isDue(reason);
        lastReason = reason;
        if (isDue) options.log.warn({ err: error }, `${options.what} has failed`);
      }
      await pause(options.everyMs);
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/**
 * Decides whether work that is scheduled in the database is due. Turns come often, and most need no statement, because
 * the next due time is known. It is read again after `idleMs` at the latest, because other processes schedule work,
 * too.
 */
export class DueTime {
  readonly #readDueInMs: () => Promise<number | undefined>;
  readonly #idleMs: number;
  #nextReadAtMs = 0;

  /**
   * `readDueInMs` resolves to how long until the next work is due: zero or less when it is due, undefined when there is
   * no work.
   */
  constructor(readDueInMs: () => Promise<number | undefined>, idleMs: number) {
    this.#readDueInMs = readDueInMs;
    this.#idleMs = idleMs;
  }

  /** Called at each turn. */
  async isDue(): Promise<boolean> {
    const nowMs = performance.now();
    if (nowMs < this.#nextReadAtMs) return false;
    // Set before the read, so that a `readAgain` during the read is not overwritten by a later time.
    this.#nextReadAtMs = nowMs + this.#idleMs;
    const dueInMs = (await this.#readDueInMs()) ?? Number.POSITIVE_INFINITY;
    this.#nextReadAtMs = Math.min(this.#nextReadAtMs, nowMs + dueInMs);
    return dueInMs <= 0;
  }

  /** Called when this process has scheduled work, or may have. */
  readAgain(): void {
    this.#nextReadAtMs = 0;
  }
}

interface BackOffLimits {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * The pause after an attempt, counted from one. It doubles with each attempt, up to `longestMs`. A random part of up to
 * half is subtracted, so that processes that failed together do not try again together.
 */
export function backOffMs(attempt: number, limits: BackOffLimits): number {
  return Math.min(limits.longestMs, limits.firstMs * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
}

/** Resolves to the result of `work`, or to undefined after `limitMs`. The work itself then continues. */
export async function within<T>(work: Promise<T>, limitMs: number): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), limitMs);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** A read that may get no answer. All callers share one read at a time, and each waits only for a limited time. */
export type Sample<T> = () => Promise<T | undefined>;

/**
 * Resolves to undefined when `read` fails or takes longer than `limitMs`. A longer read continues, and later callers
 * wait for it, so that there is never more than one.
 */
export function sample<T>(read: () => Promise<T>, limitMs: number): Sample<T> {
  let underWay: Promise<T | undefined> | undefined;
  return async () => {
    underWay ??= read()
      .catch(() => undefined)
      .finally(() => {
        underWay = undefined;
      });
    return await within(underWay, limitMs);
  };
}

/**
 * Shares reads between callers. Each caller gets a read that began after its call; calls during a read share the next
 * one. So there is never more than one read at a time.
 */
export function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const start = (): Promise<T> => {
    next = undefined;
    const started = read();
    const ended = (): void => {
      if (underWay === started) underWay = undefined;
    };
    underWay = started;
    started.then(ended, ended);
    return started;
  };
  return () => {
    if (underWay === undefined) return start();
    next ??= underWay.then(start, start);
    return next;
  };
}

/** Remembers which reasons were logged within the last minute. */
export class LoggedReasons {
  readonly #atMs = new Map<string, number>();

  /** Whether the caller must log this reason now. */
  isDue(reason: string): boolean {
    const nowMs = performance.now();
    if (nowMs - (this.#atMs.get(reason) ?? Number.NEGATIVE_INFINITY) < EVERY_MS) return false;
    if (this.#atMs.size >= REASONS) this.#atMs.clear();
    this.#atMs.set(reason, nowMs);
    return true;
  }

  clear(): void {
    this.#atMs.clear();
  }
}

/**
 * Logs an outage without a line for each attempt: a line for each reason at the beginning and then each minute, and a
 * line at the end.
 */
export class OutageLog {
  readonly #log: LineLog;
  readonly #what: string;
  readonly #logged = new LoggedReasons();
  #sinceMs: number | undefined;
  #attempts = 0;

  /** `what` completes "… does not work", and "… works again": for example "the audit copy". */
  constructor(log: LineLog, what: string) {
    this.#log = log;
    this.#what = what;
  }

  failed(error: unknown): void {
    this.#attempts += 1;
    this.#sinceMs ??= performance.now();
    const reason = error instanceof Error ? error.message : String(error);
    if (this.#logged.isDue(reason)) {
      this.#log.warn({ reason, attempts: this.#attempts }, `${this.#what} does not work`);
    }
  }

  worked(): void {
    if (this.#sinceMs === undefined) return;
    const afterMs = Math.round(performance.now() - this.#sinceMs);
    this.#log.info({ afterMs, attempts: this.#attempts }, `${this.#what} works again`);
    this.#sinceMs = undefined;
    this.#attempts = 0;
    this.#logged.clear();
  }
}
