/** The cashier's lease of a station: acquire, renew, release, and the check that each collection command makes. */
import { type LeaseEvent, type LeaseHolder, leaseMachine } from "../lease.ts";
import { take } from "../pure-transition.ts";
import type { StationEvent } from "./event.ts";
import { type Command, type Outcome, refuse, type StepInput } from "./outcome.ts";
import type { StationState } from "./state.ts";

/** The refusal when the acting cashier does not hold the lease, or undefined when they do. */
export function refuseWithoutLease(state: StationState, input: StepInput): Outcome | undefined {
  if (state.lease !== null && input.actor.kind === "cashier" && state.lease.cashierId === input.actor.id)
    return undefined;
  return state.lease === null
    ? refuse("lease_required")
    : refuse("station_leased", { holder: state.lease.cashierName });
}

export function acquireLease(state: StationState, command: Command<"lease_acquire">, input: StepInput): Outcome {
  if (input.actor.kind !== "cashier") return refuse("lease_required");
  if (state.status === "closed") return refuse("station_closed");
  const holder: LeaseHolder = {
    cashierId: input.actor.id,
    cashierName: input.actor.name,
    acquiredAtMs: input.atMs,
    expiresAtMs: input.atMs + (command.lifetimeMs ?? input.settings.leaseLifetimeMs),
  };
  const { cashierId, expiresAtMs } = holder;
  return move(state, { type: "ACQUIRE", holder }, { type: "lease_acquired", cashierId, expiresAtMs });
}

export function renewLease(state: StationState, command: Command<"lease_renew">, input: StepInput): Outcome {
  const expiresAtMs = input.atMs + (command.lifetimeMs ?? input.settings.leaseLifetimeMs);
  const cashierId = input.actor.id;
  return (
    refuseWithoutLease(state, input) ??
    move(state, { type: "RENEW", cashierId, expiresAtMs }, { type: "lease_renewed", cashierId, expiresAtMs })
  );
}

export function releaseLease(state: StationState, input: StepInput): Outcome {
  const cashierId = input.actor.id;
  // Releasing what nobody holds is the state the caller asked for.
  if (state.lease === null) return { reply: { ok: true, type: "lease", lease: null } };
  return (
    refuseWithoutLease(state, input) ??
    move(state, { type: "RELEASE", cashierId }, { type: "lease_released", cashierId })
  );
}

function move(state: StationState, event: LeaseEvent, record: StationEvent): Outcome {
  const from = state.lease === null ? "free" : "held";
  const next = take(leaseMachine, { value: from, context: { holder: state.lease } }, event);
  if (next === undefined) {
    return state.lease === null
      ? refuse("lease_required")
      : refuse("station_leased", { holder: state.lease.cashierName });
  }
  const lease = next.context.holder;
  return { state: { ...state, lease }, events: [record], reply: { ok: true, type: "lease", lease } };
}
