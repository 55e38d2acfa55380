/** A payment intent as the cashier sees it: the collection, its evidence and what can be done now. */
import { z } from "zod";
import {
  ATTESTERS,
  DOUBT_REASONS,
  type DoubtReason,
  END_REASONS,
  ORDER_OBSTACLES,
} from "../../machines/payment-intent.ts";
import { STATE_LIMITS } from "../../machines/settings.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { intentStatusSchema, outcomeSchema, paymentRouteSchema } from "../http/enums.ts";
import { amountSchema, currencySchema, idSchema, timestampSchema } from "../http/shared-schemas.ts";
import { LIMITS } from "../limits.ts";

export const INTENT_ID_DESCRIPTION = "Ids of intents grow but may have gaps; a station's display numbers have none.";

/** Picks a route for an order. It names no amount: that is order truth (contract, "Rules" 1). */
export const createIntentBodySchema = z
  .strictObject({
    order_id: idSchema,
    route: paymentRouteSchema,
    device_id: idSchema
      .optional()
      .meta({ description: "The companion to hand it to; without it, the first live one." }),
    lifetime_seconds: z
      .int()
      .min(BOUNDS.intentLifetimeMs.min / 1_000)
      .max(BOUNDS.intentLifetimeMs.max / 1_000)
      .optional()
      .meta({ description: "How long it may be collected; 180 s when left out." }),
    confirms_money_may_have_moved: z.boolean().optional().meta({
      description:
        "An earlier collection of this order may have moved money (error `money_may_have_moved`): true collects all the same, and the timeline names who decided it.",
    }),
  })
  .meta({ id: "CreateIntent", examples: [{ order_id: 42, route: "smart_pos" }] });

/** The reference is needed for an attested terminal; a smart POS collection inherits the device's own. */
export const attestBodySchema = z
  .strictObject({
    reference: z.string().trim().min(1).max(LIMITS.referenceCharacters).optional().meta({
      description:
        "What the cashier reads off the slip. `attested_terminal` needs it, and `cash` may have it. On `smart_pos` it counts only where no report named a reference; on `dynamic_qr` the provider's own is attested and this is ignored. Under a repeated `Idempotency-Key` another reference is another body only on `attested_terminal` and `cash`; a reference that is left out is not compared.",
    }),
    confirms_reference_already_used: z.boolean().optional().meta({
      description:
        "The reference has settled another order (error `reference_already_used`): true settles all the same, and the timeline names who decided it. A confirmed attestation is a command of its own, so it may have the `Idempotency-Key` of the one that was refused.",
    }),
    confirms_money_may_have_moved: z.boolean().optional().meta({
      description:
        "An earlier collection of this order may have moved money, and that was learned after this one was created or last confirmed (`confirmation_needed` of the intent, error `money_may_have_moved`): true settles all the same, and the timeline names who decided it. The refusal is not kept under its `Idempotency-Key`: the confirmed attestation may have the same one.",
    }),
  })
  .meta({ id: "Attest", examples: [{ reference: "TERM-0042" }] });

/** Evidence of a device, never truth (contract, "Reported outcome"). */
export const intentReportSchema = z
  .object({
    outcome: outcomeSchema,
    provider_reference: z.string().meta({
      description:
        "As the device sent it: escape it where people see it, because it may hold line breaks and marks that override the direction of text.",
    }),
    provider_code: z.string().meta({ description: "Kept verbatim; for programs, not for people." }),
    reported_at: timestampSchema,
    device_id: idSchema,
  })
  .meta({ id: "IntentReport" });

export const attestationSchema = z
  .object({
    by: z.enum(ATTESTERS).meta({
      id: "Attester",
      description:
        "Whose word it stands on. A dynamic QR is confirmed by its provider: by a callback, or when it is asked. After the settlement was refused once, the cashier may attest that money too.",
    }),
    cashier_id: idSchema.nullable().meta({ description: "Null when a provider confirmed." }),
    cashier_name: z.string(),
    reference: z.string(),
    attested_at: timestampSchema,
    transaction_id: idSchema.nullable().meta({ description: "Null until the settlement is done." }),
  })
  .meta({ id: "Attestation" });

/** The provider's side of a dynamic QR. */
export const providerPaymentSchema = z
  .object({
    config_id: idSchema,
    qr_payload: z.string().meta({
      description:
        "What displays show; empty before it is there, once it is over, during a freeze, and as soon as the provider tells of money that differs: the same QR would be paid twice.",
    }),
    provider_reference: z.string().meta({ description: "The provider's own; empty until it is known." }),
    confirmed_at: timestampSchema.nullable().meta({ description: "When the provider confirmed the money." }),
  })
  .meta({ id: "ProviderPayment" });

