import { setTimeout as delay } from "node:timers/promises";

/** A poll uses CPU that the awaited work needs. So the pause grows with the wait, up to a tenth of it. */
const PAUSE = { leastMs: 20, mostMs: 100, ofWait: 0.1 } as const;

/** Polls until `poll` returns a result. Fails after `timeoutMs`. */
export async function waitFor<T>(
  what: string,
  poll: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 60_000,
): Promise<T> {
  const startedAtMs = Date.now();
  for (;;) {
    const seen = await poll();
    if (seen !== undefined && seen !== false) return seen;
    const waitedMs = Date.now() - startedAtMs;
    if (waitedMs > timeoutMs) throw new Error(`Not seen within ${timeoutMs} ms: ${what}.`);
    await delay(Math.min(Math.max(waitedMs * PAUSE.ofWait, PAUSE.leastMs), PAUSE.mostMs));
  }
}

/** The longest wait, so that a test does not hang. It does not check how soon something holds. */
const HANGS_MS = 20_000;

/**
 * Polls until something holds, and resolves with how long that took. A check that throws is repeated, because it may ask a
 * server that the test has just killed.
 */
export async function eventually(holds: () => Promise<boolean> | boolean, withinMs = HANGS_MS): Promise<number> {
  const startedAtMs = performance.now();
  let cause: unknown;
  for (;;) {
    try {
      if (await holds()) return performance.now() - startedAtMs;
    } catch (error) {
      cause = error;
    }
    const waitedMs = performance.now() - startedAtMs;
    if (waitedMs > withinMs) throw new Error(`The condition did not hold in ${withinMs} ms.`, { cause });
    // Many checks read and decode a commit. So a longer wait checks less often, and ends at most a twentieth later.
    await delay(Math.min(Math.max(waitedMs / 20, 5), 100));
  }
}
