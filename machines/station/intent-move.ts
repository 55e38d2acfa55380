/**
 * Moves the active intent by one event of its machine. When that ended it, it is filed under `ended`, and when it ended
 * unpaid although money may have moved, its order is in doubt from here on.
 */
import { type IntentEvent, paymentIntentMachine } from "../intent-machine.ts";
import { type IntentState, isEnded, type PaymentIntent } from "../payment-intent.ts";
import { take } from "../pure-transition.ts";
import { STATE_LIMITS } from "../settings.ts";
import { addDoubt, doubtAtEnd } from "./doubts.ts";
import type { StationState } from "./state.ts";

/** The station with its active intent moved, or undefined when the intent does not take the event. */
export function moveIntent(state: StationState, event: IntentEvent): StationState | undefined {
  if (state.intent === null) return undefined;
  const { status, ...context } = state.intent;
  const next = take(paymentIntentMachine, { value: status, context }, event);
  if (next === undefined) return undefined;
  const intent: PaymentIntent = { ...next.context, status: next.value as IntentState };
  if (!isEnded(intent.status)) return { ...state, intent };
  const ended = { ...state, intent: null, ended: [intent, ...state.ended].slice(0, STATE_LIMITS.endedIntents) };
  // As it was before its end: an ended intent keeps its newest report only.
  const reason = intent.status === "succeeded" ? undefined : doubtAtEnd(state.intent, intent.endReason);
  const { orderId, intentId } = intent;
  return reason === undefined ? ended : addDoubt(ended, { orderId, intentId, reason });
}
