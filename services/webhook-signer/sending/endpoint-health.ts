/**
 * The health of an endpoint while this process sends for its owner: its breaker, its pace, and the changes that are not
 * written yet.
 */
import {
  afterFailure,
  type BreakerState,
  CLOSED,
  type DisabledReason,
  disabledBy,
  roomOf,
} from "../../../machines/webhook-breaker.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import type { EndpointOutcomeRow } from "../sql/outcomes.ts";
import type { DueEndpointRow } from "../sql/owners.ts";
import type { Pace } from "./slots.ts";

/** The end of an attempt, as far as the breaker is concerned. */
export interface AttemptEnd {
  readonly succeeded: boolean;
  readonly status: number | null;
  readonly tookMs: number;
}

export class EndpointHealth {
  readonly #endpointId: number;
  #generation: number;
  #breaker: BreakerState;
  #disabledReason: DisabledReason | null = null;
  /** Whether the last answer was a success within `promptMs`; undefined before this process has an answer. */
  #wasPrompt: boolean | undefined;
  /**
   * How many attempts may be under way: one at first, and more while the target is prompt, so that slow targets hold
   * few slots.
   */
  #width = 1;
  /** How many deliveries are read ahead: more while the target is fast, so that few reads fetch many. */
  #window: number = SIGNER_LIMITS.firstWindow;
  #hasSucceeded = false;
  #hasFailed = false;
  /**
   * When its row was last written as healthy, by `performance.now()`; minus infinity when a failure was written since.
   */
  #successWrittenAtMs = Number.NEGATIVE_INFINITY;

  constructor(row: DueEndpointRow) {
    this.#endpointId = row.endpoint_id;
    this.#generation = row.generation;
    this.#breaker = breakerOf(row);
  }

  /**
   * The breaker of this process is newer than the row, unless the row has another generation: its breaker was then
   * reset.
   */
  refresh(row: DueEndpointRow): void {
    if (row.generation === this.#generation) return;
    this.#generation = row.generation;
    this.#breaker = breakerOf(row);
    this.#disabledReason = null;
    this.#wasPrompt = undefined;
  }

  get isDisabled(): boolean {
    return this.#disabledReason !== null;
  }

  /** Until when the breaker is open, or was before the probe; null when it is closed. */
  get openUntilMs(): number | null {
    return this.#breaker.openUntilMs;
  }

  get width(): number {
    return this.#width;
  }

  get window(): number {
    return this.#window;
  }

  /** Which slots the endpoint uses. A probe counts as untried, as a first attempt does. */
  get pace(): Pace {
    if (this.#breaker.openUntilMs !== null) return "untried";
    if (this.#breaker.consecutiveFailures > 0 || this.#wasPrompt === false) return "slow";
    return this.#wasPrompt === true ? "prompt" : "untried";
  }

  /** How many more attempts the breaker allows at once. */
  room(inFlight: number, nowMs: number): number {
    return roomOf(this.#breaker, inFlight, nowMs);
  }

  ended({ succeeded, status, tookMs }: AttemptEnd, nowMs: number): void {
    this.#wasPrompt = succeeded && tookMs < SIGNER_LIMITS.promptMs;
    this.#window =
      succeeded && tookMs < SIGNER_LIMITS.fastMs
        ? Math.min(this.#window * 2, SIGNER_LIMITS.longestWindow)
        : SIGNER_LIMITS.firstWindow;
    if (this.#wasPrompt) this.#width = Math.min(this.#width * 2, SIGNER_LIMITS.inFlightPerEndpoint);
    if (succeeded) {
      this.#breaker = CLOSED;
      this.#hasSucceeded = true;
    } else {
      this.#breaker = afterFailure(this.#breaker, nowMs);
      this.#hasFailed = true;
      this.#width = 1;
    }
    this.#disabledReason ??= disabledBy(this.#breaker, { status, nowMs }) ?? null;
  }

  /** Nothing is left to send, so the next attempts begin with one at a time. */
  narrow(): void {
    this.#width = 1;
  }

  /**
   * The changes since the last call. Undefined when there are none, or only one more success shortly after another.
   * `nowMs` is `performance.now()`.
   */
  takeOutcome(nowMs: number): EndpointOutcomeRow | undefined {
    if (!this.#hasSucceeded && !this.#hasFailed) return undefined;
    const isUnchanged =
      this.#breaker === CLOSED && !this.#hasFailed && nowMs < this.#successWrittenAtMs + SIGNER_LIMITS.successNoteMs;
    if (this.#breaker !== CLOSED) this.#successWrittenAtMs = Number.NEGATIVE_INFINITY;
    else if (!isUnchanged) this.#successWrittenAtMs = nowMs;
    if (isUnchanged && this.#disabledReason === null) {
      this.#hasSucceeded = false;
      return undefined;
    }
    const { consecutiveFailures, timesOpened, openUntilMs, failingSinceMs, failuresSinceSuccess } = this.#breaker;
    const outcome: EndpointOutcomeRow = {
      endpoint_id: this.#endpointId,
      generation: this.#generation,
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
