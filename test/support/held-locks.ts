/** For the pool of a test whose transactions hold locks, for which the product waits, longer than a service's transaction may. */
export const HOLDS_LOCKS = { idleInTransactionMs: 60_000 } as const;
