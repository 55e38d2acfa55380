/** Makes the rows of the list of payments from a commit's state and intents. Pure. */
import { type PaymentIntent, type UnclearReason, wireStatus } from "../../../machines/payment-intent.ts";
import type { Commit } from "../../../machines/station/commit.ts";
import type { StationEvent } from "../../../machines/station/event.ts";
import { findIntent, type StationState } from "../../../machines/station/state.ts";
import { unclearReason } from "../../../machines/station/unclear-collections.ts";
import { storedText } from "../../db/stored-text.ts";
import { AUDIT_LIMITS } from "../limits.ts";

export interface PaymentRow {
  readonly intent_id: number;
  readonly station_id: number;
  readonly organization_id: number;
  readonly version: number;
  readonly route: string;
  readonly status: string;
  readonly amount_minor: string;
  readonly currency: string;
  readonly order_id: number;
  readonly order_display_number: number;
  readonly cashier_id: number;
  readonly device_id: number | null;
  readonly reference: string;
  readonly money_may_have_moved: UnclearReason | "";
  readonly created_at_ms: number;
  readonly ended_at_ms: number | null;
}

export function paymentRow(
  place: { readonly stationId: number; readonly organizationId: number; readonly version: number },
  intent: PaymentIntent,
  state: Pick<StationState, "unclearCollections" | "olderReasons">,
): PaymentRow {
  return {
    intent_id: intent.intentId,
    station_id: place.stationId,
    organization_id: place.organizationId,
    version: place.version,
    route: intent.route,
    status: wireStatus(intent.status),
    amount_minor: intent.amountMinor,
    currency: intent.currency,
    order_id: intent.orderId,
    order_display_number: intent.orderDisplayNumber,
    cashier_id: intent.createdBy,
    device_id: intent.deviceId,
    reference: storedText(referenceOf(intent)).slice(0, AUDIT_LIMITS.paymentReferenceCharacters).toWellFormed(),
    money_may_have_moved: unclearReason(intent, state),
    created_at_ms: intent.createdAtMs,
    ended_at_ms: intent.endedAtMs,
  };
}

/** The reference of the payment at the terminal or the provider, if it is known. */
function referenceOf({ attestation, provider, reports }: PaymentIntent): string {
  const reported = reports.findLast(({ providerReference }) => providerReference !== "");
  return [attestation?.reference, provider?.providerReference, reported?.providerReference].find(Boolean) ?? "";
}

/** Evidence about an intent that has left its station's state. */
export interface LaterEvent {
  readonly intentId: number;
  readonly event: StationEvent;
}

const LATER = ["late_evidence_kept", "late_money_kept", "money_differs", "unclear_resolved"];

export function laterEventsOf({ events, state }: Commit): readonly LaterEvent[] {
  return events.flatMap((event) => {
    if (!LATER.includes(event.type) || !("intentId" in event)) return [];
    const { intentId } = event;
    return intentId === null || findIntent(state, intentId) !== undefined ? [] : [{ intentId, event }];
  });
}
