import { setTimeout as delay } from "node:timers/promises";

/** Polls until `poll` returns a result. Fails after `timeoutMs`. */
export async function waitFor<T>(
  what: string,
  poll: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 60_000,
): Promise<T> {
  const deadlineMs = Date.now() + timeoutMs;
  for (;;) {
    const seen = await poll();
    if (seen !== undefined && seen !== false) return seen;
    if (Date.now() > deadlineMs) throw new Error(`Not seen within ${timeoutMs} ms: ${what}.`);
    await delay(20);
  }
}
