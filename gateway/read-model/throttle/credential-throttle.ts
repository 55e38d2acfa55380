/** Token buckets by the digest of a credential that is known to be good, bounded in number. */
import { type BucketRate, takeToken, waitMs } from "./token-bucket.ts";

export class CredentialThrottle {
  readonly rate: BucketRate;
  /** Requests that were throttled so far. */
  throttledCount = 0;
  /** By age of the last token taken, because a Map keeps its order of insertion. */
  readonly #fullAtMs = new Map<string, number>();
  readonly #most: number;

  constructor(rate: BucketRate, most: number) {
    this.rate = rate;
    this.#most = most;
  }

  get size(): number {
    return this.#fullAtMs.size;
  }

  knows(digest: string): boolean {
    return this.#fullAtMs.has(digest);
  }

  /** Takes a token; returns 0, or after how many milliseconds to come back. From here on the credential is known. */
  take(digest: string, nowMs: number): number {
    const fullAtMs = this.#fullAtMs.get(digest) ?? 0;
    const next = takeToken(this.rate, fullAtMs, nowMs);
    if (next < 0) {
      this.throttledCount += 1;
      return waitMs(this.rate, fullAtMs, nowMs);
    }
    this.#fullAtMs.delete(digest);
    this.#fullAtMs.set(digest, next);
    if (this.#fullAtMs.size > this.#most) {
      const [oldest] = this.#fullAtMs.keys();
      if (oldest !== undefined) this.#fullAtMs.delete(oldest);
    }
    return 0;
  }

  /** It is not good any more. */
  forget(digest: string): void {
    this.#fullAtMs.delete(digest);
  }
}
