/** Reports an outage without a line for each attempt: one when it begins, one each minute while it lasts, one at its end. */

/** Often enough to be seen by a person who looks at the newest lines, and no flood. */
const EVERY_MS = 60_000;

/** What it logs with; pino fits. */
export interface OutageLines {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export class OutageLog {
  readonly #log: OutageLines;
  readonly #what: string;
  #sinceMs: number | undefined;
  #loggedAtMs = 0;
  #attempts = 0;
  #reason = "";

  /** `what` completes "… does not work", and "… works again": for example "the audit copy". */
  constructor(log: OutageLines, what: string) {
    this.#log = log;
    this.#what = what;
  }

  failed(error: unknown): void {
    const nowMs = performance.now();
    this.#attempts += 1;
    const reason = error instanceof Error ? error.message : String(error);
    const isNew = this.#sinceMs === undefined || reason !== this.#reason;
    this.#sinceMs ??= nowMs;
    if (!isNew && nowMs - this.#loggedAtMs < EVERY_MS) return;
    this.#loggedAtMs = nowMs;
    this.#reason = reason;
    this.#log.warn({ reason, attempts: this.#attempts }, `${this.#what} does not work`);
  }

  worked(): void {
    if (this.#sinceMs === undefined) return;
    const afterMs = Math.round(performance.now() - this.#sinceMs);
    this.#log.info({ afterMs, attempts: this.#attempts }, `${this.#what} works again`);
    this.#sinceMs = undefined;
    this.#attempts = 0;
    this.#reason = "";
  }
}
