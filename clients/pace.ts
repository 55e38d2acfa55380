/** Waiting: the gap between two requests, the growing pause after failures, and a sleep that an abort ends. */
import { setTimeout as sleep } from "node:timers/promises";

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

/** Doubling pauses with a bound; the jitter keeps many devices from coming back in the same instant. */
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
