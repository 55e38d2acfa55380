/** Waits for a condition, and a log that prints nothing. */
export const QUIET = { info: () => undefined, warn: () => undefined };

/** Checks often until a condition holds; fails after `withinMs`. */
export async function eventually(holds: () => boolean, withinMs = 20_000): Promise<void> {
  const startedAt = performance.now();
  while (!holds()) {
    if (performance.now() - startedAt > withinMs) throw new Error(`The condition did not hold in ${withinMs} ms.`);
    await pause(5);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
