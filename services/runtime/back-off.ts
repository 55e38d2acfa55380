/** The pause before the next of several attempts. */

export interface BackOffLimits {
  readonly firstMs: number;
  readonly longestMs: number;
}

/**
 * After `attempt` attempts, counted from one, the pause has doubled as often, up to the longest. Up to half of it is left
 * out by chance, so that processes that failed together do not try again together.
 */
export function backOffMs(attempt: number, limits: BackOffLimits, chance: number = Math.random()): number {
  return Math.min(limits.longestMs, limits.firstMs * 2 ** (attempt - 1)) * (0.5 + chance / 2);
}
