import { setTimeout as delay } from "node:timers/promises";

/** Between two polls: a tenth of the time that it has waited so far, because each poll takes CPU from what it waits for. */
const LEAST_MS = 20;
const MOST_MS = 100;

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
    await delay(Math.min(Math.max(waitedMs / 10, LEAST_MS), MOST_MS));
  }
}
