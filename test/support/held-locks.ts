/** For a pool of the test's own: its transactions hold locks while the product waits for them, longer than a service's may. */
export const HOLDS_LOCKS = { idleInTransactionMs: 60_000 } as const;
