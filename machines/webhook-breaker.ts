/**
 * Whether a webhook endpoint is sent to. A target that fails again and again is left alone for a while, so that it costs
 * neither itself nor its neighbours anything; deliveries wait meanwhile and use up no attempts.
 *
 *   closed ── failures in a row ──► open ── its time is over ──► half open (one probe)
 *     ▲                              ▲                                │
 *     └────────── success ───────────┼──────────── success ───────────┤
 *                                    └──── failure, twice as long ────┘
 *
 * An endpoint without any success for days is disabled, with a reason that the owner sees. A 410 disables it at once.
 */

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;

export const BREAKER_RULES = {
  /** One slow target must not take the room of others (it would hold each place for ten seconds). */
  inFlightPerEndpoint: 4,
  /** Failures in a row after which a target is left alone, and for how long at first and at most. */
  failuresToOpen: 5,
  openMs: 30 * SECOND_MS,
  longestOpenMs: 15 * MINUTE_MS,
  /** After this long without a success, and as many failures, an endpoint is disabled. */
  failingToDisableMs: 5 * DAY_MS,
  failuresToDisable: 20,
} as const;

export const DISABLED_REASONS = [
  /** The target answered 410. */
  "gone",
  /** No success for days and many failures. */
  "failing",
] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

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

export const BREAKINGS = ["closed", "open", "half_open"] as const;
export type Breaking = (typeof BREAKINGS)[number];

export function breaking({ openUntilMs }: BreakerState, nowMs: number): Breaking {
  if (openUntilMs === null) return "closed";
  return nowMs < openUntilMs ? "open" : "half_open";
}

/** How many more may be sent at once, beside those in flight. */
export function roomOf(state: BreakerState, inFlight: number, nowMs: number): number {
  // No more than could fail before it opens, so that it opens at that failure and not at some that were under way.
  const untilOpen = BREAKER_RULES.failuresToOpen - state.consecutiveFailures;
  const closed = Math.min(BREAKER_RULES.inFlightPerEndpoint, untilOpen);
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
  if (now === "closed" && failed.consecutiveFailures < BREAKER_RULES.failuresToOpen) return failed;
  const openMs = Math.min(BREAKER_RULES.openMs * 2 ** state.timesOpened, BREAKER_RULES.longestOpenMs);
  return { ...failed, timesOpened: state.timesOpened + 1, openUntilMs: nowMs + openMs };
}

/** Why the endpoint is to be disabled now; undefined when it is not. */
export function disabledBy(
  state: BreakerState,
  outcome: { readonly status: number | null; readonly nowMs: number },
): DisabledReason | undefined {
  if (outcome.status === 410) return "gone";
  if (state.failingSinceMs === null || state.failuresSinceSuccess < BREAKER_RULES.failuresToDisable) return undefined;
  return outcome.nowMs - state.failingSinceMs >= BREAKER_RULES.failingToDisableMs ? "failing" : undefined;
}
