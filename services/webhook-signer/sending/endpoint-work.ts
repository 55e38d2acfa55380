/** What a process knows of one endpoint while it sends for its owner: its breaker, what is claimed, what is under way. */
import { SIGNER_LIMITS } from "../limits.ts";
import type { ClaimedRow, DueEndpointRow } from "../sql/claims.ts";
import type { EndpointOutcomeRow } from "../sql/outcomes.ts";
import { afterFailure, type BreakerState, CLOSED, disabledBy, roomOf } from "./breaker.ts";

/** What came of an attempt, as far as the breaker is concerned. */
export interface AttemptEnd {
  readonly succeeded: boolean;
  readonly status: number | null;
  readonly tookMs: number;
}

export class EndpointWork {
  readonly endpointId: number;
  #row: DueEndpointRow;
  #breaker: BreakerState;
  #inFlight = 0;
  /** How many are claimed ahead: more while the target is fast, so that claims go in batches. */
  #window: number = SIGNER_LIMITS.firstWindow;
  #disabledReason: EndpointOutcomeRow["disabled_reason"] = null;
  #mayHaveMore = false;
  #hasSucceeded = false;
  #hasFailed = false;
  /** Claimed and not sent yet, the longest due first. */
  readonly queue: ClaimedRow[] = [];
  /** The secrets that sign, read with the last claim. */
  secrets: readonly string[] = [];

  constructor(row: DueEndpointRow) {
    this.endpointId = row.endpoint_id;
    this.#row = row;
    this.#breaker = breakerOf(row);
  }

  get url(): string {
    return this.#row.url;
  }

  get mode(): DueEndpointRow["mode"] {
    return this.#row.mode;
  }

  /** What this process knows of the breaker is newer than the row, unless the owner has started the endpoint anew. */
  refresh(row: DueEndpointRow): void {
    if (row.generation !== this.#row.generation) {
      this.#breaker = breakerOf(row);
      this.#disabledReason = null;
    }
    this.#row = row;
  }

  /** How many more to claim now. */
  wanted(nowMs: number): number {
    if (this.#disabledReason !== null) return 0;
    const room = roomOf(this.#breaker, this.#inFlight, nowMs);
    if (this.#breaker.openUntilMs !== null) return Math.max(0, room - this.queue.length);
    return Math.max(0, this.#window - this.queue.length - this.#inFlight);
  }

  /** What a claim brought; fewer than wanted means that nothing more is due now. */
  claimed(rows: readonly ClaimedRow[], wanted: number): void {
    this.queue.push(...rows);
    this.#mayHaveMore = rows.length >= wanted;
  }

  /** Whether what is claimed will be used up soon, and there is more to claim. */
  get isLow(): boolean {
    return this.#mayHaveMore && this.queue.length <= this.#window / 2;
  }

  mayStart(nowMs: number): boolean {
    return this.queue.length > 0 && this.#disabledReason === null && roomOf(this.#breaker, this.#inFlight, nowMs) > 0;
  }

  /** Whether what is claimed cannot be sent now: the breaker has opened, or the endpoint is disabled. */
  mustGiveBack(nowMs: number): boolean {
    if (this.queue.length === 0) return false;
    return this.#disabledReason !== null || (this.#breaker.openUntilMs !== null && nowMs < this.#breaker.openUntilMs);
  }

  get isIdle(): boolean {
    return this.#inFlight === 0 && this.queue.length === 0 && !this.#hasSucceeded && !this.#hasFailed;
  }

  started(): void {
    this.#inFlight += 1;
  }

  ended({ succeeded, status, tookMs }: AttemptEnd, nowMs: number): void {
    this.#inFlight -= 1;
    this.#window =
      succeeded && tookMs < SIGNER_LIMITS.fastMs
        ? Math.min(this.#window * 2, SIGNER_LIMITS.longestWindow)
        : SIGNER_LIMITS.firstWindow;
    this.#breaker = succeeded ? CLOSED : afterFailure(this.#breaker, nowMs);
    if (succeeded) this.#hasSucceeded = true;
    else this.#hasFailed = true;
    this.#disabledReason ??= disabledBy(this.#breaker, { status, nowMs }) ?? null;
  }

  /** An attempt that was not made after all. */
  abandoned(): void {
    this.#inFlight -= 1;
  }

  /** What is to be written about the breaker since it was asked last; undefined when nothing is. */
  takeOutcome(): EndpointOutcomeRow | undefined {
    if (!this.#hasSucceeded && !this.#hasFailed) return undefined;
    const { consecutiveFailures, timesOpened, openUntilMs, failingSinceMs, failuresSinceSuccess } = this.#breaker;
    const outcome: EndpointOutcomeRow = {
      endpoint_id: this.endpointId,
      generation: this.#row.generation,
      consecutive_failures: consecutiveFailures,
      times_opened: timesOpened,
      open_until: openUntilMs === null ? null : new Date(openUntilMs),
      failing_since: failingSinceMs === null ? null : new Date(failingSinceMs),
      failures_since_success: failuresSinceSuccess,
      has_succeeded: this.#hasSucceeded,
      has_failed: this.#hasFailed,
      disabled_reason: this.#disabledReason,
    };
    this.#hasSucceeded = false;
    this.#hasFailed = false;
    return outcome;
  }
}

function breakerOf(row: DueEndpointRow): BreakerState {
  return {
    consecutiveFailures: row.consecutive_failures,
    timesOpened: row.times_opened,
    openUntilMs: row.open_until?.getTime() ?? null,
    failingSinceMs: row.failing_since?.getTime() ?? null,
    failuresSinceSuccess: row.failures_since_success,
  };
}
