/**
 * Webhook deliveries (contract, "Events"). The owner reads them with their attempts, and a consumer reads the
 * deliveries to it. Both can request another attempt.
 */
import { z } from "zod";
import { repeatable, repeatableWithKey } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { callerSchema as caller } from "./caller.ts";
import { consumerCallerSchema as consumer } from "./consumers.ts";
import { idempotencyKeySchema } from "./creation.ts";
import { ROBOTICS_EVENT_TYPES } from "./robotics-events.ts";

const id = z.int().positive();

/** The event type of an owner's test. It is a separate type, so that no consumer mistakes the test for a task. */
export const TEST_EVENT_TYPE = "webhook.test";
export const DELIVERY_EVENT_TYPES = [...ROBOTICS_EVENT_TYPES, TEST_EVENT_TYPE] as const;

export const DELIVERY_STATUSES = [
  /** The service sends it now or later. */
  "pending",
  "delivered",
  /** All its attempts have failed, or its endpoint was disabled or deleted. */
  "failed",
  /** It is about an offer that expired before it was delivered, or whose next attempt would come after its expiry. */
  "lapsed",
  /** The consumer had no endpoint, so it was not sent. The consumer can read it here. */
  "unsent",
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Why an attempt failed. A refused target has a separate error, and the record has no facts about the target. */
export const ATTEMPT_ERRORS = [
  "target_refused",
  "dns_failed",
  "connect_failed",
  "tls_failed",
  "timed_out",
  "connection_closed",
  "answer_invalid",
  "redirected",
  "status_not_success",
  "secret_unreadable",
  /** A fault of this service, not of the target. */
  "internal_error",
] as const;
export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

export const attemptSchema = z.object({
  attemptId: id,
  startedAtMs: z.number(),
  /** Null for a refused target: otherwise the attempts would work as a port scanner. */
  address: z.string().nullable(),
  dnsMs: z.number().nullable(),
  connectMs: z.number().nullable(),
  tlsMs: z.number().nullable(),
  firstByteMs: z.number().nullable(),
  totalMs: z.number().nullable(),
  /** The HTTP status of the target's answer; null without an answer. */
  status: z.int().nullable(),
  error: z.enum(ATTEMPT_ERRORS).nullable(),
  /** The beginning of the answer's body; empty for a refused target. */
  responseBody: z.string(),
  /** Whether the answer was longer than the service reads. */
  truncated: z.boolean(),
  /** Requested by the owner or the consumer instead of due by the schedule. */
  manual: z.boolean(),
});
export type Attempt = z.infer<typeof attemptSchema>;

export const deliverySchema = z.object({
  deliveryId: id,
  eventId: id.nullable(),
  consumerId: id,
  endpointId: id.nullable(),
  eventType: z.enum(DELIVERY_EVENT_TYPES),
  status: z.enum(DELIVERY_STATUSES),
  attempts: z.int(),
  createdAtMs: z.number(),
  /** Null when there is no further attempt. During an attempt, when that attempt was due. */
  nextAttemptAtMs: z.number().nullable(),
  deliveredAtMs: z.number().nullable(),
  /** The sent body, byte for byte: the envelope as JSON. */
  body: z.string(),
});
export type Delivery = z.infer<typeof deliverySchema>;

const deliveryFilters = {
  eventType: z.enum(DELIVERY_EVENT_TYPES).optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
};
const deliveriesReply = z.object({ deliveries: z.array(deliverySchema), hasMore: z.boolean() });

/** The deliveries of the organization, newest first. Needs `organization.manage`. */
export const listWebhookDeliveries = repeatable(
  "webhooks.listWebhookDeliveries",
  z.object({ caller, endpointId: id.optional(), consumerId: id.optional(), ...deliveryFilters, ...pageBefore }),
  deliveriesReply,
);
/** One delivery with its attempts, newest first. Needs `organization.manage`. */
export const getWebhookDelivery = repeatable(
  "webhooks.getWebhookDelivery",
  z.object({ caller, deliveryId: id }),
  z.object({ delivery: deliverySchema, attempts: z.array(attemptSchema) }),
);
/**
 * The consumer's deliveries, in the order of their commits. A consumer that continues after its last id misses none, also
 * with `eventType`. With `status` it may: the status of a smaller id changes later.
 */
export const listConsumerWebhookDeliveries = repeatable(
  "webhooks.listConsumerWebhookDeliveries",
  z.object({ consumer, ...deliveryFilters, ...pageAfter }),
  deliveriesReply,
);
/**
 * Makes one more attempt with the same delivery id. With a key, a repetition returns the same attempt. Refuses with
 * `endpoint_unavailable` (no endpoint, or a deleted or disabled one), `delivery_lapsed` (an expired offer) or
 * `conflict` (an owner's test).
 */
export const redeliverWebhook = repeatableWithKey(
  "webhooks.redeliverWebhook",
  z.object({ consumer, deliveryId: id, idempotencyKey: idempotencyKeySchema.optional() }),
  z.object({ delivery: deliverySchema }),
);
/** As `redeliverWebhook`, for the owner. Needs `organization.manage`. */
export const resendWebhookDelivery = repeatableWithKey(
  "webhooks.resendWebhookDelivery",
  z.object({ caller, deliveryId: id, idempotencyKey: idempotencyKeySchema.optional() }),
  z.object({ delivery: deliverySchema }),
);
