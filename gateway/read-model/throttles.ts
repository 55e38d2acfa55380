/** Throttles: the rates (design §4, "throttle", the same in a sandbox as in production) and token buckets by key. */
import { addressBlock } from "../../services/bus/address-block.ts";

/**
 * A token bucket as one number: the moment at which it will be full again (the "generic cell rate algorithm"). A bucket
 * that was never used is full, which the number 0 says; so an array of zeros is a million full buckets.
 */
export interface BucketRate {
  /** One token comes back in this time. */
  readonly intervalMs: number;
  /** Tokens of a full bucket. */
  readonly burst: number;
}

/** The new moment after taking one token, or -1 when the bucket is empty. */
export function takeToken(rate: BucketRate, fullAtMs: number, nowMs: number): number {
  const next = (fullAtMs > nowMs ? fullAtMs : nowMs) + rate.intervalMs;
  return next - nowMs > rate.burst * rate.intervalMs ? -1 : next;
}

/** After how long a token can be taken. */
export function waitMs(rate: BucketRate, fullAtMs: number, nowMs: number): number {
  return Math.max(0, fullAtMs + rate.intervalMs - rate.burst * rate.intervalMs - nowMs);
}

/** The response headers of a refusal: `Retry-After` and the `RateLimit` fields of the IETF's HTTPAPI group. */
export function throttleHeaders(name: string, rate: BucketRate, retryAfterMs: number): Record<string, string> {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000));
  const windowSeconds = (rate.burst * rate.intervalMs) / 1_000;
  return {
    "Retry-After": String(seconds),
    "RateLimit-Policy": `"${name}";q=${rate.burst};w=${windowSeconds}`,
    RateLimit: `"${name}";r=0;t=${seconds}`,
  };
}

/** Of one device credential: one request a second sustained, ten at once. */
export const CREDENTIAL_RATE: BucketRate = { intervalMs: 1_000, burst: 10 };
/** Of one client address at enroll: ten a minute. */
export const ENROLL_RATE: BucketRate = { intervalMs: 6_000, burst: 10 };
/**
 * Log-ins of one client address whose places the gateway does not know, and of one known place: as many as the registry
 * counts over all gateways. A log-in that succeeds from an address is not counted.
 */
export const LOG_IN_RATE: BucketRate = { intervalMs: 2_000, burst: 30 };
/** So many attempts of an address come before those of addresses that have had more: a person who mistypes once. */
export const FIRST_LOG_INS = 2;
/** Known places of log-ins remembered at once; the one used longest ago is forgotten first. About 10 MB. */
export const MAX_PLACES = 50_000;
/**
 * Of one client address at the providers' callbacks. It protects the bus and nothing else: the signature is checked
 * behind it, so a sender of more than this from a provider's address keeps its good callbacks waiting as well, and a
 * provider repeats what got 429. So it is a multiple of what a provider at its busiest sends for all its merchants here.
 * Wrong signatures have a throttle of their own, which never counts a good one (`CALLBACK_REFUSAL_RATE`).
 */
export const CALLBACK_RATE: BucketRate = { intervalMs: 0.5, burst: 20_000 };
/** Of one client address at the log of certification artifacts, which anybody may read: a verifier reads it once. */
export const CERTIFICATION_LOG_RATE: BucketRate = { intervalMs: 1_000, burst: 30 };
/** Wrong platform keys of one client address: a person who mistypes, or a program that guesses. The right key is not counted. */
export const PLATFORM_RATE: BucketRate = { intervalMs: 2_000, burst: 30 };
/** Of one robotics consumer: a fleet polls each second or two, and accepts and completes several tasks at once. */
export const CONSUMER_RATE: BucketRate = { intervalMs: 200, burst: 30 };
/** Of one client address with consumers' credentials that are not known to be good: each is a question to a service. */
export const UNKNOWN_CONSUMER_RATE: BucketRate = { intervalMs: 2_000, burst: 30 };
/** Consumers' credentials remembered at once; the one that was seen longest ago is forgotten first. About 2 MB. */
export const MAX_CONSUMERS = 10_000;
/** Addresses remembered at once; the one that was seen longest ago is forgotten first. About 10 MB. */
export const MAX_ADDRESSES = 50_000;

/** Token buckets by key, bounded in number: the key that took a token longest ago is forgotten first. */
class Throttle {
  readonly rate: BucketRate;
  /** Requests that were throttled so far. */
  throttledCount = 0;
  /** By age of the last token taken, because a Map keeps its order of insertion. */
  protected readonly fullAtMs = new Map<string, number>();
  readonly #most: number;

  constructor(rate: BucketRate, most: number) {
    this.rate = rate;
    this.#most = most;
  }

  get size(): number {
    return this.fullAtMs.size;
  }

  /** Takes a token; returns 0, or after how many milliseconds to come back. */
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
}

/** By client address; an IPv6 client counts as its /64. */
export class AddressThrottle extends Throttle {
  constructor(rate: BucketRate) {
    super(rate, MAX_ADDRESSES);
  }

  override take(address: string, nowMs: number): number {
    return super.take(addressBlock(address), nowMs);
  }

  /** Whether no more than `most` tokens are missing. */
  isFull(address: string, nowMs: number, most: number): boolean {
    return (this.fullAtMs.get(addressBlock(address)) ?? 0) - nowMs <= most * this.rate.intervalMs;
  }

  /** Gives back a token that was taken for something that is not counted after all. */
  giveBack(address: string): void {
    const key = addressBlock(address);
    const fullAtMs = this.fullAtMs.get(key);
    if (fullAtMs !== undefined) this.fullAtMs.set(key, fullAtMs - this.rate.intervalMs);
  }
}

/** By the digest of a credential that is known to be good: `take` makes it known. */
export class CredentialThrottle extends Throttle {
  knows(digest: string): boolean {
    return this.fullAtMs.has(digest);
  }

  /** It is not good any more. */
  forget(digest: string): void {
    this.fullAtMs.delete(digest);
  }
}
