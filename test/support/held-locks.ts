/** For the pool of a test whose transactions hold locks, longer than a service may, while the product waits for them. */
export const HOLDS_LOCKS = { idleInTransactionMs: 60_000 } as const;
