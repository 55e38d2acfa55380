/** The owner's webhook endpoints. Only the answer that creates a secret shows it. */
import { z } from "zod";
import { DISABLED_REASONS } from "../../../machines/webhook-breaker.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import * as messages from "../../../services/bus/messages/webhook-endpoints.ts";
import { creationHeaderSchema, creationOf } from "../../http/command-id.ts";
import { created, noContent, ok, type SessionHandler } from "../../http/handler-context.ts";
import { hasMoreAfter, pageAfterQuery, queryId } from "../../http/page.ts";
import { backofficeRoute } from "../../http/route.ts";
import { idSchema, optionalTimestamp, timestampSchema, toTimestamp } from "../../http/shared-schemas.ts";
import { LIMITS } from "../../limits.ts";
import { EXAMPLE_SECRET } from "../robotics/webhook-events.ts";
import { attemptJson, attemptSchema, ownerDeliveryJson, ownerDeliverySchema } from "./webhook-deliveries.ts";

const endpointSchema = z
  .object({
    endpoint_id: idSchema,
    consumer_id: idSchema,
    filial_id: idSchema,
    url: z.string().meta({ examples: ["https://fleet.example/hooks/robotics"] }),
    status: z.enum(messages.ENDPOINT_STATUSES).meta({ id: "WebhookEndpointStatus" }).meta({
      description:
        "`paused`: by the owner; deliveries wait, and offers lapse. `disabled`: by the service, for the `disabled_reason`; it sends nothing until the owner activates the endpoint.",
    }),
    disabled_reason: z.enum(DISABLED_REASONS).meta({ id: "WebhookDisabledReason" }).nullable().meta({
      description:
        "`gone`: the target answered 410. `failing`: no success for five days and twenty failures. Null unless disabled.",
    }),
    open_until: timestampSchema.nullable().meta({
      description:
        "After five failures in a row, the service sends nothing before this time. The wait uses up no attempts of a delivery.",
    }),
    consecutive_failures: z.int().min(0),
    last_success_at: timestampSchema.nullable(),
    last_failure_at: timestampSchema.nullable(),
    secrets: z
      .array(z.object({ created_at: timestampSchema, expires_at: timestampSchema.nullable() }))
      .meta({ description: "The times of each valid secret, never its value. During a rotation there are two." }),
    created_at: timestampSchema,
  })
  .meta({ id: "WebhookEndpoint" });
const endpointsSchema = z.object({ webhook_endpoints: z.array(endpointSchema), has_more: hasMoreAfter });
const endpointsQuerySchema = z.strictObject({
  ...pageAfterQuery,
  consumer_id: queryId().optional().meta({
    description:
      "Only webhook endpoints of this robotics consumer, by its id in the list of robotics consumers; of all when left out.",
  }),
});
const newEndpointSchema = z
  .object({
    webhook_endpoint: endpointSchema,
    secret: z.string().meta({
      description: "The secret that signs deliveries: the whole text. It is shown only once.",
      examples: [EXAMPLE_SECRET],
    }),
  })
  .meta({ id: "NewWebhookEndpoint" });
const registerBodySchema = z
  .strictObject({
    consumer_id: idSchema,
    url: z.string().min(1).max(BOUNDS.webhookUrlCharacters).meta({
      description:
        "HTTPS to a public host, port 443 or 8443, without user name, password or fragment. Redirects are not followed: give the final address. The audit log has it without its query.",
    }),
  })
  .meta({
    id: "RegisterWebhookEndpoint",
    examples: [{ consumer_id: 42, url: "https://fleet.example/hooks/robotics" }],
  });
const changeBodySchema = z
  .strictObject({ status: z.enum(["active", "paused"]).meta({ id: "WantedEndpointStatus" }) })
  .meta({ id: "ChangeWebhookEndpoint", examples: [{ status: "paused" }] });
