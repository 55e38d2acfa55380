/**
 * For waits: against a test that hangs. It is no promise about how soon something happens; where there is one, the test
 * compares times that the system has noted, or is in the `timed` project (`vitest.config.ts`).
 */
export const HANGS = { timeout: 15_000 } as const;
