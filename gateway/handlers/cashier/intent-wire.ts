/** A payment intent for the cashier, and what can be done with it now. */
import type { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import { type IntentEvent, paymentIntentMachine } from "../../../machines/intent-machine.ts";
import {
  type Attestation,
  type DoubtReason,
  isEnded,
  type PaymentIntent,
  type Report,
  wireStatus,
} from "../../../machines/payment-intent.ts";
import { take } from "../../../machines/pure-transition.ts";
import { type KillSwitches, NO_KILL_SWITCHES } from "../../../machines/standing.ts";
import { doubtAtEnd, strongestDoubt, unconfirmedDoubt } from "../../../machines/station/doubts.ts";
import { type OrderKnowledge, orderObstacle, type StationState } from "../../../machines/station/state.ts";
import { isPaidOtherwise, mayShowQr } from "../../../machines/views/display.ts";
import type { intentSchema } from "../../contract/intent.ts";
import { optionalTimestamp, toTimestamp } from "../../http/shared-schemas.ts";

export type IntentWire = z.infer<typeof intentSchema>;

/** What is asked of an intent's station. */
export type StationFacts = OrderKnowledge &
  Pick<StationState, "organizationId" | "stationId" | "status" | "doubts" | "olderReasons">;

/** What an intent is shown by beside itself. */
export interface IntentFacts {
  /**
   * The station that it belongs to: what the seam would refuse, as far as it has heard, is not offered to be settled, and a
   * station that is blocked shows no QR.
   */
  readonly station: StationFacts;
  /** A freeze empties the QR here as it does on displays. */
  readonly switches: KillSwitches;
  readonly nowMs: number;
}

export function intentWire(intent: PaymentIntent, { station, switches, nowMs }: IntentFacts): IntentWire {
  const hasEnded = isEnded(intent.status);
  const toConfirm = hasEnded ? undefined : unconfirmedDoubt(station, intent);
  const doubted = toConfirm === undefined ? undefined : "money_may_have_moved";
  const obstacle = hasEnded ? undefined : (orderObstacle(station, intent) ?? doubted);
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
    settle_offered: obstacle === undefined && isPossible(intent, attestNow(intent, nowMs), nowMs),
    settle_obstacle: obstacle ?? "",
    confirmation_needed:
      toConfirm === undefined ? null : { reason: toConfirm.reason, earlier_intent_id: toConfirm.intentId },
    cancel_offered: isPossible(intent, { type: "CANCEL", atMs: nowMs, key: "" }, nowMs),
    attestation: attestationWire(intent),
    provider: providerWire(intent, station, switches),
    money_may_have_moved: doubtNow(intent, station),
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

const NOTHING_KNOWN: StationFacts = {
  organizationId: 0,
  stationId: 0,
  status: "active",
  order: null,
  waitingOrders: [],
  knownOrders: [],
  doubts: [],
  olderReasons: [],
};

/**
 * Why money may have moved without being settled: what an active intent says of itself, and what was known at the end of one
 * that ended unpaid or learned since. That stays when another collection pays the order: the guest may have paid twice.
 */
export function doubtNow(
  intent: PaymentIntent,
  { doubts, olderReasons }: Pick<StationState, "doubts" | "olderReasons">,
): DoubtReason | "" {
  const { intentId, orderId, status, moneyMayHaveMoved, reasonSinceEnd } = intent;
  if (status === "succeeded") return "";
  if (!isEnded(status)) return moneyMayHaveMoved;
  const said = reasonSinceEnd === "" ? [] : [{ orderId, intentId, reason: reasonSinceEnd }];
  // The station may know more of one that has left its state, and know it earlier, than the records that it is read from.
  const known = [...olderReasons, ...doubts].filter((other) => other.intentId === intentId);
  return strongestDoubt([...said, ...known])?.reason ?? "";
}

/** As the intent was created: what could be done then is part of the answer, which a repetition gets as well. */
export function createdIntentWire(intent: PaymentIntent): IntentWire {
  return intentWire(intent, { station: NOTHING_KNOWN, switches: NO_KILL_SWITCHES, nowMs: intent.createdAtMs });
}

/**
 * After a command that ends it. No QR is left that a freeze could withdraw, so it is told also while nobody knows what is
 * frozen: cash goes on. What is in doubt is what its end has left in doubt: the gateway's station may be older than that
 * commit, or newer by what the provider has said since, and a repetition is answered alike (I6).
 */
export function decidedIntentWire(intent: PaymentIntent, station: StationFacts, nowMs: number): IntentWire {
  const reason = intent.status === "succeeded" ? undefined : doubtAtEnd(intent, intent.endReason);
  const asEnded = { ...intent, reasonSinceEnd: reason ?? ("" as const) };
  return intentWire(asEnded, { station: { ...station, doubts: [], olderReasons: [] }, switches: ALL_FROZEN, nowMs });
}

/** Where switches are not known, nothing is shown that one of them could forbid. */
const ALL_FROZEN: KillSwitches = { ...NO_KILL_SWITCHES, platform: true };

function providerWire(intent: PaymentIntent, station: StationFacts, switches: KillSwitches): IntentWire["provider"] {
  const { provider } = intent;
  if (provider === null) return null;
  const maySee = mayShowQr(station, provider, switches) && !isPaidOtherwise(station, intent);
  return {
    config_id: provider.configId,
    qr_payload: maySee ? provider.qrPayload : "",
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
