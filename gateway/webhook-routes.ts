/** The rows about webhooks: the owner's endpoints and what was sent to them, and a consumer's re-reading. */

import { z } from "zod";
import {
  changeWebhookEndpointBodySchema,
  newWebhookEndpointSchema,
  ownWebhookDeliveriesQuerySchema,
  ownWebhookDeliveriesSchema,
  ownWebhookDeliveryDetailSchema,
  registerWebhookEndpointBodySchema,
  rotateWebhookSecretBodySchema,
  webhookDeliveriesQuerySchema,
  webhookDeliveriesSchema,
  webhookDeliverySchema,
  webhookEndpointSchema,
  webhookEndpointsQuerySchema,
  webhookEndpointsSchema,
  webhookTestSchema,
} from "./contract/webhook.ts";
import { getOwnWebhookDelivery, listOwnWebhookDeliveries } from "./handlers/backoffice/webhook-deliveries.ts";
import {
  changeOwnEndpoint,
  deleteOwnEndpoint,
  getOwnEndpoint,
  listOwnEndpoints,
  registerOwnEndpoint,
  rotateOwnEndpointSecret,
  testOwnEndpoint,
} from "./handlers/backoffice/webhook-endpoints.ts";
import { listWebhookDeliveries, redeliverWebhook } from "./handlers/robotics/webhook-deliveries.ts";
import { idempotencyHeaderSchema } from "./http/command-id.ts";
import { consumer, type Route, route, session } from "./http/route.ts";

const who = session("organization.manage");
const endpoints = "/api/backoffice/v1/webhook-endpoints/" as const;
const endpoint = `${endpoints}{endpoint_id}` as const;
const ownDeliveries = "/api/backoffice/v1/webhook-deliveries/" as const;
const deliveries = "/api/robotics/v1/webhook-deliveries/" as const;

const endpointReply = { 200: { description: "The endpoint after this.", schema: webhookEndpointSchema } };

