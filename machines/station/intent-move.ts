/**
 * Moves the active intent by one event of its machine. When that ended it, it is filed under `ended`. When it ended unpaid,
 * the end of a QR is to be reported to its provider's side, and where money may have moved its order is unclear from here on.
 */
import { type IntentEvent, paymentIntentMachine } from "../intent-machine.ts";
import { type IntentState, isEnded, type OrderObstacle, type PaymentIntent } from "../payment-intent.ts";
import { take } from "../pure-transition.ts";
import { textOfIntent, withinText } from "../report-text.ts";
import { STATE_LIMITS } from "../settings.ts";
import type { StationEvent } from "./event.ts";
import { leaveState } from "./older-reasons.ts";
import type { StationState } from "./state.ts";
import { addUnclear, reasonAtEnd } from "./unclear-collections.ts";

/** The station with its active intent moved, or undefined when the intent does not take the event. */
export function moveIntent(state: StationState, event: IntentEvent): StationState | undefined {
  if (state.intent === null) return undefined;
  const { status, ...context } = state.intent;
  const next = take(paymentIntentMachine, { value: status, context }, event);
  if (next === undefined) return undefined;
  const intent: PaymentIntent = { ...next.context, status: next.value as IntentState };
  if (!isEnded(intent.status)) return { ...state, intent };
  const { intentId, provider, endReason } = intent;
  const reason = intent.status === "succeeded" ? undefined : reasonAtEnd(state.intent, endReason);
  const filed: PaymentIntent = { ...intent, reasonSinceEnd: reason ?? "" };
  const kept = keepEnded(state.ended);
  const left = state.ended.filter((other) => !kept.includes(other));
  const ended = leaveState({ ...state, intent: null, ended: [filed, ...kept] }, left);
  if (intent.status === "succeeded") return ended;
  const moved = provider === null ? ended : addUnreportedEnd(ended, intentId);
  // A paid or voided order is not unclear; the intent itself keeps that its money may have moved.
  return reason === undefined ? moved : addUnclear(moved, intent, { reason });
}

/** The newest of those that ended before, within the bounds of their number and of their text; older ones are in the audit log. */
function keepEnded(ended: readonly PaymentIntent[]): readonly PaymentIntent[] {
  const newest = ended.slice(0, STATE_LIMITS.endedIntents - 1);
  return withinText(newest.toReversed(), textOfIntent).toReversed();
}

function addUnreportedEnd(state: StationState, intentId: number): StationState {
  return { ...state, unreportedEnds: [...state.unreportedEnds, intentId].slice(-STATE_LIMITS.unreportedEnds) };
}

/**
 * The station once an order was paid by another way, voided or changed: a collection of it that is being waited for is over,
 * after a change only that of a QR. What is in front of the cashier or with the seam stays theirs to decide.
 */
export function endOvertaken(
  state: StationState,
  { orderId, reason }: { readonly orderId: number; readonly reason: OrderObstacle },
  atMs: number,
): { readonly state: StationState; readonly events: readonly StationEvent[] } {
  const overtaken =
    state.intent?.orderId === orderId ? moveIntent(state, { type: "OVERTAKEN", atMs, reason }) : undefined;
  const [intent] = overtaken?.ended ?? [];
  if (overtaken === undefined || intent === undefined) return { state, events: [] };
  const { intentId } = intent;
  const moneyMayHaveMoved = intent.moneyMayHaveMoved !== "";
  return { state: overtaken, events: [{ type: "intent_overtaken", intentId, orderId, reason, moneyMayHaveMoved }] };
}
