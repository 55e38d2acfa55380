/**
 * Whether an endpoint is sent to. A target that fails again and again is left alone for a while, so that it costs neither
 * it nor its neighbours anything; deliveries wait meanwhile and use up no attempts.
 *
 *   closed ── failures in a row ──► open ── its time is over ──► half open (one probe)
 *     ▲                              ▲                                │
 *     └────────── success ───────────┼──────────── success ──────────┤
 *                                    └──── failure, twice as long ───┘
 *
 * Without any success for days it is disabled, with a reason that the owner sees; 410 disables at once.
 */
import type { DISABLED_REASONS } from "../../bus/messages/webhook-endpoints.ts";
import { SIGNER_LIMITS } from "../limits.ts";

/** What an endpoint's row knows. Times are milliseconds since the epoch. */
export interface BreakerState {
  readonly consecutiveFailures: number;
  /** How often it has opened since the last success. */
  readonly timesOpened: number;
  readonly openUntilMs: number | null;
  readonly failingSinceMs: number | null;
  readonly failuresSinceSuccess: number;
}

export const CLOSED: BreakerState = {
  consecutiveFailures: 0,
  timesOpened: 0,
  openUntilMs: null,
  failingSinceMs: null,
  failuresSinceSuccess: 0,
};

export type Breaking = "closed" | "open" | "half_open";

export function breaking({ openUntilMs }: BreakerState, nowMs: number): Breaking {
  if (openUntilMs === null) return "closed";
  return nowMs < openUntilMs ? "open" : "half_open";
}

/** How many more may be sent at once, beside those in flight. */
export function roomOf(state: BreakerState, inFlight: number, nowMs: number): number {
  // No more than could fail before it opens, so that it opens at that failure and not at some that were under way.
  const untilOpen = Math.max(0, SIGNER_LIMITS.failuresToOpen - state.consecutiveFailures);
  const closed = Math.min(SIGNER_LIMITS.inFlightPerEndpoint, untilOpen);
  const most = { closed, half_open: 1, open: 0 }[breaking(state, nowMs)];
  return Math.max(0, most - inFlight);
}

/**
 * After a failure. Failures of attempts that were under way when it opened change nothing about how long it is open:
 * one outage of many deliveries at once is one.
 */
export function afterFailure(state: BreakerState, nowMs: number): BreakerState {
  const failed: BreakerState = {
    ...state,
    consecutiveFailures: state.consecutiveFailures + 1,
    failuresSinceSuccess: state.failuresSinceSuccess + 1,
    failingSinceMs: state.failingSinceMs ?? nowMs,
  };
  const now = breaking(state, nowMs);
  if (now === "open") return failed;
  if (now === "closed" && failed.consecutiveFailures < SIGNER_LIMITS.failuresToOpen) return failed;
  const openMs = Math.min(SIGNER_LIMITS.openMs * 2 ** state.timesOpened, SIGNER_LIMITS.longestOpenMs);
  return { ...failed, timesOpened: state.timesOpened + 1, openUntilMs: nowMs + openMs };
}

/** Why the endpoint is to be disabled now; undefined when it is not. */
export function disabledBy(
  state: BreakerState,
  outcome: { readonly status: number | null; readonly nowMs: number },
): (typeof DISABLED_REASONS)[number] | undefined {
  if (outcome.status === 410) return "gone";
  if (state.failingSinceMs === null || state.failuresSinceSuccess < SIGNER_LIMITS.failuresToDisable) return undefined;
  return outcome.nowMs - state.failingSinceMs >= SIGNER_LIMITS.failingToDisableMs ? "failing" : undefined;
}
