import { setTimeout as delay } from "node:timers/promises";

/** Polls until `look` returns a result. Fails after `timeoutMs`. */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 60_000,
): Promise<T> {
  const deadlineMs = Date.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (Date.now() > deadlineMs) throw new Error(`Not seen within ${timeoutMs} ms: ${what}.`);
    await delay(20);
  }
}
