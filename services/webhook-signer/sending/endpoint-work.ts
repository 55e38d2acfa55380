/**
 * The deliveries of one endpoint that this process has in hand: read ahead, under way, or with an outcome not yet
 * written.
 */
import { SIGNER_LIMITS } from "../limits.ts";
import type { DueEndpointRow, DueRow } from "../sql/owners.ts";
import { type AttemptEnd, EndpointHealth } from "./endpoint-health.ts";

export interface Waiting extends DueRow {
  /** For an offer: when it expires, by the clock that never jumps (`performance.now`). */
  readonly lapsesAtMs: number | null;
  /** The same by the time of day, as this machine has it. */
  readonly lapsesAtWallMs: number | null;
}

/** How many deliveries all endpoints of this process have in hand together. */
export interface InHandCount {
  count: number;
}

export class EndpointWork {
  readonly endpointId: number;
  readonly health: EndpointHealth;
  #row: DueEndpointRow;
  #inFlight = 0;
  #usedAtMs = performance.now();
  #mayHaveMore = false;
  /** Undefined until they have been read; nothing is sent to the endpoint before. */
  #secrets: readonly string[] | undefined;
  /** The owner has paused or deleted the endpoint, or another process has disabled it. */
  #isWithdrawn = false;
  /** Read and not sent yet, the longest due first. */
  readonly #queue: Waiting[] = [];
  /** The deliveries read whose outcome is not written yet: PostgreSQL has them as due, and they are not to be read again. */
  readonly #inHand = new Set<number>();
  readonly #all: InHandCount;

  constructor(row: DueEndpointRow, all: InHandCount) {
    this.#all = all;
    this.endpointId = row.endpoint_id;
    this.#row = row;
    this.health = new EndpointHealth(row);
  }

  get url(): string {
    return this.#row.url;
  }

  get mode(): DueEndpointRow["mode"] {
    return this.#row.mode;
  }

  /** The secrets that sign, as they were at the last poll. */
  get secrets(): readonly string[] {
    return this.#secrets ?? [];
  }

  signWith(secrets: readonly string[]): void {
    this.#secrets = secrets;
  }

  /**
   * Whether the owner has paused or deleted it, or it was disabled, or its consumer was suspended, as this process
   * knows.
   */
  get isWithdrawn(): boolean {
    return this.#isWithdrawn;
  }

  refresh(row: DueEndpointRow): void {
    this.health.refresh(row);
    this.#isWithdrawn = false;
    this.#row = row;
  }

  /** Nothing more may be sent to the endpoint. Attempts under way end as usual. */
  withdraw(): void {
    this.#isWithdrawn = true;
  }

  get inHand(): Iterable<number> {
    return this.#inHand;
  }

  /** How many more deliveries to read now. */
  wanted(nowMs: number): number {
    if (!this.#isUsable) return 0;
    if (this.health.openUntilMs !== null) {
      return Math.max(0, this.health.room(this.#inFlight, nowMs) - this.#queue.length);
    }
    const isCrowded = this.#all.count >= SIGNER_LIMITS.inHand;
    const window = isCrowded ? SIGNER_LIMITS.firstWindow : this.health.window;
    return Math.max(0, window - this.#queue.length - this.#inFlight);
  }

  /** What a read brought; fewer than wanted means that nothing more is due now. */
  filled(rows: readonly Waiting[], wanted: number): void {
    this.#queue.push(...rows);
    for (const row of rows) this.#inHand.add(row.delivery_id);
    this.#all.count += rows.length;
    if (rows.length > 0) this.#usedAtMs = performance.now();
    this.#mayHaveMore = rows.length >= wanted;
  }

  /** Whether what is read will be used up soon, and there is more to read. */
  get isLow(): boolean {
    return this.#mayHaveMore && this.#queue.length <= this.health.window / 2;
  }

  get hasWaiting(): boolean {
    return this.#queue.length > 0;
  }

  mayStart(nowMs: number): boolean {
    if (!this.hasWaiting || !this.#isUsable || this.#inFlight >= this.health.width) return false;
    if (this.#secrets === undefined) return false;
    return this.health.room(this.#inFlight, nowMs) > 0;
  }

  /** Releases what cannot be sent now, because the breaker has opened or nothing is to be sent to the endpoint. */
  releaseUnsendable(nowMs: number): void {
    if (this.#queue.length === 0) return;
    const { openUntilMs } = this.health;
    if (this.#isUsable && (openUntilMs === null || nowMs >= openUntilMs)) return;
    for (const row of this.#queue.splice(0)) this.release(row.delivery_id);
    this.#mayHaveMore = true;
  }

  /** Whether the endpoint can be forgotten: the state of its breaker was written long ago. */
  isIdle(nowMs: number): boolean {
    return this.#inHand.size === 0 && nowMs - this.#usedAtMs > SIGNER_LIMITS.endpointMemoryMs;
  }

  /** Takes the next delivery. Throws when there is none: `mayStart` comes first. */
  start(): Waiting {
    const next = this.#queue.shift();
    if (next === undefined) throw new Error("There is nothing to send.");
    this.#inFlight += 1;
    return next;
  }

  ended(end: AttemptEnd, nowMs: number): void {
    this.#inFlight -= 1;
    this.#usedAtMs = performance.now();
    this.health.ended(end, nowMs);
    if (this.#inFlight === 0 && this.#queue.length === 0) this.health.narrow();
  }

  /** Ends an attempt that was not made. */
  abandoned(deliveryId: number): void {
    this.#inFlight -= 1;
    this.release(deliveryId);
  }

  /** Releases a delivery whose outcome is written or abandoned: from now on its row counts. */
  release(deliveryId: number): void {
    if (this.#inHand.delete(deliveryId)) this.#all.count -= 1;
  }

  /** Releases all deliveries, because this process no longer sends for the owner. */
  releaseAll(): void {
    for (const deliveryId of this.#inHand) this.release(deliveryId);
  }

  get #isUsable(): boolean {
    return !this.#isWithdrawn && !this.health.isDisabled;
  }
}
