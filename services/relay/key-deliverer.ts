/**
 * Delivers the rows of one key after another, different keys side by side.
 *
 *   idle ── look finds rows, or a flush asks ──► running ── all delivered ──► idle (forgotten)
 *     ▲                                             │
 *     └──────── pause over, or a flush ◄── waiting ◄┘ a row could not be delivered
 */
import type { Log } from "../runtime/log.ts";
import type { Delivery } from "./deliver-row.ts";
import { RELAY_LIMITS } from "./limits.ts";
import type { PendingRow } from "./sql/outbox-rows.ts";

export interface KeyDelivererDeps {
  readonly read: (key: string) => Promise<readonly PendingRow[]>;
  readonly deliver: (row: PendingRow) => Promise<Delivery>;
  readonly mark: (row: PendingRow, delivery: Delivery) => Promise<void>;
  /** False as soon as this relay no longer is the one that delivers. */
  readonly isLeader: () => boolean;
  readonly log: Pick<Log, "debug" | "warn" | "error">;
}

/** What is known of a key that has work; a key without is forgotten, so this map is bounded by what is outstanding. */
interface KeyState {
  /** The run under way. */
  running: Promise<boolean> | undefined;
  /** The run after it, which sees rows that were committed since the first began; flushes share it. */
  next: Promise<boolean> | undefined;
  retryPauseMs: number;
  retryAtMs: number;
}

export class KeyDeliverer {
  readonly #deps: KeyDelivererDeps;
  readonly #keys = new Map<string, KeyState>();
  readonly #busy = { station: 0, bucket: 0 };

  constructor(deps: KeyDelivererDeps) {
    this.#deps = deps;
  }

  /** Whether the poll may start this key now: it is not running, not pausing, and its kind has room. */
  canStart(key: string, nowMs: number): boolean {
    const state = this.#keys.get(key);
    if (state?.running !== undefined || (state !== undefined && state.retryAtMs > nowMs)) return false;
    return laneOf(key) === "station"
      ? this.#busy.station < RELAY_LIMITS.stationKeysAtOnce
      : this.#busy.bucket < RELAY_LIMITS.bucketKeysAtOnce;
  }

  /**
   * Delivers what the key has outstanding, including every row committed before this call. Resolves to whether all of it
   * is delivered; never rejects. A pause that the key is in ends: somebody waits for it now.
   */
  async deliver(key: string): Promise<boolean> {
    const state = this.#keys.get(key) ?? { running: undefined, next: undefined, retryPauseMs: 0, retryAtMs: 0 };
    this.#keys.set(key, state);
    if (state.running === undefined) return this.#start(key, state);
    // The run under way may have read before the caller's rows were there.
    state.next ??= state.running.then(() => this.#start(key, state));
    return state.next;
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    for (const state of this.#keys.values()) await (state.next ?? state.running);
  }

  #start(key: string, state: KeyState): Promise<boolean> {
    state.next = undefined;
    state.running = this.#run(key, state).finally(() => {
      state.running = undefined;
      if (state.next === undefined && state.retryAtMs === 0) this.#keys.delete(key);
    });
    return state.running;
  }

  async #run(key: string, state: KeyState): Promise<boolean> {
    const lane = laneOf(key);
    this.#busy[lane] += 1;
    try {
      const isDone = await this.#deliverAll(key);
      state.retryPauseMs = 0;
      state.retryAtMs = 0;
      return isDone;
    } catch (error) {
      const { retryPauseMs, longestRetryPauseMs } = RELAY_LIMITS;
      state.retryPauseMs = Math.min(state.retryPauseMs * 2 || retryPauseMs, longestRetryPauseMs);
      state.retryAtMs = Date.now() + state.retryPauseMs;
      this.#deps.log.warn({ key, err: error, retryInMs: state.retryPauseMs }, "an outbox key waits");
      return false;
    } finally {
      this.#busy[lane] -= 1;
    }
  }

  /** False when this relay has stopped being the one that delivers. */
  async #deliverAll(key: string): Promise<boolean> {
    for (;;) {
      const rows = await this.#deps.read(key);
      for (const row of rows) {
        if (!this.#deps.isLeader()) return false;
        const startedAtMs = performance.now();
        const delivery = await this.#deps.deliver(row);
        await this.#deps.mark(row, delivery);
        const tookMs = Math.round(performance.now() - startedAtMs);
        const facts = { key, outboxId: row.outboxId, kind: row.kind, ...delivery, tookMs };
        if (delivery.failedReason === null) this.#deps.log.debug(facts, "delivered");
        else this.#deps.log.error(facts, "an outbox row was refused for good");
      }
      // Rows that were committed since are the matter of whoever committed them, or of the next look.
      if (rows.length < RELAY_LIMITS.rowsPerRead) return true;
    }
  }
}

function laneOf(key: string): "station" | "bucket" {
  return key.startsWith("station.") ? "station" : "bucket";
}
