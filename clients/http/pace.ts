/** Waits and retries: the gap between two requests, the growing wait after failures, and a sleep that an abort ends. */
import { setTimeout as sleep } from "node:timers/promises";
import { clientLimits } from "../limits.ts";
import { isRetryable, ServiceError } from "./transport.ts";

/** Sleeps; resolves early when the signal is aborted, because the caller's loop checks the signal. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0) return;
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** Lets requests through one after another, never two within `gapMs`. */
export function createPace(gapMs: number): (signal: AbortSignal) => Promise<void> {
  let nextAtMs = 0;
  return async (signal) => {
    const nowMs = performance.now();
    const atMs = Math.max(nowMs, nextAtMs);
    nextAtMs = atMs + gapMs;
    await pause(atMs - nowMs, signal);
  };
}

/** Doubling waits with a maximum. The jitter prevents that many clients reconnect at the same moment. */
export function createBackoff(options: { firstMs: number; maxMs: number; random?: () => number }): {
  nextMs(): number;
  reset(): void;
} {
  const random = options.random ?? Math.random;
  let failures = 0;
  return {
    nextMs() {
      const fullMs = Math.min(options.maxMs, options.firstMs * 2 ** failures);
      failures = Math.min(failures + 1, 30);
      return Math.round(fullMs * (0.5 + random() / 2));
    },
    reset() {
      failures = 0;
    },
  };
}

/** Throws the last failure when it is not retryable, when `maxTries` are used up, or when the signal is aborted. */
export async function repeatUntilAnswered<T>(
  attempt: () => Promise<T>,
  options: {
    readonly signal: AbortSignal;
    readonly maxTries: number;
    /** Called with each failure that is followed by another try. */
    readonly onRetry?: (error: unknown) => void;
  },
): Promise<T> {
  const backoff = createBackoff({ firstMs: clientLimits.backoffFirstMs, maxMs: clientLimits.backoffMaxMs });
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRetryable(error) || tries >= options.maxTries || options.signal.aborted) throw error;
      options.onRetry?.(error);
      await pause(waitMs(error, backoff.nextMs()), options.signal);
    }
  }
}

/** How long to wait after a failure: the client's back-off, or longer when the service asked for it. */
function waitMs(error: unknown, backoffMs: number): number {
  const askedMs = error instanceof ServiceError ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(askedMs, backoffMs);
}
