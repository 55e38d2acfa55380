/** Every timer is an absolute deadline in committed state; an overdue one is an ordinary event (design §3). */
import { leaseMachine } from "../lease.ts";
import { take } from "../pure-transition.ts";
import type { StationEvent } from "./event.ts";
import { moveIntent } from "./intent-move.ts";
import type { StationState } from "./state.ts";

/** The earliest moment at which this state changes by itself, or null. A settlement under way does not expire (I7). */
export function nextDeadlineMs(state: StationState): number | null {
  const intentMs = state.intent !== null && state.intent.status !== "settling" ? state.intent.expiresAtMs : null;
  const leaseMs = state.lease?.expiresAtMs ?? null;
  if (intentMs === null) return leaseMs;
  return leaseMs === null ? intentMs : Math.min(intentMs, leaseMs);
}

/** Applies every deadline that is due at `atMs`, in the order in which a person would tell them. */
export function applyDeadlines(before: StationState, atMs: number): { state: StationState; events: StationEvent[] } {
  let state = before;
  const events: StationEvent[] = [];
  if (state.intent !== null && state.intent.expiresAtMs <= atMs) {
    const { intentId } = state.intent;
    const moved = moveIntent(state, { type: "EXPIRE", atMs });
    if (moved !== undefined) {
      state = moved;
      events.push({ type: "intent_expired", intentId });
    }
  }
  if (state.lease !== null && state.lease.expiresAtMs <= atMs) {
    const { cashierId } = state.lease;
    const lapsed = take(
      leaseMachine,
      { value: "held", context: { holder: state.lease, lost: state.lostLease } },
      { type: "LAPSE" },
    );
    if (lapsed !== undefined) {
      state = { ...state, lease: lapsed.context.holder };
      events.push({ type: "lease_lapsed", cashierId });
    }
  }
  return { state, events };
}