export const webhookRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: endpoints,
    operation: "listWebhookEndpoints",
    tag: "backoffice",
    summary: "List the webhook endpoints",
    description: "With the state of their breaker; their secrets are counted, never shown.",
    who,
    query: webhookEndpointsQuerySchema,
    replies: { 200: { description: "By id.", schema: webhookEndpointsSchema } },
    errors: [],
    handler: listOwnEndpoints,
  }),
  route({
    method: "POST",
    path: endpoints,
    operation: "registerWebhookEndpoint",
    tag: "backoffice",
    summary: "Register a webhook endpoint",
    description:
      "For what is told to one consumer. The address is looked up and held against the same rules as each delivery; `webhook_target_refused` says why as `reason`. A consumer has five endpoints at most.",
    who,
    body: registerWebhookEndpointBodySchema,
    replies: { 201: { description: "The endpoint, with its secret.", schema: newWebhookEndpointSchema } },
    errors: ["not_found", "conflict", "webhook_target_refused"],
    handler: registerOwnEndpoint,
  }),
  route({
    method: "GET",
    path: `${endpoint}/`,
    operation: "getWebhookEndpoint",
    tag: "backoffice",
    summary: "Look at a webhook endpoint",
    description: "Whether it is in use, how it fares, and since when its secrets are live.",
    who,
    replies: { 200: { description: "The endpoint.", schema: webhookEndpointSchema } },
    errors: ["not_found"],
    handler: getOwnEndpoint,
  }),
  route({
    method: "PATCH",
    path: `${endpoint}/`,
    operation: "changeWebhookEndpoint",
    tag: "backoffice",
    summary: "Pause or activate a webhook endpoint",
    description:
      "Activating a disabled one starts it anew: its address is looked at again, and its failures are forgotten.",
    who,
    body: changeWebhookEndpointBodySchema,
    replies: endpointReply,
    errors: ["not_found", "webhook_target_refused"],
    handler: changeOwnEndpoint,
  }),
  route({
    method: "DELETE",
    path: `${endpoint}/`,
    operation: "deleteWebhookEndpoint",
    tag: "backoffice",
    summary: "Delete a webhook endpoint",
    description: "What waits to be sent to it never will be; its deliveries stay readable.",
    who,
    replies: { 204: { description: "It is gone.", schema: null } },
    errors: ["not_found"],
    handler: deleteOwnEndpoint,
  }),
  route({
    method: "POST",
    path: `${endpoint}/test/`,
    operation: "testWebhookEndpoint",
    tag: "backoffice",
    summary: "Try a webhook endpoint",
    description:
      "Sends one event `webhook.test` now, by the same rules and with the same signature as any delivery, whatever the endpoint's status is, and answers with what came of it: up to ten seconds later. A success counts as any delivery's; a failure changes nothing but for 410, which disables the endpoint as it does for a delivery. A process makes one test of an endpoint at a time, beside the deliveries in flight; for a suspended consumer none is (`conflict`).",
    who,
    replies: { 200: { description: "The attempt, good or bad.", schema: webhookTestSchema } },
    errors: ["not_found", "conflict"],
    handler: testOwnEndpoint,
  }),
  route({
    method: "POST",
    path: `${endpoint}/rotate/`,
    operation: "rotateWebhookSecret",
    tag: "backoffice",
    summary: "Replace the secret of a webhook endpoint",
    description:
      "Until the overlap is over, deliveries carry a signature by each of the two. Without an overlap every older secret ends now. `conflict`: two are live already, and with an overlap a third would be; wait until the older one ends, or replace all with an overlap of 0.",
    who,
    body: rotateWebhookSecretBodySchema,
    bodyOptional: true,
    replies: { 200: { description: "The endpoint, with its new secret.", schema: newWebhookEndpointSchema } },
    errors: ["not_found", "conflict"],
    handler: rotateOwnEndpointSecret,
  }),
  route({
    method: "GET",
    path: ownDeliveries,
    operation: "listWebhookDeliveries",
    tag: "backoffice",
    summary: "List what was sent to consumers",
    description: "Of all consumers and endpoints, or of one.",
    who,
    query: ownWebhookDeliveriesQuerySchema,
    replies: { 200: { description: "Newest first.", schema: ownWebhookDeliveriesSchema } },
    errors: [],
    handler: listOwnWebhookDeliveries,
  }),
  route({
    method: "GET",
    path: `${ownDeliveries}{delivery_id}/`,
    operation: "getWebhookDelivery",
    tag: "backoffice",
    summary: "Look at a delivery and its attempts",
    description: "Where each attempt went, how long its parts took, and what the target answered.",
    who,
    replies: { 200: { description: "The delivery.", schema: ownWebhookDeliveryDetailSchema } },
    errors: ["not_found"],
    handler: getOwnWebhookDelivery,
  }),
  route({
    method: "GET",
    path: deliveries,
    operation: "listWebhookDeliveries",
    tag: "robotics",
    summary: "Read the deliveries again",
    description:
      "All that this consumer was told or should have been, whether it arrived or not, in the order in which it was committed: whoever goes on behind the last id misses none. Ids have gaps, which say nothing; an event has a delivery of its own for each endpoint. Kept for thirty days unless the operator says otherwise.",
    who: consumer,
    quiet: true,
    query: webhookDeliveriesQuerySchema,
    replies: { 200: { description: "By id, oldest first.", schema: webhookDeliveriesSchema } },
    errors: [],
    handler: listWebhookDeliveries,
  }),
  route({
    method: "POST",
    path: `${deliveries}{delivery_id}/redeliver/`,
    operation: "redeliverWebhook",
    tag: "robotics",
    summary: "Have a delivery sent once more",
    description:
      "One attempt now, with the same delivery id and body and a fresh signature: after the one under way, if there is one, and past an open breaker, as its probe. What waits for its next attempt keeps its time when this one fails. An offer is not sent after its expiry, an owner's test not again (`conflict`), nor one that had no endpoint (`endpoint_id` null): it goes to none that came later; it is read with `since_id`.",
    who: consumer,
    headers: z.object({
      "Idempotency-Key": idempotencyHeaderSchema.shape["Idempotency-Key"].meta({
        description: "Under the same key a delivery is resent once, however often it is asked for.",
      }),
    }),
    replies: { 202: { description: "It will be sent.", schema: webhookDeliverySchema } },
    errors: ["not_found", "conflict", "delivery_lapsed", "endpoint_unavailable"],
    handler: redeliverWebhook,
  }),
];
