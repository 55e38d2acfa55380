/** Repeating what is safe to repeat: with growing pauses, and never before the service asked for. */
import { isRetryable, ServiceRefusal } from "./device-error.ts";
import { clientLimits } from "./limits.ts";
import { createBackoff, pause } from "./pace.ts";

/** Throws the last failure when it is not retryable, when `maxTries` are used up, or when the signal is aborted. */
export async function repeatUntilAnswered<T>(
  attempt: () => Promise<T>,
  options: {
    readonly signal: AbortSignal;
    readonly maxTries: number;
    /** Called with each failure that is followed by another try. */
    readonly onRetry?: (error: unknown) => void;
  },
): Promise<T> {
  const backoff = createBackoff({ firstMs: clientLimits.backoffFirstMs, maxMs: clientLimits.backoffMaxMs });
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRetryable(error) || tries >= options.maxTries || options.signal.aborted) throw error;
      options.onRetry?.(error);
      await pause(waitMs(error, backoff.nextMs()), options.signal);
    }
  }
}

/** How long to wait after a failure: our own back-off, or longer when the service asked for it. */
export function waitMs(error: unknown, backoffMs: number): number {
  const askedMs = error instanceof ServiceRefusal ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(askedMs, backoffMs);
}
