/**
 * The steps of a station's lease: acquire, take over, renew, release, the end with a session or by the owner, and the check of
 * each collection command.
 */
import { type LeaseEvent, type LeaseHolder, leaseMachine } from "../lease.ts";
import { take } from "../pure-transition.ts";
import { ENDED_SESSION_KEPT_MS, LEASE_LIFETIME_BOUNDS_MS, STATE_LIMITS } from "../settings.ts";
import type { LeaseTerms } from "./command.ts";
import type { StationEvent } from "./event.ts";
import { ACCEPTED, type Command, type Outcome, refuse, type StepInput } from "./outcome.ts";
import type { StationReply } from "./reply.ts";
import type { EndedSession, StationState, StoredReply } from "./state.ts";

/** The refusal when the acting cashier does not hold the lease; undefined when the cashier does. */
export function refuseWithoutLease(state: StationState, input: StepInput): Outcome | undefined {
  if (state.lease !== null && input.actor.kind === "cashier" && state.lease.cashierId === input.actor.id)
    return undefined;
  return refuseLease(state);
}

/**
 * `takeOverFrom` has the id of the holder that the cashier knows: if the holder has changed since, the lease stays. A closed
 * station has a lease only to finish the collection under way, because the guest may have paid.
 */
export function acquireLease(state: StationState, command: Command<"lease_acquire">, input: StepInput): Outcome {
  if (input.actor.kind !== "cashier") return refuse("lease_required");
  if (state.status === "closed" && state.intent === null) return refuse("station_closed");
  const expiresAtMs = expiryOf(state, command, input);
  if (expiresAtMs === undefined) return refuse("session_ended");
  const holder: LeaseHolder = {
    cashierId: input.actor.id,
    cashierName: input.actor.name,
    sessionId: command.session?.sessionId ?? null,
    acquiredAtMs: input.atMs,
    expiresAtMs,
  };
  const { cashierId, cashierName } = holder;
  const before = state.lease;
  if (before === null || before.cashierId === cashierId || command.takeOverFrom === undefined)
    return move(state, { type: "ACQUIRE", holder }, { type: "lease_acquired", cashierId, expiresAtMs });
  return move(
    state,
    { type: "TAKE_OVER", holder, fromCashierId: command.takeOverFrom },
    {
      type: "lease_taken_over",
      cashierId,
      cashierName,
      fromCashierId: before.cashierId,
      fromCashierName: before.cashierName,
      expiresAtMs,
    },
  );
}

/**
 * The repetition of an acquisition. It acquires nothing, so that a late repetition cannot take the lease from a later holder.
 * The reply is a success only while the cashier holds the lease.
 */
export function repeatAcquisition(
  state: StationState,
  stored: StoredReply,
  { actor, atMs, requestDigest }: Pick<StepInput, "actor" | "atMs"> & { readonly requestDigest: string | undefined },
): StationReply {
  if (stored.requestDigest !== requestDigest) return { ok: false, code: "idempotency_key_reused" };
  const { lease } = state;
  if (lease === null || lease.expiresAtMs <= atMs) return { ok: false, code: "lease_required" };
  return lease.cashierId === actor.id ? leaseReply(state) : refuseLease(state).reply;
}

export function renewLease(state: StationState, command: Command<"lease_renew">, input: StepInput): Outcome {
  const refused = refuseWithoutLease(state, input);
  if (refused !== undefined) return refused;
  const expiresAtMs = expiryOf(state, command, input);
  if (expiresAtMs === undefined) return refuse("session_ended");
  const cashierId = input.actor.id;
  const sessionId = command.session?.sessionId ?? null;
  return move(
    state,
    { type: "RENEW", cashierId, sessionId, expiresAtMs },
    { type: "lease_renewed", cashierId, expiresAtMs },
  );
}

export function releaseLease(state: StationState, input: StepInput): Outcome {
  const cashierId = input.actor.id;
  // The caller asked for a free station.
  if (state.lease === null) return { reply: leaseReply(state) };
  return (
    refuseWithoutLease(state, input) ??
    move(state, { type: "RELEASE", cashierId }, { type: "lease_released", cashierId })
  );
}

/** The owner frees the station. A collection under way continues, and the next holder finishes it. */
export function breakLease(state: StationState, input: StepInput): Outcome {
  if (input.actor.kind !== "owner") return refuse("lease_required");
  if (state.lease === null) return { reply: leaseReply(state) };
  const { cashierId, cashierName } = state.lease;
  return move(
    state,
    { type: "BREAK", byName: input.actor.name ?? "", atMs: input.atMs },
    { type: "lease_broken", cashierId, cashierName },
  );
}

/**
 * Sessions have ended. Their lease ends too, and their requests that are still under way get no lease. The station remembers
 * the sessions for as long as such a request can be under way.
 */
export function endSessions(state: StationState, command: Command<"sessions_ended">, input: StepInput): Outcome {
  const { atMs } = input;
  const known = state.endedSessions.filter((ended) => !isPast(ended, atMs));
  const sessionIds = command.sessionIds.filter((id) => !known.some((ended) => ended.sessionId === id));
  if (sessionIds.length === 0) return { reply: ACCEPTED };
  const added = sessionIds.map((sessionId) => ({ sessionId, atMs }));
  const endedSessions = [...known, ...added].slice(-STATE_LIMITS.endedSessions);
  const events: StationEvent[] = [{ type: "sessions_ended", sessionIds }];
  const next = take(leaseMachine, recordOf(state), { type: "END", sessionIds });
  if (next === undefined || state.lease === null)
    return { state: { ...state, endedSessions }, events, reply: ACCEPTED };
  const { cashierId, cashierName } = state.lease;
  events.push({ type: "lease_ended", cashierId, cashierName });
  const { holder: lease, lost: lostLease } = next.context;
  return { state: { ...state, endedSessions, lease, lostLease }, events, reply: ACCEPTED };
}

/** When the lease lapses: at the latest with its session, and within the bounds. Undefined when the session has ended. */
function expiryOf(state: StationState, terms: LeaseTerms, { atMs, settings }: StepInput): number | undefined {
  const lifetimeMs = Math.min(terms.lifetimeMs ?? settings.leaseLifetimeMs, LEASE_LIFETIME_BOUNDS_MS.max);
  const { session } = terms;
  if (session === undefined) return atMs + lifetimeMs;
  if (session.expiresAtMs <= atMs) return undefined;
  const hasEnded = state.endedSessions.some((ended) => ended.sessionId === session.sessionId && !isPast(ended, atMs));
  return hasEnded ? undefined : Math.min(atMs + lifetimeMs, session.expiresAtMs);
}

function isPast(ended: EndedSession, atMs: number): boolean {
  return ended.atMs + ENDED_SESSION_KEPT_MS <= atMs;
}

function recordOf({ lease, lostLease }: StationState) {
  return { value: lease === null ? "free" : "held", context: { holder: lease, lost: lostLease } };
}

function refuseLease({ lease }: StationState): Outcome {
  return lease === null ? refuse("lease_required") : refuse("station_leased", { holder: lease.cashierName });
}

function move(state: StationState, event: LeaseEvent, record: StationEvent): Outcome {
  const next = take(leaseMachine, recordOf(state), event);
  if (next === undefined) return refuseLease(state);
  const { holder: lease, lost: lostLease } = next.context;
  const after = { ...state, lease, lostLease };
  return { state: after, events: [record], reply: leaseReply(after) };
}

export function leaseReply({ lease, lostLease }: StationState): StationReply {
  return { ok: true, type: "lease", lease, lostLease };
}