/** What each doubt means to a cashier; one that is missing does not compile. */
const DOUBT_MEANINGS: Readonly<Record<DoubtReason, string>> = {
  outcome_unknown: "a device reported that it does not know",
  success_reported: "a device reported a success",
  qr_presented: "its QR was shown and it ended unpaid",
  provider_confirmed: "the provider has the money, and it could not be settled",
  late_evidence: "a device reported after its end, or while it was blocked, that it does not know",
  late_success: "a device reported a success after its end, or while it was blocked",
  late_money: "the provider's money came after its end",
  money_differs:
    "the provider tells of money of another amount, currency, account or reference; it pays nothing and is an issue, which the timeline names, and its QR is shown no longer. End the collection; the next one of this order asks for confirmation",
  handoff_presented:
    "a device fetched it and reported nothing, and it ended unpaid; a late report of a decline or of a cancellation takes this away, any other one takes its place",
};
const DOUBT_DESCRIPTION = [
  "Why money may have moved without being settled; empty where nothing says so. It stays when another collection pays the order: then the guest may have paid twice. A collection that has left its station's state keeps it too, and later evidence counts as before; it is read from the audit log then, which may be a moment behind.",
  ...Object.entries(DOUBT_MEANINGS).map(([reason, meaning]) => `\`${reason}\`: ${meaning}.`),
].join(" ");

const doubtReasonSchema = z.enum(DOUBT_REASONS).meta({
  id: "MoneyMayHaveMovedReason",
  description: "Why the money of an earlier collection may have moved; `MoneyMayHaveMoved` explains the words.",
});

/** An ended collection that may have moved money without settling. */
export const unclearCollectionSchema = z
  .object({ intent_id: idSchema, order_id: idSchema, reason: doubtReasonSchema })
  .meta({ id: "UnclearCollection" });
export const UNCLEAR_DESCRIPTION = [
  "Ended collections that may have moved money without settling, the newest first, also of an order that another collection has paid: there the guest may have been charged twice, and `late_success` or `late_money` says that a payment was reported. A person finds out and refunds where it is due.",
  `Listed are those of the station's last ${STATE_LIMITS.endedIntents} collections (fewer where reports are long), those that ask for a confirmation before their order is collected again, and ${STATE_LIMITS.olderReasons} older ones. Of the older ones those of which least is known leave the list first, then the oldest: a reported payment stays until ${STATE_LIMITS.olderReasons} newer ones of the same weight have come, because nothing marks it as dealt with.`,
  "A collection that is not listed any more still has its reason in `money_may_have_moved`, and its timeline has all evidence, late reports too.",
].join(" ");

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
        "Evidence, oldest first. The newest few are here, fewer where their text is long; the timeline has them all.",
    }),
    report_count: z.int().min(0).meta({
      description:
        "How many reports were accepted as evidence while it was under way. A report that comes after the end or from a blocked device is refused and not counted. It changes `money_may_have_moved`, and the timeline (`GET /api/backoffice/v1/intents/{intent_id}/timeline/`) has its text and reference.",
    }),
    settle_offered: z.boolean().meta({ description: "Whether attesting is possible now, also after a decline." }),
    settle_obstacle: z.enum(["", ...ORDER_OBSTACLES, "money_may_have_moved"]).meta({
      id: "SettleObstacle",
      description:
        "Why settling is not offered although the collection has come that far: its order was paid by another way, voided, or is of another amount now; or the cashier has to confirm first what `confirmation_needed` names (`money_may_have_moved`). Empty where nothing of that is known, and once it has ended.",
    }),
    confirmation_needed: z.object({ reason: doubtReasonSchema, earlier_intent_id: idSchema }).nullable().meta({
      id: "ConfirmationNeeded",
      description:
        "An earlier collection of the order has got a reason why its money may have moved since this one was created or last confirmed, for example by a late report: find out whether the guest has paid. Until `confirms_money_may_have_moved` confirms it, attesting is refused with `money_may_have_moved`, the QR is not shown, and a hand-off that its device has not fetched is held back. A provider's confirmation of this QR settles it all the same: that guest paid by it. To present it again, cancel it and create it anew with the confirmation. Null while there is nothing to confirm, and once it has ended.",
    }),
    cancel_offered: z.boolean(),
    attestation: attestationSchema.nullable(),
    provider: providerPaymentSchema.nullable().meta({ description: "Of a dynamic QR; null for the other routes." }),
    money_may_have_moved: z
      .enum(["", ...DOUBT_REASONS])
      .meta({ id: "MoneyMayHaveMoved", description: DOUBT_DESCRIPTION }),
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

/** The active intent first, then the recently ended ones, newest first. */
export const intentsSchema = z.object({ intents: z.array(intentSchema) });
