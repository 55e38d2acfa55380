/** Intents and the payment seam, as the settlement service keeps them. Amounts are minor units as strings of digits. */

import { createHash } from "node:crypto";
import { z } from "zod";
import { INTENT_STATES, ROUTES } from "../../../machines/payment-intent.ts";
import { SETTLEMENT_REFUSALS } from "../../../machines/station/reply.ts";
import { ORDER_STATUSES } from "../../../machines/station/state.ts";
import { BOUNDS } from "../bounds.ts";
import { repeatable } from "../operation.ts";
import { amountMinorSchema as amountMinor } from "./amount.ts";

const id = z.int().positive();

/**
 * An ended PaymentIntent, as a station has committed it. This product writes and reads it, so the schema checks only a
 * few fields.
 */
const endedIntentSchema = z.looseObject({
  intentId: id,
  orderId: id,
  status: z.enum(INTENT_STATES),
  deviceId: z.int().nullable(),
});

/**
 * Returns the order for a new intent, as stored now, and the intent's id. The same command gets the same id for as long
 * as its key is stored. Refuses an order of another station with `not_found`, and another order under the same key with
 * `idempotency_key_reused`. The caller is the actor host. It also sends the station's newest ended intents, so that the
 * service stores each one before the station's bounded state drops it.
 */
export const prepareIntent = repeatable(
  "settlement.prepareIntent",
  z.object({
    stationId: id,
    orderId: id,
    /** Present when the creation has an idempotency key. */
    commandId: z.string().min(1).max(BOUNDS.commandIdCharacters).optional(),
    ended: endedIntentSchema.optional(),
    /** The one that expired in the step that created `ended`, if there is one. */
    endedBefore: endedIntentSchema.optional(),
  }),
  z.object({
    intentId: id,
    /** The ended intent of this command, where the station has sent it. */
    ended: endedIntentSchema.nullable(),
    order: z.object({
      orderId: id,
      orderDisplayNumber: id,
      amountMinor,
      currency: z.string(),
      status: z.enum(ORDER_STATUSES),
      revision: id,
    }),
  }),
);

/** An ended intent that the station's bounded state has dropped; null where the station never had it. */
export const findEndedIntent = repeatable(
  "settlement.findEndedIntent",
  z.object({ stationId: id, intentId: id }),
  z.object({
    intent: endedIntentSchema.nullable(),
    /** The status of its order now; null where there is no intent. */
    orderStatus: z.enum(ORDER_STATUSES).nullable(),
  }),
);

/** An order that a reference has settled before. */
const earlierSaleSchema = z.object({
  orderId: id,
  orderDisplayNumber: id,
  stationName: z.string(),
  amountMinor,
  currency: z.string(),
  settledAtMs: z.number(),
});

/** The longest match key: the config's id, and the provider's reference or its hash (`moneyKey`, `moneyName`). */
const MONEY_KEY_CHARACTERS = 300;

/**
 * The payment seam: the only writer of transactions (I2). It is idempotent by intent id. A refusal is final for its
 * attestation: only a new attestation can pay the intent. A provider payment pays one intent, whichever host sends the
 * request and whichever config of its account reports it. A reference that has settled another order of the filial is
 * refused with `reference_already_used` until the attestation confirms it.
 */
export const settleIntent = repeatable(
  "settlement.settleIntent",
  z
    .object({
      intentId: id,
      /** The command id of the attestation. */
      attestationId: z.string().min(1).max(BOUNDS.commandIdCharacters),
      stationId: id,
      orderId: id,
      route: z.enum(ROUTES),
      amountMinor,
      currency: z.string(),
      reference: z.string(),
      attestedBy: z.int(),
      /**
       * The match key of a provider payment that pays the intent. Refuses with `money_already_used` when the payment
       * has paid another intent, or when a person has closed it.
       */
      moneyKey: z.string().min(1).max(MONEY_KEY_CHARACTERS).optional(),
      /** The cashier knows that this reference has settled another order, and uses it anyway. */
      confirmsReferenceAlreadyUsed: z.boolean().optional(),
    })
    // Without a match key, a provider payment could pay two intents unnoticed.
    .refine((request) => request.route !== "dynamic_qr" || request.moneyKey !== undefined, {
      path: ["moneyKey"],
      message: "A payment over this route needs its match key.",
    }),
  z.discriminatedUnion("settled", [
    z.object({ settled: z.literal(true), transactionId: id }),
    z.object({
      settled: z.literal(false),
      code: z.enum(SETTLEMENT_REFUSALS),
      /** For `reference_already_used`: the newest order that the same reference has settled. */
      earlier: earlierSaleSchema.optional(),
    }),
  ]),
);

/** A longer reference is replaced by its hash, so that its index entry stays small. */
const REFERENCE_CHARACTERS = 200;

/** The form in which references are compared: without space at both ends, in NFC. */
export function comparableReference(providerReference: string): string {
  return providerReference.normalize("NFC").trim();
}

/** The match key within one config: the provider's reference, or the id of the event when there is no reference. */
export function moneyName(providerReference: string, otherwise: string): string {
  const reference = comparableReference(providerReference);
  if (reference === "") return `event:${otherwise}`;
  if (reference.length <= REFERENCE_CHARACTERS) return `money:${reference}`;
  return `money-sha256:${createHash("sha256").update(reference).digest("hex")}`;
}

/**
 * The match key of a provider payment by its config. Several configs may get callbacks for the same payment, so the seam adds
 * match keys by organization, kind, mode, scheme and each account with which it was registered or asserted (`names_of_money`
 * in PostgreSQL). A payment that has paid under one of its keys does not pay again.
 */
export function moneyKey(money: { readonly configId: number; readonly name: string }): string {
  return `provider:${money.configId}:${money.name}`;
}
