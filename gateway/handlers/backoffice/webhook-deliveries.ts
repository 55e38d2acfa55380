/** What the owner's consumers were sent, and every attempt to do so. */
import type { z } from "zod";
import { getOwnDelivery, listOwnDeliveries } from "../../../services/bus/messages/webhooks.ts";
import type { ownWebhookDeliveriesQuerySchema } from "../../contract/webhook.ts";
import { ok, type SessionHandler } from "../../http/handler-context.ts";
import { attemptWire, ownDeliveryWire } from "../webhook-wire.ts";

export const listOwnWebhookDeliveries: SessionHandler<
  undefined,
  z.infer<typeof ownWebhookDeliveriesQuerySchema>
> = async (context) => {
  const { caller, deps, query } = context;
  const { endpoint_id: endpointId, consumer_id: consumerId, event_type: eventType, status } = query;
  const page = { beforeId: query.before_id, limit: query.limit };
  const request = { caller, endpointId, consumerId, eventType, status, ...page };
  const { deliveries, hasMore } = await deps.bus.call(listOwnDeliveries, request);
  return ok({ webhook_deliveries: deliveries.map(ownDeliveryWire), has_more: hasMore });
};

export const getOwnWebhookDelivery: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, deliveryId: context.id("delivery_id") };
  const { delivery, attempts } = await deps.bus.call(getOwnDelivery, request);
  return ok({ webhook_delivery: ownDeliveryWire(delivery), attempts: attempts.map(attemptWire) });
};
