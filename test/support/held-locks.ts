/** For the pool of a test: its transactions hold locks longer than a service's may, while the product waits for these locks. */
export const HOLDS_LOCKS = { idleInTransactionMs: 60_000 } as const;
