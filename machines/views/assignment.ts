/** The assignment of a companion: its active intent, or null (SPEC.md, "Views as decision tables"). */
import { formatAmount } from "../currency.ts";
import { isEnded, type PaymentIntent, wireStatus } from "../payment-intent.ts";
import type { StationState } from "../station/state.ts";
import { isHeldBack } from "../station/unclear-collections.ts";

interface AssignmentView {
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
 * The intent that a device must collect, or null. The view hides an overdue intent, even before the host has committed its end.
 * It also hides an intent that the device has not fetched, while the cashier must confirm that an earlier collection may have
 * charged the guest.
 */
export function assignedIntent(state: StationState, deviceId: number, nowMs: number): PaymentIntent | null {
  const { intent } = state;
  if (intent === null || intent.deviceId !== deviceId || isEnded(intent.status)) return null;
  if (isHeldBack(state, intent)) return null;
  return intent.status !== "settling" && intent.expiresAtMs <= nowMs ? null : intent;
}
