/** Token buckets by client address, bounded in number; an IPv6 client counts as its /64. */
import { addressBlock } from "../../../services/bus/address-block.ts";
import { MAX_ADDRESSES } from "./limits.ts";
import { type BucketRate, takeToken, waitMs } from "./token-bucket.ts";

export class AddressThrottle {
  readonly rate: BucketRate;
  /** Attempts that were throttled so far. */
  throttledCount = 0;
  /** By age of the last token taken, because a Map keeps its order of insertion. */
  readonly #fullAtMs = new Map<string, number>();

  constructor(rate: BucketRate) {
    this.rate = rate;
  }

  get size(): number {
    return this.#fullAtMs.size;
  }

  /** Takes a token; returns 0, or after how many milliseconds to come back. */
  take(address: string, nowMs: number): number {
    const key = addressBlock(address);
    const fullAtMs = this.#fullAtMs.get(key) ?? 0;
    const next = takeToken(this.rate, fullAtMs, nowMs);
    if (next < 0) {
      this.throttledCount += 1;
      return waitMs(this.rate, fullAtMs, nowMs);
    }
    this.#fullAtMs.delete(key);
    this.#fullAtMs.set(key, next);
    if (this.#fullAtMs.size > MAX_ADDRESSES) {
      const [oldest] = this.#fullAtMs.keys();
      if (oldest !== undefined) this.#fullAtMs.delete(oldest);
    }
    return 0;
  }

  /** Gives back a token that was taken for something that is not counted after all. */
  giveBack(address: string): void {
    const key = addressBlock(address);
    const fullAtMs = this.#fullAtMs.get(key);
    if (fullAtMs !== undefined) this.#fullAtMs.set(key, fullAtMs - this.rate.intervalMs);
  }
}
