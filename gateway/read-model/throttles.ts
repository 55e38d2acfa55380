/** Throttles: the rates (design §4, "throttle"; a sandbox has the same as production) and token buckets by key. */
import { SET_BACK_MS } from "../../machines/settings.ts";
import { addressBlock } from "../../services/bus/address-block.ts";

/**
 * The rate of a token bucket. A bucket is one number: the moment at which it will be full again (the "generic cell rate
 * algorithm"). The number 0 means a full bucket, so an array of zeros is an array of full buckets.
 */
export interface BucketRate {
  /** One token comes back in this time. */
  readonly intervalMs: number;
  /** Tokens of a full bucket. */
  readonly burst: number;
}

/**
 * The new moment at which the bucket is full, after taking one token; -1 when the bucket is empty. A bucket that lacks much more
 * than it can hold is from before the clock was set back: it has one token.
 */
export function takeToken(rate: BucketRate, fullAtMs: number, nowMs: number): number {
  const emptyUntilFullMs = rate.burst * rate.intervalMs;
  if (fullAtMs - nowMs > emptyUntilFullMs + SET_BACK_MS) return nowMs + emptyUntilFullMs;
  const next = (fullAtMs > nowMs ? fullAtMs : nowMs) + rate.intervalMs;
  return next - nowMs > emptyUntilFullMs ? -1 : next;
}

/** The time until a caller can take a token, after `takeToken` has refused one. */
export function waitMs(rate: BucketRate, fullAtMs: number, nowMs: number): number {
  return Math.max(0, fullAtMs + rate.intervalMs - rate.burst * rate.intervalMs - nowMs);
}

/** The headers of a `throttled` answer: `Retry-After` and the `RateLimit` fields of the IETF's HTTPAPI group. */
export function throttleHeaders(name: string, rate: BucketRate, retryAfterMs: number): Record<string, string> {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000));
  const windowSeconds = (rate.burst * rate.intervalMs) / 1_000;
  return {
    "Retry-After": String(seconds),
    "RateLimit-Policy": `"${name}";q=${rate.burst};w=${windowSeconds}`,
    RateLimit: `"${name}";r=0;t=${seconds}`,
  };
}

/** Requests with one device credential: one a second on average, ten at once. */
export const CREDENTIAL_RATE: BucketRate = { intervalMs: 1_000, burst: 10 };
/** Enroll attempts from one client address: ten a minute. */
export const ENROLL_RATE: BucketRate = { intervalMs: 6_000, burst: 10 };
/**
 * Log-ins from one client address at unknown places, and log-ins at one known place (`log-in-gate.ts`). The rate is the same
 * as the registry's over all gateways. A successful log-in does not count for its address.
 */
export const LOG_IN_RATE: BucketRate = { intervalMs: 2_000, burst: 30 };
/** The first attempts from an address go before those of addresses with more attempts: a person may mistype once. */
export const FIRST_LOG_INS = 2;
/** Known places that the gateway remembers, about 10 MB. It forgets the one used longest ago first. */
export const MAX_PLACES = 50_000;
/**
 * Providers' callbacks from one client address. The throttle protects only the bus: it also delays valid callbacks, because a
 * service checks the signature later. So the rate is a multiple of what a provider at its busiest sends for all its merchants
 * here. A provider repeats a callback that got 429. Callbacks with a wrong signature have another throttle, which never counts
 * a valid one (`CALLBACK_REFUSAL_RATE`).
 */
export const CALLBACK_RATE: BucketRate = { intervalMs: 0.5, burst: 20_000 };
/** Reads of the public log of certification artifacts from one client address. A verifier reads the log once. */
export const CERTIFICATION_LOG_RATE: BucketRate = { intervalMs: 1_000, burst: 30 };
/** Wrong platform keys from one client address, by a person who mistypes or a program that guesses. */
export const PLATFORM_RATE: BucketRate = { intervalMs: 2_000, burst: 30 };
/** Requests of one robotics consumer: a fleet polls each second or two, and accepts and completes several tasks at once. */
export const CONSUMER_RATE: BucketRate = { intervalMs: 200, burst: 30 };
/** Requests from one client address with credentials that the gateway does not know: it asks a service about each. */
export const UNKNOWN_CONSUMER_RATE: BucketRate = { intervalMs: 2_000, burst: 30 };
/** Consumers' credentials that the gateway remembers, about 2 MB. It forgets the one used longest ago first. */
export const MAX_CONSUMERS = 10_000;
/** Addresses that a throttle remembers, about 10 MB. It forgets the one used longest ago first. */
export const MAX_ADDRESSES = 50_000;

/** A bounded number of token buckets by key. It forgets the key that took a token longest ago first. */
class Throttle {
  readonly rate: BucketRate;
  throttledCount = 0;
  /** The key that took a token longest ago is first, because a Map keeps the order of insertion. */
  protected readonly fullAtMs = new Map<string, number>();
  readonly #most: number;

  constructor(rate: BucketRate, most: number) {
    this.rate = rate;
    this.#most = most;
  }

  get size(): number {
    return this.fullAtMs.size;
  }

  /** Takes a token and returns 0, or returns the milliseconds until the next token. */
  take(key: string, nowMs: number): number {
    const fullAtMs = this.fullAtMs.get(key) ?? 0;
    const next = takeToken(this.rate, fullAtMs, nowMs);
    if (next < 0) {
      this.throttledCount += 1;
      return waitMs(this.rate, fullAtMs, nowMs);
    }
    this.fullAtMs.delete(key);
    this.fullAtMs.set(key, next);
    if (this.fullAtMs.size > this.#most) {
      const [oldest] = this.fullAtMs.keys();
      if (oldest !== undefined) this.fullAtMs.delete(oldest);
    }
    return 0;
  }

  /** Returns a token whose attempt does not count after all. */
  giveBack(key: string): void {
    const fullAtMs = this.fullAtMs.get(key);
    if (fullAtMs !== undefined) this.fullAtMs.set(key, fullAtMs - this.rate.intervalMs);
  }
}

/** By client address; an IPv6 client counts as its /64. */
export class AddressThrottle extends Throttle {
  constructor(rate: BucketRate) {
    super(rate, MAX_ADDRESSES);
  }

  override take(address: string, nowMs: number): number {
    return super.take(addressBlock(address), nowMs);
  }

  /** Whether at most this many tokens are missing from a full bucket. */
  lacksAtMost(address: string, nowMs: number, tokens: number): boolean {
    return (this.fullAtMs.get(addressBlock(address)) ?? 0) - nowMs <= tokens * this.rate.intervalMs;
  }

  override giveBack(address: string): void {
    super.giveBack(addressBlock(address));
  }
}

/** By the digest of a valid credential: `take` makes the credential known. */
export class CredentialThrottle extends Throttle {
  knows(digest: string): boolean {
    return this.fullAtMs.has(digest);
  }

  /** For a credential that is not valid any more. */
  forget(digest: string): void {
    this.fullAtMs.delete(digest);
  }
}
