/**
 * The operations of the providers service on one payment at a provider. A station's host calls them. Amounts are minor
 * units.
 */
import { z } from "zod";
import { PROVIDER_END_REASONS } from "../../../machines/payment-intent.ts";
import { BOUNDS } from "../bounds.ts";
import { repeatable } from "../operation.ts";
import { amountMinorSchema } from "./amount.ts";

const id = z.int().positive();

/** The longest time until `createProviderPayment` answers; the caller waits a little longer. */
export const CREATE_PAYMENT_ANSWER_MS = 8_000;

/**
 * Creates a payment with its QR payload at the provider. Idempotent by intent id, also while the first request is under
 * way. Always answers within its deadline: a slow provider is `provider_timed_out`.
 */
export const createProviderPayment = repeatable(
  "providers.createProviderPayment",
  z.object({
    intentId: id,
    stationId: id,
    organizationId: id,
    configId: id,
    orderDisplayNumber: id,
    amountMinor: amountMinorSchema,
    currency: z.string().length(BOUNDS.currencyCharacters),
    expiresAtMs: z.number(),
  }),
  z.discriminatedUnion("created", [
    z.object({ created: z.literal(true), qrPayload: z.string(), providerReference: z.string() }),
    z.object({ created: z.literal(false), reason: z.enum(PROVIDER_END_REASONS) }),
  ]),
);

/**
 * Called when the intent has ended unpaid. The service cancels the payment at the provider, and repeats that until the
 * provider has answered. It replies when it has stored the cancellation as a task.
 */
export const withdrawProviderPayment = repeatable(
  "providers.withdrawProviderPayment",
  z.object({ intentId: id }),
  z.object({}),
);

/**
 * Finds out whether the provider's confirmation of this intent was verified and recorded before the intent's deadline.
 * The host calls this before it commits an overdue expiry. An answer with `isOver` is final: a confirmation that is
 * recorded later is too late.
 */
export const findRecordedConfirmation = repeatable(
  "providers.findRecordedConfirmation",
  z.object({ intentId: id }),
  z.object({
    /** False while the deadline has not passed by the database's clock; then the host repeats the request. */
    isOver: z.boolean(),
    providerReference: z.string().nullable(),
  }),
);
