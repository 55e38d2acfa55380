/** The reasons of collections that ended unpaid and have left the state. A person may have to pay a guest back. */
import type { PaymentIntent, UnclearReason } from "../payment-intent.ts";
import { STATE_LIMITS } from "../settings.ts";
import { isAtLeastAsStrong, leastNeeded } from "./reasons.ts";
import type { OlderReason, StationState } from "./state.ts";

/**
 * The station with this reason of an intent that has left the state, unless it has a stronger reason of the intent. At the bound
 * the station forgets the weakest reason first, and a reported payment last.
 */
export function keepOlderReason(
  state: StationState,
  { intentId, orderId, reasonSinceEnd }: Pick<PaymentIntent, "intentId" | "orderId" | "reasonSinceEnd">,
  added: UnclearReason,
): StationState {
  const before = state.olderReasons.find((older) => older.intentId === intentId)?.reason ?? reasonSinceEnd;
  const reason = before !== "" && !isAtLeastAsStrong(added, before) ? before : added;
  const others = state.olderReasons.filter((older) => older.intentId !== intentId);
  const all = [...others, { orderId, intentId, reason }];
  const left = all.length > STATE_LIMITS.olderReasons ? leastNeeded(all) : undefined;
  return { ...state, olderReasons: all.filter((older) => older !== left) };
}

/** The station after these intents have left its state. */
export function leaveState(state: StationState, left: readonly PaymentIntent[]): StationState {
  return left.reduce(
    (before, intent) =>
      intent.reasonSinceEnd === "" ? before : keepOlderReason(before, intent, intent.reasonSinceEnd),
    state,
  );
}

/** The list without the reasons of this intent that later evidence has removed. */
export function withoutOlderReason(
  { olderReasons }: StationState,
  intentId: number,
  isTakenBack: (reason: UnclearReason) => boolean,
): readonly OlderReason[] {
  return olderReasons.filter((older) => older.intentId !== intentId || !isTakenBack(older.reason));
}