export const rotateWebhookSecretBodySchema = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(BOUNDS.secretOverlapMs / 1_000)
      .default(LIMITS.secretOverlapUnlessAskedSeconds)
      .meta({ description: "How long the old secret signs too; a day when left out. With 0, it ends at once." }),
    replaces_lost: z.boolean().default(false).meta({
      description:
        "For a rotation whose answer was lost: during the overlap the newest secret ends at once, and the old one keeps its end.",
    }),
  })
  .meta({ id: "RotateWebhookSecret", examples: [{ overlap_seconds: 86_400 }] });
const testSchema = z
  .object({ webhook_delivery: ownerDeliverySchema, attempt: attemptSchema })
  .meta({ id: "WebhookTestResult" });

function endpointJson(endpoint: messages.WebhookEndpoint): z.infer<typeof endpointSchema> {
  return {
    endpoint_id: endpoint.endpointId,
    consumer_id: endpoint.consumerId,
    filial_id: endpoint.filialId,
    url: endpoint.url,
    status: endpoint.status,
    disabled_reason: endpoint.disabledReason,
    open_until: optionalTimestamp(endpoint.openUntilMs),
    consecutive_failures: endpoint.consecutiveFailures,
    last_success_at: optionalTimestamp(endpoint.lastSuccessAtMs),
    last_failure_at: optionalTimestamp(endpoint.lastFailureAtMs),
    secrets: endpoint.secrets.map(({ createdAtMs, expiresAtMs }) => ({
      created_at: toTimestamp(createdAtMs),
      expires_at: optionalTimestamp(expiresAtMs),
    })),
    created_at: toTimestamp(endpoint.createdAtMs),
  };
}

const listWebhookEndpoints: SessionHandler<undefined, z.infer<typeof endpointsQuerySchema>> = async (context) => {
  const { caller, deps, query } = context;
  const request = { caller, consumerId: query.consumer_id, sinceId: query.since_id, limit: query.limit };
  const { endpoints, hasMore } = await deps.bus.call(messages.listWebhookEndpoints, request);
  return ok({ webhook_endpoints: endpoints.map(endpointJson), has_more: hasMore });
};

const getWebhookEndpoint: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, endpointId: context.id("endpoint_id") };
  const { endpoint } = await deps.bus.call(messages.getWebhookEndpoint, request);
  return ok(endpointJson(endpoint));
};

const registerWebhookEndpoint: SessionHandler<z.infer<typeof registerBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const creation = creationOf(context, "webhook_endpoint");
  const request = { caller, consumerId: body.consumer_id, url: body.url, creation };
  const { endpoint, secret } = await deps.bus.call(messages.registerWebhookEndpoint, request);
  return created({ webhook_endpoint: endpointJson(endpoint), secret });
};

const changeWebhookEndpoint: SessionHandler<z.infer<typeof changeBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = { caller, endpointId: context.id("endpoint_id"), status: body.status };
  const { endpoint } = await deps.bus.call(messages.changeWebhookEndpoint, request);
  return ok(endpointJson(endpoint));
};

const rotateWebhookSecret: SessionHandler<z.infer<typeof rotateWebhookSecretBodySchema>> = async (context) => {
  const { caller, deps, body } = context;
  const request = {
    caller,
    endpointId: context.id("endpoint_id"),
    overlapMs: body.overlap_seconds * 1_000,
    replacesLost: body.replaces_lost,
  };
  const { endpoint, secret } = await deps.bus.call(messages.rotateWebhookSecret, request);
  return ok({ webhook_endpoint: endpointJson(endpoint), secret });
};

const deleteWebhookEndpoint: SessionHandler = async (context) => {
  const { caller, deps } = context;
  await deps.bus.call(messages.deleteWebhookEndpoint, { caller, endpointId: context.id("endpoint_id") });
  return noContent();
};

/** Waits for the target's answer, success or error. Error: `busy` while too many tests are under way. */
const testWebhookEndpoint: SessionHandler = async (context) => {
  const { caller, deps } = context;
  const request = { caller, endpointId: context.id("endpoint_id") };
  const { delivery, attempt } = await deps.bus.call(messages.testWebhookEndpoint, request, LIMITS.webhookTestMs);
  return ok({ webhook_delivery: ownerDeliveryJson(delivery), attempt: attemptJson(attempt) });
};

