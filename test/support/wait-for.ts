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
