/** A payment intent in the cashier's API: the collection, its evidence, and the actions that are possible now. */
import { z } from "zod";
import { formatAmount } from "../../../machines/currency.ts";
import { type IntentEvent, paymentIntentMachine } from "../../../machines/intent-machine.ts";
import {
  ATTESTERS,
  type Attestation,
  END_REASONS,
  type IntentStatus,
  isEnded,
  ORDER_OBSTACLES,
  type PaymentIntent,
  REPORTED_OUTCOMES,
  type Report,
  ROUTES,
  UNCLEAR_REASONS,
  wireStatus,
} from "../../../machines/payment-intent.ts";
import { take } from "../../../machines/pure-transition.ts";
import { type KillSwitches, NO_KILL_SWITCHES } from "../../../machines/standing.ts";
import { needsConfirmationCheck } from "../../../machines/station/deadlines.ts";
import { type OrderKnowledge, orderObstacle, type StationState } from "../../../machines/station/state.ts";
import {
  newestReasonNumber,
  type ReasonNumbers,
  reasonAtEnd,
  unclearReason,
  unclearToConfirm,
} from "../../../machines/station/unclear-collections.ts";
import { mayBePaidOtherwise, mayShowQr } from "../../../machines/views/display.ts";
import {
  amountSchema,
  currencySchema,
  idSchema,
  optionalTimestamp,
  reasonNumberSchema,
  timestampSchema,
  toTimestamp,
} from "../../http/shared-schemas.ts";
import { REASON_DESCRIPTION, unclearReasonSchema } from "./unclear-collections.ts";

/** The meaning of each status on the wire. A status without a meaning does not compile. */
const STATUS_MEANINGS: Readonly<Record<IntentStatus, string>> = {
  created: "no device has fetched it yet, and no QR is there to scan",
  presented: "the device has it, or its QR is shown",
  processing: "there is evidence, or an attestation or a provider's confirmation is being settled",
  succeeded: "attested by the cashier or confirmed by the provider, and settled; the order is paid",
  cancelled:
    "ended by a cashier or, when `end_reason` is set, by the provider's side or because the order was paid in another way, voided or changed",
  expired: "ended by its deadline",
};
export const INTENT_STATUSES = Object.keys(STATUS_MEANINGS) as readonly IntentStatus[];

export const intentStatusSchema = z.enum(INTENT_STATUSES).meta({
  id: "IntentStatus",
  description: INTENT_STATUSES.map((status) => `\`${status}\`: ${STATUS_MEANINGS[status]}.`).join(" "),
});
export const outcomeSchema = z.enum(REPORTED_OUTCOMES).meta({
  id: "Outcome",
  description:
    "`reported_success`: the payment application returned an approval. `reported_declined`: it returned a decline. `reported_cancelled`: the guest or the cashier abandoned it there. `reported_unknown`: it returned nothing usable, or the wait timed out.",
});
export const paymentRouteSchema = z.enum(ROUTES).meta({ id: "PaymentRoute" });

export const moneyMayHaveMovedSchema = z
  .enum(["", ...UNCLEAR_REASONS])
  .meta({ id: "MoneyMayHaveMoved", description: REASON_DESCRIPTION });

export const INTENT_ID_DESCRIPTION = "Ids of intents grow but may have gaps; a station's display numbers have none.";

/** Evidence from a device, never proof (contract, "Reported outcome"). */
const intentReportSchema = z
  .object({
    outcome: outcomeSchema,
    provider_reference: z.string().meta({
      description:
        "As the device sent it. Escape it before you display it: it may contain line breaks and characters that change the text direction.",
    }),
    provider_code: z.string().meta({ description: "Stored unchanged; for programs, not for people." }),
    reported_at: timestampSchema,
    device_id: idSchema,
  })
  .meta({ id: "IntentReport" });

const attestationSchema = z
  .object({
    by: z.enum(ATTESTERS).meta({
      id: "Attester",
      description:
        "Who confirmed the payment. The provider confirms a dynamic QR by a callback, or in answer to a query. After the settlement was refused once, the cashier may also attest that payment.",
    }),
    cashier_id: idSchema.nullable().meta({ description: "Null when a provider confirmed." }),
    cashier_name: z.string(),
    reference: z.string(),
    attested_at: timestampSchema,
    transaction_id: idSchema.nullable().meta({ description: "Null until the settlement is done." }),
  })
  .meta({ id: "Attestation" });

