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
