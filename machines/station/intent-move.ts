/**
 * Moves the active intent by one event of its machine. After its end, the intent is in `ended`. If a QR ended unpaid, the
 * host must report the end to the providers service. If money may have moved, the order is unclear from now on.
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

/** The station after the active intent has moved, or undefined when the intent does not accept the event. */
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
  // A paid or voided order does not become unclear. The intent keeps the reason.
  return reason === undefined ? moved : addUnclear(moved, intent, { reason, atMs: intent.endedAtMs as number });
}

/** The newest ended intents, within the bounds of number and of text. The audit log has older ones. */
function keepEnded(ended: readonly PaymentIntent[]): readonly PaymentIntent[] {
  const newest = ended.slice(0, STATE_LIMITS.endedIntents - 1);
  return withinText(newest.toReversed(), textOfIntent).toReversed();
}

function addUnreportedEnd(state: StationState, intentId: number): StationState {
  return { ...state, unreportedEnds: [...state.unreportedEnds, intentId].slice(-STATE_LIMITS.unreportedEnds) };
}

/**
 * The station after an order was paid in another way, voided or changed. This ends a `created` or `presented` collection of the
 * order; a change ends only a QR. In `processing` the cashier decides, and in `settling` the seam.
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
