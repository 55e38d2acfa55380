/** A consumer reads its deliveries again, and has one resent (contract, "Webhook-related read and replay endpoints"). */
import type { z } from "zod";
import { listDeliveries, redeliver } from "../../../services/bus/messages/webhooks.ts";
import type { webhookDeliveriesQuerySchema } from "../../contract/webhook.ts";
import { idempotencyKey } from "../../http/command-id.ts";
import { type ConsumerHandler, ok } from "../../http/handler-context.ts";
import { deliveryWire } from "../webhook-wire.ts";

export const listWebhookDeliveries: ConsumerHandler<z.infer<typeof webhookDeliveriesQuerySchema>> = async (context) => {
  const { consumer, deps, query } = context;
  const { event_type: eventType, status, since_id: sinceId, limit } = query;
  const { deliveries, hasMore } = await deps.bus.call(listDeliveries, { consumer, eventType, status, sinceId, limit });
  return ok({ webhook_deliveries: deliveries.map(deliveryWire), has_more: hasMore });
};

/** Refusals: `not_found`, `delivery_lapsed`, `endpoint_unavailable`. */
export const redeliverWebhook: ConsumerHandler = async (context) => {
  const { consumer, deps } = context;
  const request = { consumer, deliveryId: context.id("delivery_id"), idempotencyKey: idempotencyKey(context) };
  const { delivery } = await deps.bus.call(redeliver, request);
  return { status: 202, body: deliveryWire(delivery) };
};
