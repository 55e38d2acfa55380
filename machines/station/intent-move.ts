/** Moves the active intent by one event of its machine, and files it under `ended` when that ended it. */
import {
  type IntentEvent,
  type IntentState,
  isEnded,
  type PaymentIntent,
  paymentIntentMachine,
} from "../payment-intent.ts";
import { take } from "../pure-transition.ts";
import { STATE_LIMITS } from "../settings.ts";
import type { StationState } from "./state.ts";

/** The station with its active intent moved, or undefined when the intent does not take the event. */
export function moveIntent(state: StationState, event: IntentEvent): StationState | undefined {
  if (state.intent === null) return undefined;
  const { status, ...context } = state.intent;
  const next = take(paymentIntentMachine, { value: status, context }, event);
  if (next === undefined) return undefined;
  const intent: PaymentIntent = { ...next.context, status: next.value as IntentState };
  if (!isEnded(intent.status)) return { ...state, intent };
  return { ...state, intent: null, ended: [intent, ...state.ended].slice(0, STATE_LIMITS.endedIntents) };
}
