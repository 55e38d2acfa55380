/**
 * Decides whether the sender may send to a webhook endpoint. When a target fails several times in a row, the sender
 * pauses its endpoint: the target can recover, and takes no place of other endpoints. Its deliveries wait meanwhile and
 * use up no attempts.
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
  /** A slow target holds a place for ten seconds. So it gets few places, and leaves the rest to other endpoints. */
  inFlightPerEndpoint: 4,
  /** The breaker opens after this many failures in a row: at first for `openMs`, at most for `longestOpenMs`. */
  failuresToOpen: 5,
  openMs: 30 * SECOND_MS,
  longestOpenMs: 15 * MINUTE_MS,
  /** An endpoint is disabled after this long without a success and at least `failuresToDisable` failures. */
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

/** The state in an endpoint's row. Times are milliseconds since the epoch. */
export interface BreakerState {
  readonly consecutiveFailures: number;
  /** How often the breaker has opened since the last success. */
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

/** How many more deliveries the sender may start now, beside those in flight. */
export function roomOf(state: BreakerState, inFlight: number, nowMs: number): number {
  // As many as may fail before the breaker opens, so that no other attempt is in flight when it opens.
  const untilOpen = BREAKER_RULES.failuresToOpen - state.consecutiveFailures;
  const closed = Math.min(BREAKER_RULES.inFlightPerEndpoint, untilOpen);
  const most = { closed, half_open: 1, open: 0 }[breaking(state, nowMs)];
  return Math.max(0, most - inFlight);
}

/**
 * The state after a failure. While the breaker is open, a failure of an attempt that was in flight does not open it for
 * longer: one outage counts once, however many deliveries fail in it.
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

/** Why the sender has to disable the endpoint now; undefined when it need not. */
export function disabledBy(
  state: BreakerState,
  outcome: { readonly status: number | null; readonly nowMs: number },
): DisabledReason | undefined {
  if (outcome.status === 410) return "gone";
  if (state.failingSinceMs === null || state.failuresSinceSuccess < BREAKER_RULES.failuresToDisable) return undefined;
  return outcome.nowMs - state.failingSinceMs >= BREAKER_RULES.failingToDisableMs ? "failing" : undefined;
}
