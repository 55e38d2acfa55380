/** A consumer reads its deliveries and requests one again (contract, "Webhook-related read and replay endpoints"). */
import { z } from "zod";
import { eventTime } from "../../../services/bus/messages/robotics-events.ts";
import * as messages from "../../../services/bus/messages/webhook-deliveries.ts";
import { consumerCommandId, idempotencyHeaderSchema } from "../../http/command-id.ts";
import { type ConsumerHandler, ok } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery } from "../../http/page.ts";
import { route, consumer as who } from "../../http/route.ts";
import { idSchema, optionalTimestamp, timestampSchema } from "../../http/shared-schemas.ts";
import { endedTaskSchema, filialPayloadSchema, offeredTaskSchema, testPayloadSchema } from "./webhook-events.ts";

const eventTypeSchema = z.enum(messages.DELIVERY_EVENT_TYPES).meta({ id: "WebhookEventType" });
const statusSchema = z.enum(messages.DELIVERY_STATUSES).meta({ id: "WebhookDeliveryStatus" });
const payloadSchema = z
  .union([offeredTaskSchema, endedTaskSchema, filialPayloadSchema, testPayloadSchema])
  .meta({ description: "As the event's type has it; see `webhooks`." });

/** The fields that a consumer and the owner see. */
export const deliveryFields = {
  delivery_id: idSchema,
  endpoint_id: idSchema.nullable().meta({
    description:
      "Where it is sent; null when the consumer had no endpoint. An event has a separate delivery for each endpoint.",
  }),
  event_type: eventTypeSchema,
  status: statusSchema.meta({
    description:
      "`pending`: it is due, or waits for its next attempt. `failed`: its attempts are used up, its endpoint was disabled or deleted, or its endpoint was paused or its consumer suspended for as long as deliveries are kept; also a `webhook.test` that is under way, until it is delivered. `lapsed`: an offer that expired before it was delivered, or whose next attempt would come after its expiry. `unsent`: the consumer had no endpoint in use; it can be read here.",
  }),
  created_at: eventTime.meta({
    description: "When it happened, as in the body that is sent.",
    examples: ["2026-11-20T12:00:00.000Z"],
  }),
  attempts: z.int().min(0).meta({ description: "Made so far." }),
  next_attempt_at: timestampSchema.nullable().meta({ description: "Null when none is due." }),
  delivered_at: timestampSchema.nullable(),
  payload: payloadSchema,
};
const deliveryExample = {
  delivery_id: 42,
  endpoint_id: 7,
  event_type: "serving_task.offered",
  status: "delivered",
  created_at: "2026-11-20T12:00:00.000Z",
  attempts: 1,
  next_attempt_at: null,
  delivered_at: "2026-11-20T12:00:00.084Z",
  payload: {
    task_id: 42,
    display_number: 7,
    leg: "kitchen_to_table",
    status: "offered",
    expires_at: "2026-11-20T12:02:00.000Z",
  },
} as const;
const deliverySchema = z.object(deliveryFields).meta({ id: "WebhookDelivery", examples: [deliveryExample] });
const deliveriesSchema = z
  .object({ webhook_deliveries: z.array(deliverySchema), has_more: hasMoreAfter })
  .meta({ id: "WebhookDeliveries", examples: [{ webhook_deliveries: [deliveryExample], has_more: false }] });
export const deliveryFilters = {
  event_type: eventTypeSchema
    .optional()
    .meta({ description: "Only deliveries of this type of event; of all types when left out." }),
  status: statusSchema.optional().meta({ description: "Only deliveries of this status; all when left out." }),
};
const deliveriesQuerySchema = z.strictObject({ ...pageAfterQuery, ...deliveryFilters });
export const redeliveryHeadersSchema = z.object({
  "Idempotency-Key": idempotencyHeaderSchema.shape["Idempotency-Key"].meta({
    description:
      "Under the same key a delivery is resent once, however often the caller asks for it. Each person and each consumer has its own keys.",
  }),
});

type DeliveryJson = z.infer<typeof deliverySchema>;

/**
 * A delivery in JSON. The event and its time come from the sent body. The fields of a payload keep their order, so that a reader
 * can reproduce the exact bytes of the body.
 */
export function deliveryJson(delivery: messages.Delivery): DeliveryJson {
  const { created_at, payload } = JSON.parse(delivery.body) as Pick<DeliveryJson, "created_at" | "payload">;
  return {
    delivery_id: delivery.deliveryId,
    endpoint_id: delivery.endpointId,
    event_type: delivery.eventType,
    status: delivery.status,
    created_at,
    attempts: delivery.attempts,
    next_attempt_at: optionalTimestamp(delivery.nextAttemptAtMs),
    delivered_at: optionalTimestamp(delivery.deliveredAtMs),
    payload,
  };
}

const listWebhookDeliveries: ConsumerHandler<z.infer<typeof deliveriesQuerySchema>> = async (context) => {
  const { consumer, deps, query } = context;
  const { event_type: eventType, status, since_id: sinceId, limit } = query;
  const request = { consumer, eventType, status, sinceId, limit };
  const { deliveries, hasMore } = await deps.bus.call(messages.listConsumerWebhookDeliveries, request);
  return ok({ webhook_deliveries: deliveries.map(deliveryJson), has_more: hasMore });
};

const redeliverWebhook: ConsumerHandler = async (context) => {
  const { consumer, deps } = context;
  const deliveryId = context.id("delivery_id");
  const { delivery } = await deps.bus.call(messages.redeliverWebhook, {
    consumer,
    deliveryId,
    idempotencyKey: consumerCommandId(context, "webhook_redeliver", deliveryId),
  });
  return { status: 202, body: deliveryJson(delivery) };
};

const deliveries = "/api/robotics/v1/webhook-deliveries/" as const;

export const consumerWebhookDeliveryRoutes = [
  route({
    method: "GET",
    path: deliveries,
    operation: "listWebhookDeliveries",
    tag: "robotics",
    summary: "Read the deliveries again",
    description:
      "Every event that was sent to this consumer or should have been, whether it arrived or not, in the order of commits: a reader that continues after the last id misses none, also with `event_type`. With `status` it may miss some, because the status of a smaller id changes later. Ids have gaps, which have no meaning. An event has a separate delivery for each endpoint. Kept for thirty days unless the operator sets another time.",
    who,
    quiet: true,
    query: deliveriesQuerySchema,
    replies: { 200: { description: "By id, oldest first.", schema: deliveriesSchema } },
    handler: listWebhookDeliveries,
  }),
  route({
    method: "POST",
    path: `${deliveries}{delivery_id}/redeliver/`,
    operation: "redeliverWebhook",
    tag: "robotics",
    summary: "Request a delivery again",
    description:
      "One attempt now, with the same delivery id and body and a fresh signature. It follows an attempt that is under way. To a paused endpoint or a suspended consumer it waits until that is over. An open circuit breaker does not stop it: it is the breaker's probe. If it fails, the time of the next planned attempt does not change. An expired offer is not sent, and an owner's test is not sent again (`conflict`). A delivery without an endpoint (`endpoint_id` null) is not sent, not even to an endpoint that was added later; read it with `since_id`.",
    who,
    headers: redeliveryHeadersSchema,
    replies: { 202: { description: "It will be sent.", schema: deliverySchema } },
    errors: ["not_found", "conflict", "delivery_lapsed", "endpoint_unavailable"],
    handler: redeliverWebhook,
  }),
];
