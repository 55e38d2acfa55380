/** The owner's webhook endpoints. A secret comes out once, when it was made here. */
import type { z } from "zod";
import {
  changeEndpoint,
  deleteEndpoint,
  getEndpoint,
  listEndpoints,
  registerEndpoint,
  rotateEndpointSecret,
  testEndpoint,
} from "../../../services/bus/messages/webhooks.ts";
import type {
  changeWebhookEndpointBodySchema,
  registerWebhookEndpointBodySchema,
  rotateWebhookSecretBodySchema,
  webhookEndpointsQuerySchema,
} from "../../contract/webhook.ts";
import { created, noContent, ok, type SessionHandler } from "../../http/handler-context.ts";
import { LIMITS } from "../../limits.ts";
import { attemptWire, endpointWire, ownDeliveryWire } from "../webhook-wire.ts";

export const listOwnEndpoints: SessionHandler<undefined, z.infer<typeof webhookEndpointsQuerySchema>> = async (
  context,
) => {
  const { caller, deps, query } = context;
  const { consumer_id: consumerId, since_id: sinceId, limit } = query;
  const { endpoints, hasMore } = await deps.bus.call(listEndpoints, { caller, consumerId, sinceId, limit });
  return ok({ webhook_endpoints: endpoints.map(endpointWire), has_more: hasMore });
};

export const getOwnEndpoint: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const { endpoint } = await deps.bus.call(getEndpoint, { caller, endpointId: context.id("endpoint_id") });
  return ok(endpointWire(endpoint));
};

/** Refusals: `not_found` for a foreign consumer, `webhook_target_refused` with the reason, `conflict` when it has enough. */
export const registerOwnEndpoint: SessionHandler<z.infer<typeof registerWebhookEndpointBodySchema>> = async (
  context,
) => {
  const { caller, deps, body } = context;
  const { consumer_id: consumerId, url } = body;
  const { endpoint, secret } = await deps.bus.call(registerEndpoint, { caller, consumerId, url });
  return created({ webhook_endpoint: endpointWire(endpoint), secret });
};

/** Refusals: `not_found`, and `webhook_target_refused` when one is activated whose address is no longer public. */
export const changeOwnEndpoint: SessionHandler<z.infer<typeof changeWebhookEndpointBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, endpointId: context.id("endpoint_id"), status: body.status };
  const { endpoint } = await deps.bus.call(changeEndpoint, request);
  return ok(endpointWire(endpoint));
};

/** Refusals: `not_found`, `conflict` while two secrets are live. */
export const rotateOwnEndpointSecret: SessionHandler<z.infer<typeof rotateWebhookSecretBodySchema>> = async (
  context,
) => {
  const { caller, deps, body } = context;
  const request = { caller, endpointId: context.id("endpoint_id"), overlapMs: body.overlap_seconds * 1_000 };
  const { endpoint, secret } = await deps.bus.call(rotateEndpointSecret, request);
  return ok({ webhook_endpoint: endpointWire(endpoint), secret });
};

export const deleteOwnEndpoint: SessionHandler = async (context) => {
  const { caller, deps } = context;
  await deps.bus.call(deleteEndpoint, { caller, endpointId: context.id("endpoint_id") });
  return noContent();
};

/** Answers once the target has, whatever that was. Refusals: `not_found`, `busy` when too many are being tried. */
export const testOwnEndpoint: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, endpointId: context.id("endpoint_id") };
  const { delivery, attempt } = await deps.bus.call(testEndpoint, request, LIMITS.webhookTestMs);
  return ok({ webhook_delivery: ownDeliveryWire(delivery), attempt: attemptWire(attempt) });
};
