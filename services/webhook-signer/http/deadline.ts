/** A span of time with an end that can be waited for in every step of an attempt. */
import { AttemptFailure } from "./attempt-failure.ts";

export interface Deadline {
  /** Aborts with `reason` at the end of the time, and with an outer signal's reason when that aborts. */
  readonly signal: AbortSignal;
  /** Ends the watch. The caller calls it in any case. */
  clear(): void;
}

/**
 * Not `AbortSignal.any` of `AbortSignal.timeout`: both leave something behind at an outer signal that lives as long as the
 * process, or until a timer that nobody needs any more.
 */
export function startDeadline(
  afterMs: number,
  outer: readonly AbortSignal[],
  reason: () => Error = () => new AttemptFailure("timed_out"),
): Deadline {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(reason()), afterMs);
  const stop = (event: Event): void => controller.abort((event.target as AbortSignal).reason);
  for (const signal of outer) {
    if (signal.aborted) controller.abort(signal.reason);
    else signal.addEventListener("abort", stop, { once: true });
  }
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer);
      for (const signal of outer) signal.removeEventListener("abort", stop);
    },
  };
}
