/** When a failed delivery is tried again. */
import { SIGNER_LIMITS } from "../limits.ts";

/** What the decision depends on. */
export interface FailedAttempt {
  /** Attempts made so far, this one included. */
  readonly attempts: number;
  /** What the target asked for by `Retry-After`; null when it asked for nothing. */
  readonly retryAfterMs: number | null;
  /** From 0 to 1: spreads the repetitions of many deliveries that failed together. */
  readonly random: number;
}

/** Milliseconds until the next attempt; undefined when there is none. */
export function retryInMs({ attempts, retryAfterMs, random }: FailedAttempt): number | undefined {
  const plannedMs = SIGNER_LIMITS.retryAfterMs[attempts - 1];
  if (plannedMs === undefined) return undefined;
  const spreadMs = plannedMs * (1 + SIGNER_LIMITS.retryJitter * (2 * random - 1));
  const askedMs = Math.min(retryAfterMs ?? 0, SIGNER_LIMITS.longestRetryAfterMs);
  return Math.round(Math.max(spreadMs, askedMs));
}