/** The provider's part of a dynamic QR collection. */
const providerPaymentSchema = z
  .object({
    config_id: idSchema,
    qr_payload: z.string().meta({
      description:
        "What displays show. Empty before it exists, from its deadline on, after it has ended, during a freeze, and as soon as the provider reports a payment that differs: the same QR would be paid twice.",
    }),
    provider_reference: z.string().meta({ description: "The provider's reference; empty until it is known." }),
    confirmed_at: timestampSchema.nullable().meta({ description: "When the provider confirmed the money." }),
  })
  .meta({ id: "ProviderPayment" });

export const intentSchema = z
  .object({
    intent_id: idSchema.meta({ description: INTENT_ID_DESCRIPTION }),
    intent_display_number: idSchema,
    route: paymentRouteSchema,
    order_id: idSchema,
    order_display_number: idSchema,
    amount: amountSchema,
    currency: currencySchema,
    status: intentStatusSchema,
    device_id: idSchema.nullable(),
    created_at: timestampSchema,
    expires_at: timestampSchema,
    presented_at: timestampSchema.nullable(),
    reports: z.array(intentReportSchema).meta({
      description:
        "Evidence, oldest first. Only the newest reports are here, and fewer if their text is long; the timeline has all of them.",
    }),
    report_count: z.int().min(0).meta({
      description:
        "How many reports were accepted as evidence while it was under way. A report that comes after the end or from a blocked device is refused and not counted. It changes `money_may_have_moved`, and the timeline (`GET /api/backoffice/v1/intents/{intent_id}/timeline/`) has its text and reference.",
    }),
    settle_offered: z.boolean().meta({ description: "Whether attesting is possible now, also after a decline." }),
    settle_obstacle: z.enum(["", ...ORDER_OBSTACLES, "money_may_have_moved"]).meta({
      id: "SettleObstacle",
      description:
        "Why settling is not offered although the collection is ready for it: its order was paid in another way, voided, or is of another amount now; or the cashier has to confirm first what `confirmation_needed` names (`money_may_have_moved`). Empty when no such reason is known, and after the collection has ended.",
    }),
    confirmation_needed: z
      .object({ reason: unclearReasonSchema, earlier_intent_id: idSchema, reason_number: reasonNumberSchema })
      .nullable()
      .meta({
        id: "ConfirmationNeeded",
        description:
          "Since this collection was created or last confirmed, a reason became known why an earlier collection of the order may have moved money, for example a late report: find out whether the guest has paid. Until `confirms_money_may_have_moved` confirms it, with `reason_number` as `confirmed_reason_number`, attesting is refused with `money_may_have_moved`, the QR is not shown, and a hand-off that its device has not fetched is held back. A provider's confirmation of this QR settles it all the same: that guest paid by it. To present it again, cancel it and create it again with the confirmation. Null while there is nothing to confirm, and once it has ended.",
      }),
    cancel_offered: z.boolean().meta({
      description:
        "Whether cancelling is possible now. A collection past its deadline ends by itself; a QR whose payment cannot be checked then stays until the check, and may be cancelled meanwhile.",
    }),
    attestation: attestationSchema.nullable(),
    provider: providerPaymentSchema.nullable().meta({ description: "Of a dynamic QR; null for the other routes." }),
    money_may_have_moved: moneyMayHaveMovedSchema,
    ended_at: timestampSchema.nullable(),
    end_reason: z.enum(["", ...END_REASONS]).meta({
      id: "IntentEndReason",
      description:
        "Why it ended when neither its cashier nor its deadline ended it; else empty. `order_already_paid` and `order_voided` end what is `created` or `presented`, `order_changed` only a dynamic QR, whose amount is fixed in it; where money may have moved by then, another collection of the order asks for confirmation.",
    }),
  })
  .meta({
    id: "Intent",
    examples: [
      {
        intent_id: 7,
        intent_display_number: 3,
        route: "smart_pos",
        order_id: 42,
        order_display_number: 12,
        amount: "25.00",
        currency: "EUR",
        status: "processing",
        device_id: 5,
        created_at: "2026-11-20T12:00:00.000Z",
        expires_at: "2026-11-20T12:03:00.000Z",
        presented_at: "2026-11-20T12:00:01.200Z",
        reports: [
          {
            outcome: "reported_success",
            provider_reference: "VIRT-000007",
            provider_code: "00",
            reported_at: "2026-11-20T12:00:02.400Z",
            device_id: 5,
          },
        ],
        report_count: 1,
        settle_offered: true,
        settle_obstacle: "",
        confirmation_needed: null,
        cancel_offered: true,
        attestation: null,
        provider: null,
        money_may_have_moved: "success_reported",
        ended_at: null,
        end_reason: "",
      },
    ],
  });

type IntentJson = z.infer<typeof intentSchema>;

