/** What a process knows of one endpoint while it sends for its owner: its breaker, and what it has in hand. */
import { afterFailure, type BreakerState, CLOSED, disabledBy, roomOf } from "../../../machines/webhook-breaker.ts";
import { SIGNER_LIMITS } from "../limits.ts";
import type { EndpointOutcomeRow } from "../sql/outcomes.ts";
import type { DueEndpointRow, DueRow } from "../sql/owners.ts";
import type { Pace } from "./slots.ts";

export interface Waiting extends DueRow {
  /** For an offer: when it expires, by the clock that never jumps (`performance.now`). */
  readonly lapsesAtMs: number | null;
  /** The same by the time of day, as this machine has it. */
  readonly lapsesAtWallMs: number | null;
}

/** What came of an attempt, as far as the breaker is concerned. */
export interface AttemptEnd {
  readonly succeeded: boolean;
  readonly status: number | null;
  readonly tookMs: number;
}

/** How many deliveries all endpoints of this process have in hand together. */
export interface InHandCount {
  count: number;
}

export class EndpointWork {
  readonly endpointId: number;
  #row: DueEndpointRow;
  #breaker: BreakerState;
  #inFlight = 0;
  /** How many may be under way: one at first, more while the target answers well, so that many tar-pits hold few places. */
  #width = 1;
  /** Whether the last answer was a good one and came soon; undefined while there was none here. */
  #wasPrompt: boolean | undefined;
  #usedAtMs = Date.now();
  /** How many are read ahead: more while the target is fast, so that few reads bring many. */
  #window: number = SIGNER_LIMITS.firstWindow;
  #disabledReason: EndpointOutcomeRow["disabled_reason"] = null;
  #mayHaveMore = false;
  #hasSucceeded = false;
  #hasFailed = false;
  /** When its row was told last that all is well; zero when it was told of a failure since. */
  #successWrittenAtMs = 0;
  /** Undefined until they have been read: it is not sent to before. */
  #secrets: readonly string[] | undefined;
  /** The owner paused or deleted it, or it was disabled elsewhere. */
  #isWithdrawn = false;
  /** Read and not sent yet, the longest due first. */
  readonly #queue: Waiting[] = [];
  /** The deliveries read whose outcome is not written yet: they look due to PostgreSQL and are not to be read again. */
  readonly #inHand = new Set<number>();
  readonly #all: InHandCount;

