/** Work that is done again and again, or tried again: at intervals, with pauses that grow, with a bound on each wait, without a log line each time. */
import { setTimeout as delay } from "node:timers/promises";

/** Often enough to be seen by a person who reads the newest lines, and no flood. */
const EVERY_MS = 60_000;
/** Reasons of one work that are remembered: some name a thing of their own each time. */
const REASONS = 32;

export interface Repeated {
  stop(): Promise<void>;
}

/** Does something at intervals until stopped; one turn at a time. Work that fails is done again at the next turn. */
export function repeat(
  options: {
    readonly everyMs: number;
    readonly what: string;
    readonly log: { warn(fields: object, message: string): void };
  },
  work: (stopping: AbortSignal) => Promise<unknown>,
): Repeated {
  const stopping = new AbortController();
  const { signal } = stopping;
  const run = async (): Promise<void> => {
    // A reason is logged once and not at each turn: what is missing may be away for hours. Where reasons alternate, or turns
    // with nothing to do come between, each reason is logged once a minute.
    let lastReason = "";
    const logged = new LoggedReasons();
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
      await delay(options.everyMs, undefined, { signal }).catch(() => undefined);
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
 * Whether work is due whose times are in the database: turns come often, and most need no statement, because the next time is
 * known. It is read again at the latest after `idleMs`: other processes write such work, too.
 */
export class DueTime {
  readonly #readDueInMs: () => Promise<number | undefined>;
  readonly #idleMs: number;
  #nextReadAtMs = 0;

  /** `readDueInMs`: how long until the next work is due, not above zero when it is; undefined when none waits. */
  constructor(readDueInMs: () => Promise<number | undefined>, idleMs: number) {
    this.#readDueInMs = readDueInMs;
    this.#idleMs = idleMs;
  }

  /** For each turn. */
  async isDue(): Promise<boolean> {
    const nowMs = performance.now();
    if (nowMs < this.#nextReadAtMs) return false;
    // Before the read: what is written meanwhile may bring the time forward.
    this.#nextReadAtMs = nowMs + this.#idleMs;
    const dueInMs = (await this.#readDueInMs()) ?? Number.POSITIVE_INFINITY;
    this.#nextReadAtMs = Math.min(this.#nextReadAtMs, nowMs + dueInMs);
    return dueInMs <= 0;
  }

  /** This process has written such work, or may have. */
  readAgain(): void {
    this.#nextReadAtMs = 0;
  }
}

export interface BackOffLimits {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * After `attempt` attempts, counted from one, the pause has doubled as often, up to the longest. Up to half of it is left
 * out by chance, so that processes that failed together do not try again together.
 */
export function backOffMs(attempt: number, limits: BackOffLimits): number {
  return Math.min(limits.longestMs, limits.firstMs * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
}

/** What the work resolves to, or undefined when the time is over; the work goes on then. */
export async function within<T>(work: Promise<T>, limitMs: number): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), limitMs);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Reads something that may not answer: one read for all callers at a time, and a bound on the wait of each. */
export type Sample<T> = () => Promise<T | undefined>;

/**
 * Undefined when `read` fails or is not done after `limitMs`. A read that takes longer goes on; a caller meanwhile
 * waits for that one, so that there is never more than one.
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
 * Reads for many callers: each gets a read that began after it asked, and callers who ask while one is under way share the next
 * one. So there is never more than one.
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

/** Which reasons of failures were logged within the last minute. */
class LoggedReasons {
  readonly #atMs = new Map<string, number>();

  /** Whether a line is due; the caller writes it then. */
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

/** What it logs with; pino fits. */
export interface OutageLines {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/**
 * Reports an outage without a line for each attempt: one for each reason when it begins and each minute while it lasts, one at
 * its end.
 */
export class OutageLog {
  readonly #log: OutageLines;
  readonly #what: string;
  readonly #logged = new LoggedReasons();
  #sinceMs: number | undefined;
  #attempts = 0;

  /** `what` completes "… does not work", and "… works again": for example "the audit copy". */
  constructor(log: OutageLines, what: string) {
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