/** The part of the station that an intent in JSON needs. */
type StationFacts = OrderKnowledge &
  Pick<StationState, "organizationId" | "stationId" | "status" | "olderReasons"> &
  ReasonNumbers;

/** The other input of an intent in JSON. */
interface IntentFacts {
  /**
   * The intent's station. The API offers no settling when the station knows that the payment seam would refuse it, and a
   * blocked station shows no QR.
   */
  readonly station: StationFacts;
  /** During a freeze the QR is empty, as on displays. */
  readonly switches: KillSwitches;
  readonly nowMs: number;
}

export function intentJson(intent: PaymentIntent, { station, switches, nowMs }: IntentFacts): IntentJson {
  const hasEnded = isEnded(intent.status);
  const isReady = isPossible(intent, attestNow(intent, nowMs), nowMs);
  const toConfirm = hasEnded ? undefined : unclearToConfirm(station, intent);
  const toBeConfirmed = isReady && toConfirm !== undefined ? "money_may_have_moved" : undefined;
  const obstacle = hasEnded ? undefined : (orderObstacle(station, intent) ?? toBeConfirmed);
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
    reports: intent.reports.map(reportJson),
    report_count: intent.reportCount,
    settle_offered: obstacle === undefined && isReady,
    settle_obstacle: obstacle ?? "",
    confirmation_needed:
      toConfirm === undefined
        ? null
        : {
            reason: toConfirm.reason,
            earlier_intent_id: toConfirm.intentId,
            reason_number: newestReasonNumber(station, intent.orderId),
          },
    cancel_offered: isPossible(intent, { type: "CANCEL", atMs: nowMs, key: "" }, nowMs),
    attestation: attestationJson(intent),
    provider: providerJson(intent, { station, switches, nowMs }),
    money_may_have_moved: unclearReason(intent, station),
    ended_at: optionalTimestamp(intent.endedAtMs),
    end_reason: intent.endReason,
  };
}

function reportJson(report: Report): IntentJson["reports"][number] {
  return {
    outcome: report.outcome,
    provider_reference: report.providerReference,
    provider_code: report.providerCode,
    reported_at: toTimestamp(report.reportedAtMs),
    device_id: report.deviceId,
  };
}

function attestationJson({ attestation }: PaymentIntent): IntentJson["attestation"] {
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
  unclearCollections: [],
  unclearForgottenThrough: 0,
  olderReasons: [],
};

/** The answer to a creation. It has the actions of that moment, so that a repetition gets the same answer. */
export function createdIntentJson(intent: PaymentIntent): IntentJson {
  return intentJson(intent, { station: NOTHING_KNOWN, switches: NO_KILL_SWITCHES, nowMs: intent.createdAtMs });
}

/**
 * The answer to a command that ends an intent. It does not need the kill switches, because an ended intent has no QR that a
 * freeze could withdraw: so cash also works while they are unknown. The reason why money may have moved is the one at the end:
 * the replica may be older or newer than that commit, and a repetition must get the same answer (I6).
 */
export function decidedIntentJson(intent: PaymentIntent, station: StationFacts, nowMs: number): IntentJson {
  const reason = intent.status === "succeeded" ? undefined : reasonAtEnd(intent, intent.endReason);
  const asEnded = { ...intent, reasonSinceEnd: reason ?? ("" as const) };
  return intentJson(asEnded, {
    station: { ...station, unclearCollections: [], olderReasons: [] },
    switches: ALL_FROZEN,
    nowMs,
  });
}

/** Unknown switches count as on, so that the answer shows nothing that a switch forbids. */
const ALL_FROZEN: KillSwitches = { ...NO_KILL_SWITCHES, platform: true };

function providerJson(intent: PaymentIntent, { station, switches, nowMs }: IntentFacts): IntentJson["provider"] {
  const { provider, expiresAtMs } = intent;
  if (provider === null) return null;
  const maySee = nowMs < expiresAtMs && mayShowQr(station, provider, switches) && !mayBePaidOtherwise(station, intent);
  return {
    config_id: provider.configId,
    qr_payload: maySee ? provider.qrPayload : "",
    provider_reference: provider.providerReference,
    confirmed_at: optionalTimestamp(provider.confirmedAtMs),
  };
}

/**
 * Asks the machine which actions to offer. So settling is possible even after a decline. An overdue intent has no action, because
 * its deadline ends it first. Only a QR whose confirmation cannot be checked stays, and the cashier may end it.
 */
function isPossible(intent: PaymentIntent, event: IntentEvent, nowMs: number): boolean {
  const isOverdue = intent.status !== "settling" && intent.expiresAtMs <= nowMs;
  if (isOverdue && !needsConfirmationCheck({ intent }, nowMs)) return false;
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
