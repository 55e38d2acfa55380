/** The webhook deliveries to the owner's consumers, and the attempts of each delivery. */
import { z } from "zod";
import * as messages from "../../../services/bus/messages/webhook-deliveries.ts";
import { idempotencyKey, sessionCommandId } from "../../http/command-id.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreBefore, pageBeforeQuery, queryId } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import {
  deliveryFields,
  deliveryFilters,
  deliveryJson,
  redeliveryHeadersSchema,
} from "../robotics/webhook-deliveries.ts";

/** The same delivery that the consumer reads, with the consumer's id. */
export const ownerDeliverySchema = z
  .object({ ...deliveryFields, consumer_id: idSchema })
  .meta({ id: "OwnWebhookDelivery" });
const deliveriesSchema = z.object({ webhook_deliveries: z.array(ownerDeliverySchema), has_more: hasMoreBefore });
const deliveriesQuerySchema = z.strictObject({
  ...pageBeforeQuery,
  ...deliveryFilters,
  endpoint_id: queryId().optional().meta({
    description:
      "Only deliveries to this webhook endpoint, by its id in the list of webhook endpoints. Without it, deliveries to all endpoints.",
  }),
  consumer_id: queryId().optional().meta({
    description:
      "Only deliveries of this robotics consumer, by its id in the list of robotics consumers. Without it, deliveries of all consumers.",
  }),
});
const milliseconds = z.number().min(0).nullable();
export const attemptSchema = z
  .object({
    attempt_id: idSchema,
    started_at: timestampSchema,
    address: z
      .string()
      .nullable()
      .meta({ description: "The address that the attempt went to; null for a refused target." }),
    dns_ms: milliseconds,
    connect_ms: milliseconds,
    tls_ms: milliseconds,
    first_byte_ms: milliseconds,
    total_ms: milliseconds,
    status: z.int().nullable().meta({ description: "The HTTP status that the target answered; only 2xx is success." }),
    error: z
      .enum(messages.ATTEMPT_ERRORS)
      .meta({ id: "WebhookAttemptError" })
      .nullable()
      .meta({ description: "Null for a success." }),
    response_body: z.string().meta({ description: "The beginning of the answer; empty for a refused target." }),
    truncated: z
      .boolean()
      .meta({ description: "Whether the answer was longer than the 16 KiB that the service reads." }),
    manual: z.boolean().meta({
      description:
        "Whether a person or the consumer asked for the attempt; false when the service made it by its schedule.",
    }),
  })
  .meta({ id: "WebhookAttempt" });
const deliveryDetailSchema = z
  .object({
    webhook_delivery: ownerDeliverySchema,
    attempts: z.array(attemptSchema).meta({ description: "Newest first." }),
  })
  .meta({ id: "OwnWebhookDeliveryDetail" });

export function ownerDeliveryJson(delivery: messages.Delivery): z.infer<typeof ownerDeliverySchema> {
  return { ...deliveryJson(delivery), consumer_id: delivery.consumerId };
}

export function attemptJson(attempt: messages.Attempt): z.infer<typeof attemptSchema> {
  return {
    attempt_id: attempt.attemptId,
    started_at: toTimestamp(attempt.startedAtMs),
    address: attempt.address,
    dns_ms: attempt.dnsMs,
    connect_ms: attempt.connectMs,
    tls_ms: attempt.tlsMs,
    first_byte_ms: attempt.firstByteMs,
    total_ms: attempt.totalMs,
    status: attempt.status,
    error: attempt.error,
    response_body: attempt.responseBody,
    truncated: attempt.truncated,
    manual: attempt.manual,
  };
}

const listWebhookDeliveries: SessionHandler<undefined, z.infer<typeof deliveriesQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const { endpoint_id: endpointId, consumer_id: consumerId, event_type: eventType, status } = query;
  const page = { beforeId: query.before_id, limit: query.limit };
  const request = { caller, endpointId, consumerId, eventType, status, ...page };
  const { deliveries, hasMore } = await deps.bus.call(messages.listWebhookDeliveries, request);
  return ok({ webhook_deliveries: deliveries.map(ownerDeliveryJson), has_more: hasMore });
};

const getWebhookDelivery: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, deliveryId: context.id("delivery_id") };
  const { delivery, attempts } = await deps.bus.call(messages.getWebhookDelivery, request);
  return ok({ webhook_delivery: ownerDeliveryJson(delivery), attempts: attempts.map(attemptJson) });
};

const resendWebhookDelivery: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const deliveryId = context.id("delivery_id");
  const { delivery } = await deps.bus.call(messages.resendWebhookDelivery, {
    caller,
    deliveryId,
    idempotencyKey: idempotencyKey(context) && sessionCommandId(context, "webhook_resend", deliveryId),
  });
  return { status: 202, body: ownerDeliveryJson(delivery) };
};

const deliveries = "/api/backoffice/v1/webhook-deliveries/" as const;

export const webhookDeliveryRoutes = [
  backofficeRoute({
    method: "GET",
    path: deliveries,
    operation: "listWebhookDeliveries",
    summary: "List webhook deliveries",
    description: "The deliveries of all consumers and endpoints, or of one.",
    query: deliveriesQuerySchema,
    replies: { 200: { description: "Newest first.", schema: deliveriesSchema } },
    handler: listWebhookDeliveries,
  }),
  backofficeRoute({
    method: "GET",
    path: `${deliveries}{delivery_id}/`,
    operation: "getWebhookDelivery",
    summary: "Read a delivery and its attempts",
    description: "Where each attempt went, how long each phase took, and what the target answered.",
    replies: { 200: { description: "The delivery.", schema: deliveryDetailSchema } },
    errors: ["not_found"],
    handler: getWebhookDelivery,
  }),
  backofficeRoute({
    method: "POST",
    path: `${deliveries}{delivery_id}/redeliver/`,
    operation: "resendWebhookDelivery",
    summary: "Send a delivery again",
    description:
      "The service makes one attempt now, with the same delivery id and body and a new signature. To a paused endpoint or a suspended consumer the attempt waits until that is over. The rules are the same as for the consumer: it does not send an expired offer (`delivery_lapsed`), a test (`conflict`) or a delivery whose endpoint is missing or disabled (`endpoint_unavailable`).",
    headers: redeliveryHeadersSchema,
    replies: { 202: { description: "The service will send the delivery.", schema: ownerDeliverySchema } },
    errors: ["not_found", "conflict", "delivery_lapsed", "endpoint_unavailable"],
    handler: resendWebhookDelivery,
  }),
];
