/** What a station's host asks the providers service about one payment at a provider. Amounts are minor units. */
import { z } from "zod";
import { PROVIDER_END_REASONS } from "../../../machines/payment-intent.ts";
import { AMOUNT_MINOR_PATTERN, BOUNDS } from "../bounds.ts";
import { repeatable } from "../operation.ts";

const id = z.int().positive();

/** The longest that an answer to `createProviderPayment` takes; the caller waits a little longer. */
export const CREATE_PAYMENT_ANSWER_MS = 8_000;

/**
 * Asks the provider for a payment and its QR payload. Idempotent by intent id, also while the first request is under way.
 * Always answers within its deadline: a slow provider is `provider_timed_out`.
 */
export const createProviderPayment = repeatable(
  "providers.createProviderPayment",
  z.object({
    intentId: id,
    stationId: id,
    organizationId: id,
    configId: id,
    orderDisplayNumber: id,
    amountMinor: z.string().regex(AMOUNT_MINOR_PATTERN),
    currency: z.string().length(BOUNDS.currencyCharacters),
    expiresAtMs: z.number(),
  }),
  z.discriminatedUnion("created", [
    z.object({ created: z.literal(true), qrPayload: z.string(), providerReference: z.string() }),
    z.object({ created: z.literal(false), reason: z.enum(PROVIDER_END_REASONS) }),
  ]),
);

/**
 * The intent has ended unpaid: the service cancels the payment at the provider, and repeats that until the provider has
 * answered. Replies as soon as the cancellation is stored as a task.
 */
export const withdrawProviderPayment = repeatable(
  "providers.withdrawProviderPayment",
  z.object({ intentId: id }),
  z.object({}),
);

/**
 * Whether the provider's confirmation of this intent was verified and recorded before its deadline. The host asks before
 * it commits an overdue expiry. An answer with `isOver` is final: nothing recorded later counts as in time.
 */
export const findRecordedConfirmation = repeatable(
  "providers.findRecordedConfirmation",
  z.object({ intentId: id }),
  z.object({
    /** False while the deadline has not passed by the database's clock; the host asks again then. */
    isOver: z.boolean(),
    providerReference: z.string().nullable(),
  }),
);
