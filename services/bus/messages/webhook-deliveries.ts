/** Webhook deliveries (contract, "Events"): the owner reads them with their attempts, a consumer its own, and has one resent. */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { repeatable, repeatableWithKey } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { callerSchema as caller } from "./caller.ts";
import { consumerCallerSchema as consumer } from "./consumers.ts";
import { ROBOTICS_EVENT_TYPES } from "./robotics-events.ts";

const id = z.int().positive();

/** What an owner's test sends; it has its own type, so that no consumer mistakes it for a task. */
export const TEST_EVENT_TYPE = "webhook.test";
export const DELIVERY_EVENT_TYPES = [...ROBOTICS_EVENT_TYPES, TEST_EVENT_TYPE] as const;

export const DELIVERY_STATUSES = [
  /** To be sent, now or later. */
  "pending",
  "delivered",
  /** Its attempts are used up, or its endpoint was disabled or deleted. */
  "failed",
  /** An offer that expired before it could be sent. */
  "lapsed",
  /** The consumer had no endpoint to send it to: it can be read here. */
  "unsent",
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Why an attempt failed. A refused target has an error of its own, and the record says nothing more about it. */
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
  /** A fault of this service, and not of the target. */
  "internal_error",
] as const;
export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

export const attemptSchema = z.object({
  attemptId: id,
  startedAtMs: z.number(),
  /** Null for a target that was refused: it would be a port scanner. */
  address: z.string().nullable(),
  dnsMs: z.number().nullable(),
  connectMs: z.number().nullable(),
  tlsMs: z.number().nullable(),
  firstByteMs: z.number().nullable(),
  totalMs: z.number().nullable(),
  /** The HTTP status that the target answered; null when it did not. */
  status: z.int().nullable(),
  error: z.enum(ATTEMPT_ERRORS).nullable(),
  /** The beginning of the answer's body; empty for a refused target. */
  responseBody: z.string(),
  /** Whether the answer was longer than what is read of it. */
  truncated: z.boolean(),
  /** Requested by a person instead of due by the schedule. */
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
  /** Null when there is none; while it is being sent, when that was due. */
  nextAttemptAtMs: z.number().nullable(),
  deliveredAtMs: z.number().nullable(),
  /** The body, byte for byte as it is sent: the envelope as JSON. */
  body: z.string(),
});
export type Delivery = z.infer<typeof deliverySchema>;

const deliveryFilters = {
  eventType: z.enum(DELIVERY_EVENT_TYPES).optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
};
const deliveriesReply = z.object({ deliveries: z.array(deliverySchema), hasMore: z.boolean() });

/** The owner's, newest first. Needs `organization.manage`. */
export const listWebhookDeliveries = repeatable(
  "webhooks.listWebhookDeliveries",
  z.object({ caller, endpointId: id.optional(), consumerId: id.optional(), ...deliveryFilters, ...pageBefore }),
  deliveriesReply,
);
/** The owner's, with its attempts, newest first. Needs `organization.manage`. */
export const getWebhookDelivery = repeatable(
  "webhooks.getWebhookDelivery",
  z.object({ caller, deliveryId: id }),
  z.object({ delivery: deliverySchema, attempts: z.array(attemptSchema) }),
);
/** The consumer's, in the order of their commits: a consumer that reads on after its last id misses none, with filters too. */
export const listConsumerWebhookDeliveries = repeatable(
  "webhooks.listConsumerWebhookDeliveries",
  z.object({ consumer, ...deliveryFilters, ...pageAfter }),
  deliveriesReply,
);
/**
 * One more attempt with the same delivery id. With a key, a repetition is the same attempt. Refusals: `endpoint_unavailable`
 * (none, deleted or disabled), `delivery_lapsed` (an offer that has expired), `conflict` (an owner's test).
 */
export const redeliverWebhook = repeatableWithKey(
  "webhooks.redeliverWebhook",
  z.object({
    consumer,
    deliveryId: id,
    idempotencyKey: z.string().min(1).max(BOUNDS.idempotencyKeyCharacters).optional(),
  }),
  z.object({ delivery: deliverySchema }),
);
/** As `redeliverWebhook`, for the owner. Needs `organization.manage`. */
export const resendWebhookDelivery = repeatableWithKey(
  "webhooks.resendWebhookDelivery",
  z.object({
    caller,
    deliveryId: id,
    idempotencyKey: z.string().min(1).max(BOUNDS.idempotencyKeyCharacters).optional(),
  }),
  z.object({ delivery: deliverySchema }),
);