const endpoints = "/api/backoffice/v1/webhook-endpoints/" as const;
const endpoint = `${endpoints}{endpoint_id}` as const;

export const webhookEndpointRoutes = [
  backofficeRoute({
    method: "GET",
    path: endpoints,
    operation: "listWebhookEndpoints",
    summary: "List the webhook endpoints",
    description:
      "The endpoints with the state of their breakers and the times of their secrets. The secrets are never shown.",
    query: endpointsQuerySchema,
    replies: { 200: { description: "By id.", schema: endpointsSchema } },
    handler: listWebhookEndpoints,
  }),
  backofficeRoute({
    method: "POST",
    path: endpoints,
    operation: "registerWebhookEndpoint",
    summary: "Register a webhook endpoint",
    description:
      "The endpoint gets the events of one consumer. The service resolves and checks the address by the same rules as for each delivery; the error `webhook_target_refused` has the `reason`. A consumer has five endpoints at most.",
    headers: creationHeaderSchema,
    body: registerBodySchema,
    replies: { 201: { description: "The endpoint, with its secret.", schema: newEndpointSchema } },
    errors: ["not_found", "conflict", "webhook_target_refused", "idempotency_key_reused", "already_created"],
    handler: registerWebhookEndpoint,
  }),
  backofficeRoute({
    method: "GET",
    path: `${endpoint}/`,
    operation: "getWebhookEndpoint",
    summary: "Read a webhook endpoint",
    description: "Its status, its last success and failure, and the times of its secrets.",
    replies: { 200: { description: "The endpoint.", schema: endpointSchema } },
    errors: ["not_found"],
    handler: getWebhookEndpoint,
  }),
  backofficeRoute({
    method: "PATCH",
    path: `${endpoint}/`,
    operation: "changeWebhookEndpoint",
    summary: "Pause or activate a webhook endpoint",
    description:
      "When the owner activates an endpoint, the service checks its address again, and its earlier failures no longer count.",
    body: changeBodySchema,
    replies: { 200: { description: "The endpoint after the change.", schema: endpointSchema } },
    errors: ["not_found", "webhook_target_refused"],
    handler: changeWebhookEndpoint,
  }),
  backofficeRoute({
    method: "DELETE",
    path: `${endpoint}/`,
    operation: "deleteWebhookEndpoint",
    summary: "Delete a webhook endpoint",
    description: "The service no longer sends its waiting deliveries. All its deliveries stay readable.",
    replies: { 204: { description: "The endpoint is deleted.", schema: null } },
    errors: ["not_found"],
    handler: deleteWebhookEndpoint,
  }),
  backofficeRoute({
    method: "POST",
    path: `${endpoint}/test/`,
    operation: "testWebhookEndpoint",
    summary: "Test a webhook endpoint",
    description:
      "Sends one event `webhook.test` now, by the same rules and with the same signature as a delivery, whatever the status of the endpoint is. The answer has the result of the attempt and comes up to ten seconds later. A success counts like the success of a delivery. A failure changes nothing, except that 410 disables the endpoint, as for a delivery. A process runs one test of an endpoint at a time, beside its deliveries. For a suspended consumer, the test is refused (`conflict`).",
    replies: { 200: { description: "The attempt, with its success or its error.", schema: testSchema } },
    errors: ["not_found", "conflict"],
    handler: testWebhookEndpoint,
  }),
  backofficeRoute({
    method: "POST",
    path: `${endpoint}/rotate/`,
    operation: "rotateWebhookSecret",
    summary: "Replace the secret of a webhook endpoint",
    description:
      "Until the overlap ends, deliveries carry two signatures, one by each secret. With an overlap of 0, every older secret ends at once. `conflict`: the endpoint has two valid secrets already. Then wait until the older one ends, replace both with an overlap of 0, or replace the newest with `replaces_lost` when the consumer has not received it.",
    body: rotateWebhookSecretBodySchema,
    bodyOptional: true,
    replies: { 200: { description: "The endpoint, with its new secret.", schema: newEndpointSchema } },
    errors: ["not_found", "conflict"],
    handler: rotateWebhookSecret,
  }),
];
