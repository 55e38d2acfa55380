/** The deadlines of a station: absolute times in the committed state, whose end is an ordinary event (design §3). */
import { leaseMachine } from "../lease.ts";
import { type Attestation, isConfirmed, type PaymentIntent } from "../payment-intent.ts";
import { take } from "../pure-transition.ts";
import type { StationEvent } from "./event.ts";
import { moveIntent } from "./intent-move.ts";
import type { RecordedConfirmation } from "./outcome.ts";
import type { StationState } from "./state.ts";

/** The earliest moment at which this state changes by itself, or null. A settlement under way does not expire (I7). */
export function nextDeadlineMs(state: StationState): number | null {
  const intentMs = state.intent !== null && state.intent.status !== "settling" ? state.intent.expiresAtMs : null;
  const leaseMs = state.lease?.expiresAtMs ?? null;
  if (intentMs === null) return leaseMs;
  return leaseMs === null ? intentMs : Math.min(intentMs, leaseMs);
}

/**
 * Whether the active intent is an overdue QR whose payment may have been confirmed in time. The providers service may have
 * recorded the confirmation when it could not reach this station. So the intent expires only after a check (design §2.7).
 */
export function needsConfirmationCheck({ intent }: Pick<StationState, "intent">, atMs: number): boolean {
  if (intent === null || intent.provider === null || intent.expiresAtMs > atMs) return false;
  return intent.status !== "settling" && !isConfirmed(intent);
}

/** The input of a due deadline. */
interface DeadlineInput {
  readonly atMs: number;
  readonly recordedConfirmation: RecordedConfirmation;
}

/** Applies the deadlines that are due at `atMs`: first the intent's, then the lease's. */
export function applyDeadlines(
  before: StationState,
  input: DeadlineInput,
): { state: StationState; events: StationEvent[] } {
  const { atMs } = input;
  let state = before;
  const events: StationEvent[] = [];
  if (state.intent !== null && state.intent.expiresAtMs <= atMs) {
    const due = endOrConfirm(state, state.intent, input);
    if (due !== undefined) {
      state = due.state;
      events.push(due.event);
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

/** Expires an overdue intent, or settles it when its confirmation was recorded in time. Undefined when nothing changes. */
function endOrConfirm(
  state: StationState,
  { intentId }: PaymentIntent,
  { atMs, recordedConfirmation }: DeadlineInput,
): { readonly state: StationState; readonly event: StationEvent } | undefined {
  if (needsConfirmationCheck(state, atMs) && recordedConfirmation !== "none") {
    if (recordedConfirmation === "unknown") return undefined;
    const { providerReference } = recordedConfirmation;
    // The confirmation command arrives later and gets this settlement's outcome. The current command does not.
    const attestation = confirmedBy(confirmationId(intentId), providerReference, atMs);
    const confirmed = moveIntent(state, { type: "CONFIRM", atMs, attestation, providerReference });
    if (confirmed === undefined) return undefined;
    return { state: confirmed, event: { type: "provider_confirmed", intentId, providerReference } };
  }
  const expired = moveIntent(state, { type: "EXPIRE", atMs });
  return expired === undefined ? undefined : { state: expired, event: { type: "intent_expired", intentId } };
}

/** The command id of the provider's confirmation. An intent has one confirmation. */
export function confirmationId(intentId: number): string {
  return `provider:confirm:${intentId}`;
}

/** The attestation from a provider's confirmation, until the payment seam has answered. */
export function confirmedBy(commandId: string, reference: string, atMs: number): Attestation {
  return { by: "provider", commandId, cashierId: 0, cashierName: "", reference, atMs, transactionId: null };
}
