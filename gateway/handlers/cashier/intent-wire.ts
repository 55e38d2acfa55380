/** A payment intent for the cashier, and what can be done with it now. */
import type { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import { type IntentEvent, paymentIntentMachine } from "../../../machines/intent-machine.ts";
import { type Attestation, type PaymentIntent, type Report, wireStatus } from "../../../machines/payment-intent.ts";
import { take } from "../../../machines/pure-transition.ts";
import type { intentSchema } from "../../contract/intent.ts";
import { toTimestamp } from "../../contract/shared.ts";

export type IntentWire = z.infer<typeof intentSchema>;

/** `isOrderVoided`: the station has heard that the intent's order was voided, so settling it is not offered. */
export function intentWire(intent: PaymentIntent, nowMs: number, isOrderVoided = false): IntentWire {
  return {
    intent_id: intent.intentId,
    intent_display_number: intent.displayNumber,
    route: intent.route,
    order_id: intent.orderId,
    order_display_number: intent.orderDisplayNumber,
    amount: formatAmount(intent.amountMinor, intent.currency),
    currency: intent.currency,
    status: wireStatus(intent.status),
    device_id: intent.deviceId,
    created_at: toTimestamp(intent.createdAtMs),
    expires_at: toTimestamp(intent.expiresAtMs),
    presented_at: optionalTimestamp(intent.presentedAtMs),
    reports: intent.reports.map(reportWire),
    report_count: intent.reportCount,
    settle_offered: !isOrderVoided && isPossible(intent, attestNow(intent, nowMs), nowMs),
    cancel_offered: isPossible(intent, { type: "CANCEL", atMs: nowMs }, nowMs),
    attestation: attestationWire(intent),
    provider: providerWire(intent),
    ended_at: optionalTimestamp(intent.endedAtMs),
    end_reason: intent.endReason,
  };
}

function reportWire(report: Report): IntentWire["reports"][number] {
  return {
    outcome: report.outcome,
    provider_reference: report.providerReference,
    provider_code: report.providerCode,
    reported_at: toTimestamp(report.reportedAtMs),
    device_id: report.deviceId,
  };
}

function attestationWire({ attestation }: PaymentIntent): IntentWire["attestation"] {
  if (attestation === null) return null;
  return {
    by: attestation.by,
    cashier_id: attestation.by === "provider" ? null : attestation.cashierId,
    cashier_name: attestation.cashierName,
    reference: attestation.reference,
    attested_at: toTimestamp(attestation.atMs),
    transaction_id: attestation.transactionId,
  };
}

function providerWire({ provider }: PaymentIntent): IntentWire["provider"] {
  if (provider === null) return null;
  return {
    config_id: provider.configId,
    qr_payload: provider.qrPayload,
    provider_reference: provider.providerReference,
    confirmed_at: optionalTimestamp(provider.confirmedAtMs),
  };
}

/** The machine itself says what is offered, so the two cannot drift apart: settle stays offered after a decline. */
function isPossible(intent: PaymentIntent, event: IntentEvent, nowMs: number): boolean {
  if (intent.status !== "settling" && intent.expiresAtMs <= nowMs) return false;
  const { status, ...context } = intent;
  return take(paymentIntentMachine, { value: status, context }, event) !== undefined;
}

function attestNow(intent: PaymentIntent, atMs: number): IntentEvent {
  const attestation: Attestation = {
    by: "cashier",
    commandId: "",
    cashierId: intent.createdBy,
    cashierName: "",
    reference: "",
    atMs,
    transactionId: null,
  };
  return { type: "ATTEST", attestation };
}

function optionalTimestamp(ms: number | null): string | null {
  return ms === null ? null : toTimestamp(ms);
}
