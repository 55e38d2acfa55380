/** Why money may have moved for collections that ended unpaid and have left the state: a person may have to pay a guest back. */
import type { PaymentIntent, UnclearReason } from "../payment-intent.ts";
import { STATE_LIMITS } from "../settings.ts";
import { isAtLeastAsStrong, leastNeeded } from "./reasons.ts";
import type { OlderReason, StationState } from "./state.ts";

/**
 * The station with this reason of an intent that has left its state, unless it has a stronger one of it. At the bound the
 * weakest leaves first: a payment that was reported stays while anything else can go.
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

/** The station once these intents have left its state. */
export function leaveState(state: StationState, left: readonly PaymentIntent[]): StationState {
  return left.reduce(
    (before, intent) =>
      intent.reasonSinceEnd === "" ? before : keepOlderReason(before, intent, intent.reasonSinceEnd),
    state,
  );
}

/** The list without what was taken back of this intent. */
export function withoutOlderReason(
  { olderReasons }: StationState,
  intentId: number,
  isTakenBack: (reason: UnclearReason) => boolean,
): readonly OlderReason[] {
  return olderReasons.filter((older) => older.intentId !== intentId || !isTakenBack(older.reason));
}
