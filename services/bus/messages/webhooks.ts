/**
 * Webhook endpoints, and the deliveries to them (contract, "Events"). The owner registers and looks after endpoints;
 * a consumer reads its deliveries again and has one resent.
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { defineOperation } from "../operation.ts";
import { pageAfter, pageBefore } from "../page.ts";
import { callerSchema } from "./caller.ts";
import { consumerCallerSchema } from "./robotics.ts";
import { ROBOTICS_EVENT_TYPES } from "./robotics-events.ts";

const id = z.int().positive();
const caller = callerSchema;
const consumer = consumerCallerSchema;
const hasMore = z.boolean();

/** What an owner's test sends; it has its own type, so that nobody mistakes it for a task. */
export const TEST_EVENT_TYPE = "webhook.test";
export const DELIVERY_EVENT_TYPES = [...ROBOTICS_EVENT_TYPES, TEST_EVENT_TYPE] as const;

/** `paused` by the owner: deliveries wait. `disabled` by the service, with the reason: nothing is sent until the owner activates it. */
export const ENDPOINT_STATUSES = ["active", "paused", "disabled"] as const;
export const DISABLED_REASONS = [
  /** The target answered 410. */
  "gone",
  /** No success for days and many failures. */
  "failing",
] as const;

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

/** Why an attempt failed; a refused target is told from a failing one, and nothing more is said about it. */
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
  /** Something is wrong here, and not at the target. */
  "internal_error",
] as const;
export type AttemptError = (typeof ATTEMPT_ERRORS)[number];

export const endpointSchema = z.object({
  endpointId: id,
  consumerId: id,
  filialId: id,
  url: z.string(),
  status: z.enum(ENDPOINT_STATUSES),
  disabledReason: z.enum(DISABLED_REASONS).nullable(),
  /** While the breaker is open: nothing is sent before. */
  openUntilMs: z.number().nullable(),
  consecutiveFailures: z.int(),
  lastSuccessAtMs: z.number().nullable(),
  lastFailureAtMs: z.number().nullable(),
  /** Since when each live secret is, and until when; never what it is. */
  secrets: z.array(z.object({ createdAtMs: z.number(), expiresAtMs: z.number().nullable() })),
  createdAtMs: z.number(),
});
export type WebhookEndpoint = z.infer<typeof endpointSchema>;
const endpointReply = z.object({ endpoint: endpointSchema });

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
  /** Asked for by somebody instead of due by the schedule. */
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

// The owner's. Each needs `organization.manage`.
export const listEndpoints = defineOperation(
  "webhooks.endpoint.list",
  "repeatable",
  z.object({ caller, consumerId: id.optional(), ...pageAfter }),
  z.object({ endpoints: z.array(endpointSchema), hasMore }),
);
export const getEndpoint = defineOperation(
  "webhooks.endpoint.get",
  "repeatable",
  z.object({ caller, endpointId: id }),
  endpointReply,
);
/** `webhook_target_refused` with the reason for an address that is not public; the secret is returned this once. */
export const registerEndpoint = defineOperation(
  "webhooks.endpoint.register",
  "once",
  z.object({ caller, consumerId: id, url: z.string().max(BOUNDS.webhookUrlCharacters) }),
  z.object({ endpoint: endpointSchema, secret: z.string() }),
);
/** Pauses or activates; activating a disabled one starts it anew, and its address is looked at again. */
export const changeEndpoint = defineOperation(
  "webhooks.endpoint.change",
  "once",
  z.object({ caller, endpointId: id, status: z.enum(["active", "paused"]) }),
  endpointReply,
);
/** A new secret; both sign until `overlapMs` is over. At most two are live: a third rotation within the overlap is a `conflict`. */
export const rotateEndpointSecret = defineOperation(
  "webhooks.endpoint.rotate",
  "once",
  z.object({ caller, endpointId: id, overlapMs: z.int().min(0).max(BOUNDS.secretOverlapMs) }),
  z.object({ endpoint: endpointSchema, secret: z.string() }),
);
/** What was not sent yet never will be; its deliveries stay readable. */
export const deleteEndpoint = defineOperation(
  "webhooks.endpoint.delete",
  "once",
  z.object({ caller, endpointId: id }),
  z.object({}),
);
/** Sends one test event now, past the breaker, through the same guard, and answers with what came of it. `conflict` for a suspended consumer. */
export const testEndpoint = defineOperation(
  "webhooks.endpoint.test",
  "once",
  z.object({ caller, endpointId: id }),
  z.object({ delivery: deliverySchema, attempt: attemptSchema }),
);
const deliveryFilters = {
  eventType: z.enum(DELIVERY_EVENT_TYPES).optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
};
/** Newest first. */
export const listOwnDeliveries = defineOperation(
  "webhooks.delivery.list_own",
  "repeatable",
  z.object({ caller, endpointId: id.optional(), consumerId: id.optional(), ...deliveryFilters, ...pageBefore }),
  z.object({ deliveries: z.array(deliverySchema), hasMore }),
);
/** One with its attempts, the newest first. */
export const getOwnDelivery = defineOperation(
  "webhooks.delivery.get_own",
  "repeatable",
  z.object({ caller, deliveryId: id }),
  z.object({ delivery: deliverySchema, attempts: z.array(attemptSchema) }),
);

// The consumer's.
/** In the order in which they were committed: whoever reads on after the last id misses none. Filters do not change that. */
export const listDeliveries = defineOperation(
  "webhooks.delivery.list",
  "repeatable",
  z.object({ consumer, ...deliveryFilters, ...pageAfter }),
  z.object({ deliveries: z.array(deliverySchema), hasMore }),
);
/**
 * One more attempt, the same delivery id. With a key, a repetition is the same attempt. Refusals: `endpoint_unavailable`
 * (none, deleted or disabled), `delivery_lapsed` (an offer that has expired), `conflict` (an owner's test).
 */
export const redeliver = defineOperation(
  "webhooks.delivery.redeliver",
  "repeatable_with_key",
  z.object({
    consumer,
    deliveryId: id,
    idempotencyKey: z.string().min(1).max(BOUNDS.idempotencyKeyCharacters).optional(),
  }),
  z.object({ delivery: deliverySchema }),
);
