/**
 * The longest wait for an event, so that a test does not hang. It does not check how soon the event happens. A test that
 * checks this compares times that the system has recorded, or is in the `timed` project (`vitest.config.ts`).
 */
export const HANGS = { timeout: 15_000 } as const;