  constructor(row: DueEndpointRow, all: InHandCount) {
    this.#all = all;
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

  /** The secrets that sign, as they were at the last look. */
  get secrets(): readonly string[] {
    return this.#secrets ?? [];
  }

  signWith(secrets: readonly string[]): void {
    this.#secrets = secrets;
  }

  /** Which places are for it. A probe is for finding out, as a first attempt is. */
  get pace(): Pace {
    if (this.#breaker.openUntilMs !== null) return "untried";
    if (this.#breaker.consecutiveFailures > 0 || this.#wasPrompt === false) return "slow";
    return this.#wasPrompt === true ? "prompt" : "untried";
  }

  /** Whether its owner has paused or deleted it, or it was disabled or its consumer suspended, as far as is known here. */
  get isWithdrawn(): boolean {
    return this.#isWithdrawn;
  }

  /** What this process knows of the breaker is newer than the row, unless the owner has started the endpoint anew. */
  refresh(row: DueEndpointRow): void {
    if (row.generation !== this.#row.generation) {
      this.#breaker = breakerOf(row);
      this.#disabledReason = null;
      this.#wasPrompt = undefined;
    }
    this.#isWithdrawn = false;
    this.#row = row;
  }

  /** It must not be sent to any more; what is under way ends by itself. */
  withdraw(): void {
    this.#isWithdrawn = true;
  }

  get inHand(): Iterable<number> {
    return this.#inHand;
  }

  /** How many more to read now. */
  wanted(nowMs: number): number {
    if (!this.#isUsable) return 0;
    const room = roomOf(this.#breaker, this.#inFlight, nowMs);
    if (this.#breaker.openUntilMs !== null) return Math.max(0, room - this.#queue.length);
    const isCrowded = this.#all.count >= SIGNER_LIMITS.inHand;
    const window = isCrowded ? SIGNER_LIMITS.firstWindow : this.#window;
    return Math.max(0, window - this.#queue.length - this.#inFlight);
  }

  /** What a read brought; fewer than wanted means that nothing more is due now. */
  filled(rows: readonly Waiting[], wanted: number): void {
    this.#queue.push(...rows);
    for (const row of rows) this.#inHand.add(row.delivery_id);
    this.#all.count += rows.length;
    if (rows.length > 0) this.#usedAtMs = Date.now();
    this.#mayHaveMore = rows.length >= wanted;
  }

  /** Whether what is read will be used up soon, and there is more to read. */
  get isLow(): boolean {
    return this.#mayHaveMore && this.#queue.length <= this.#window / 2;
  }

  get hasWaiting(): boolean {
    return this.#queue.length > 0;
  }

  mayStart(nowMs: number): boolean {
    if (!this.hasWaiting || !this.#isUsable || this.#inFlight >= this.#width) return false;
    if (this.#secrets === undefined) return false;
    return roomOf(this.#breaker, this.#inFlight, nowMs) > 0;
  }

  /** Puts down what cannot be sent now, because the breaker has opened or nothing is to be sent to the endpoint. */
  putDownUnsendable(nowMs: number): void {
    if (this.#queue.length === 0) return;
    if (this.#isUsable && (this.#breaker.openUntilMs === null || nowMs >= this.#breaker.openUntilMs)) return;
    for (const row of this.#queue.splice(0)) this.putDown(row.delivery_id);
    this.#mayHaveMore = true;
  }

  /** Whether it can be forgotten: what is known of its breaker has long been written. */
  isIdle(nowMs: number): boolean {
    return this.#inHand.size === 0 && nowMs - this.#usedAtMs > SIGNER_LIMITS.endpointMemoryMs;
  }

  /** Takes the next one; there is one when it `mayStart`. */
  start(): Waiting {
    const next = this.#queue.shift();
    if (next === undefined) throw new Error("There is nothing to send.");
    this.#inFlight += 1;
    return next;
  }

  ended({ succeeded, status, tookMs }: AttemptEnd, nowMs: number): void {
    this.#inFlight -= 1;
    this.#usedAtMs = Date.now();
    this.#wasPrompt = succeeded && tookMs < SIGNER_LIMITS.promptMs;
    this.#window =
      succeeded && tookMs < SIGNER_LIMITS.fastMs
        ? Math.min(this.#window * 2, SIGNER_LIMITS.longestWindow)
        : SIGNER_LIMITS.firstWindow;
    if (this.#wasPrompt) {
      this.#width = Math.min(this.#width * 2, SIGNER_LIMITS.inFlightPerEndpoint);
    }
    if (succeeded) {
      this.#breaker = CLOSED;
      this.#hasSucceeded = true;
    } else {
      this.#breaker = afterFailure(this.#breaker, nowMs);
      this.#hasFailed = true;
      this.#width = 1;
    }
    if (this.#inFlight === 0 && this.#queue.length === 0) this.#width = 1;
    this.#disabledReason ??= disabledBy(this.#breaker, { status, nowMs }) ?? null;
  }

  /** An attempt that was not made after all. */
  abandoned(deliveryId: number): void {
    this.#inFlight -= 1;
    this.putDown(deliveryId);
  }

  /** PostgreSQL knows what came of it, or never will: from now on what stands there counts. */
  putDown(deliveryId: number): void {
    if (this.#inHand.delete(deliveryId)) this.#all.count -= 1;
  }

  /** The owner is somebody else's: nothing of it is in hand here any more. */
  letGo(): void {
    for (const deliveryId of this.#inHand) this.putDown(deliveryId);
  }

  get #isUsable(): boolean {
    return !this.#isWithdrawn && this.#disabledReason === null;
  }

  /**
   * What is to be written about the breaker since it was asked last; undefined when nothing is, or when it is only one
   * more success shortly after another.
   */
  takeOutcome(nowMs: number): EndpointOutcomeRow | undefined {
    if (!this.#hasSucceeded && !this.#hasFailed) return undefined;
    const isNoNews =
      this.#breaker === CLOSED && !this.#hasFailed && nowMs < this.#successWrittenAtMs + SIGNER_LIMITS.successNewsMs;
    this.#successWrittenAtMs = this.#breaker !== CLOSED ? 0 : isNoNews ? this.#successWrittenAtMs : nowMs;
    if (isNoNews && this.#disabledReason === null) {
      this.#hasSucceeded = false;
      return undefined;
    }
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
