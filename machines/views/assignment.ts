/** The assignment of a companion: the active intent that was handed to it, else null (design §4, "assignment"). */
import { formatAmount } from "../currency.ts";
import { isEnded, type PaymentIntent, wireStatus } from "../payment-intent.ts";
import type { StationState } from "../station/state.ts";
import { isHeldBack } from "../station/unclear-collections.ts";

export interface AssignmentView {
  readonly intent_id: number;
  readonly intent_display_number: number;
  readonly order_display_number: number;
  readonly station_name: string;
  readonly amount: string;
  readonly currency: string;
  readonly status: string;
  readonly handoff_target: string;
  readonly expires_at: string;
}

export function assignmentView(intent: PaymentIntent): AssignmentView {
  return {
    intent_id: intent.intentId,
    intent_display_number: intent.displayNumber,
    order_display_number: intent.orderDisplayNumber,
    station_name: intent.stationName,
    amount: formatAmount(intent.amountMinor, intent.currency),
    currency: intent.currency,
    status: wireStatus(intent.status),
    handoff_target: intent.handoffTarget,
    expires_at: new Date(intent.expiresAtMs).toISOString(),
  };
}

/**
 * The intent that a device is to collect, or null. An expired intent is not offered, even before its expiry is committed. An
 * intent that the device has not fetched is held back while the cashier has to confirm that an earlier collection may have
 * taken the money.
 */
export function assignedIntent(state: StationState, deviceId: number, nowMs: number): PaymentIntent | null {
  const { intent } = state;
  if (intent === null || intent.deviceId !== deviceId || isEnded(intent.status)) return null;
  if (isHeldBack(state, intent)) return null;
  return intent.status !== "settling" && intent.expiresAtMs <= nowMs ? null : intent;
}
