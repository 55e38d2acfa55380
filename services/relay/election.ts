/**
 * One relay delivers, the others stand by. The relay that delivers has a lease in PostgreSQL, which lapses by PostgreSQL's
 * clock when it is not renewed:
 *
 *   standing by ── lease lapsed, bus up: take it, next epoch ────► delivering ── renew each half second ──┐
 *        ▲                                                          │       ▲                              │
 *        └── not renewed for 1.5 s, taken by another, or stopping ◄─┘       └──────────────────────────────┘
 *
 * A relay whose process is stalled cannot notice that its lease has lapsed. What it still does when it goes on is harmless:
 * everything that it delivers is idempotent or conditional (`delivery.ts`), and what it writes about the bus is fenced by
 * the epoch (`sql/leader-lease.ts`).
 */
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { ageOf, type Moment, now } from "../bus/beats.ts";
import { Failures } from "../bus/outage.ts";
import { closeDatabase, type Database, openDatabase } from "../db/pool.ts";
import type { Log } from "../runtime/log.ts";
import { repeat } from "../runtime/repeat.ts";
import { RELAY_LIMITS } from "./limits.ts";
import { releaseLease, renewLease, takeLease } from "./sql/leader-lease.ts";

/** The time during which this relay delivers. */
export interface Term {
  /** Grows with each term of any relay. */
  readonly epoch: number;
  /** Aborted when the term is over. */
  readonly signal: AbortSignal;
  /** Whether the lease was renewed in time. Asked before each delivery: the signal may come late after a stall. */
  isCurrent(): boolean;
}

interface ElectionOptions {
  readonly databaseUrl: string;
  readonly log: Pick<Log, "info" | "warn">;
  /** Whether the bus answers. Never rejects. */
  readonly isBusUp: () => Promise<boolean>;
  /** Delivers until the term's signal is aborted; when it returns or throws the lease is released. */
  readonly lead: (term: Term) => Promise<void>;
}

interface Election {
  /** Resolves when the first attempt is over: this relay delivers, stands by, or could not reach a server yet. */
  readonly firstAttempt: Promise<void>;
  /** Ends the term, if there is one, and takes no lease any more. */
  readonly stop: () => Promise<void>;
}

export function standForElection(options: ElectionOptions): Election {
  const { promise: firstAttempt, resolve: endFirstAttempt } = Promise.withResolvers<void>();
  const sql = openDatabase({
    url: options.databaseUrl,
    maxConnections: 1,
    name: "relay lease",
    statementDeadlineMs: RELAY_LIMITS.leaseStatementMs,
  });
  const attempts = { everyMs: RELAY_LIMITS.standByMs, what: "the relay's attempt to deliver", log: options.log };
  const attempting = repeat(attempts, (stopping) =>
    attemptOnce({ ...options, sql, endFirstAttempt, stopping }).finally(endFirstAttempt),
  );
  return {
    firstAttempt,
    stop: async () => {
      await attempting.stop();
      await closeDatabase(sql);
    },
  };
}

interface Candidate extends ElectionOptions {
  readonly sql: Database;
  readonly endFirstAttempt: () => void;
  readonly stopping: AbortSignal;
}

/** Takes the lease if it can be taken, and then delivers until the term is over. */
async function attemptOnce(candidate: Candidate): Promise<void> {
  const { sql, log, isBusUp, lead, endFirstAttempt, stopping } = candidate;
  if (!(await isBusUp())) return;
  const takenAt = now();
  const epoch = await takeLease(sql, `${hostname()}:${process.pid}`);
  if (epoch === undefined) return;
  log.info({ epoch }, "this relay delivers");
  const term = new LeasedTerm(candidate, { epoch, renewedAt: takenAt });
  try {
    const leading = lead(term);
    endFirstAttempt();
    await leading;
  } finally {
    await term.end();
    if (!stopping.aborted && !term.isLost) log.warn({ epoch }, "this relay has lost its lease");
    await releaseLease(sql, epoch).catch((error: unknown) => {
      log.warn({ err: error, epoch }, "the relay's lease could not be released; it lapses by itself");
    });
  }
}

class LeasedTerm implements Term {
  readonly epoch: number;
  readonly signal: AbortSignal;
  /** Another relay has taken the lease. */
  isLost = false;
  readonly #candidate: Candidate;
  readonly #failures: Failures;
  readonly #over = new AbortController();
  readonly #renewing: Promise<void>;
  #check: NodeJS.Timeout | undefined;
  /** When the newest answered renewal was sent. */
  #renewedAt: Moment;

  constructor(candidate: Candidate, facts: { readonly epoch: number; readonly renewedAt: Moment }) {
    this.#candidate = candidate;
    this.#failures = new Failures((...line) => candidate.log.warn(...line), "the relay's lease was not renewed");
    this.epoch = facts.epoch;
    this.#renewedAt = facts.renewedAt;
    this.signal = AbortSignal.any([this.#over.signal, candidate.stopping]);
    this.#endWhenLapsed();
    this.#renewing = this.#renewUntilOver();
  }

  isCurrent(): boolean {
    return !this.signal.aborted && ageOf(this.#renewedAt) < RELAY_LIMITS.selfStopMs;
  }

  async end(): Promise<void> {
    this.#over.abort();
    clearTimeout(this.#check);
    await this.#renewing;
  }

  /** Ends the term when the lease lapses; after a renewal, checks again at the new end. */
  #endWhenLapsed(): void {
    const leftMs = RELAY_LIMITS.selfStopMs - ageOf(this.#renewedAt);
    if (leftMs <= 0) this.#over.abort();
    else this.#check = setTimeout(() => this.#endWhenLapsed(), leftMs);
  }

  async #renewUntilOver(): Promise<void> {
    let pauseMs: number = RELAY_LIMITS.renewMs;
    for (;;) {
      await delay(pauseMs, undefined, { signal: this.signal }).catch(() => undefined);
      if (this.signal.aborted) return;
      pauseMs = (await this.#renew()) ? RELAY_LIMITS.renewMs : RELAY_LIMITS.renewAgainMs;
    }
  }

  /** False when the renewal failed and may be tried again soon. */
  async #renew(): Promise<boolean> {
    const { sql, log, isBusUp } = this.#candidate;
    try {
      if (!(await isBusUp())) return false;
      const sentAt = now();
      if (await renewLease(sql, this.epoch)) this.#renewedAt = sentAt;
      else {
        this.isLost = true;
        log.warn({ epoch: this.epoch }, "another relay has taken over");
        this.#over.abort();
      }
      return true;
    } catch (error) {
      if (!this.signal.aborted) this.#failures.failed(error, { epoch: this.epoch });
      return false;
    }
  }
}
