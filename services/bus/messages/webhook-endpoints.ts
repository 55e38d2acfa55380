/** The owner's webhook endpoints (contract, "Events"). Each operation needs `organization.manage`. */
import { z } from "zod";
import { DISABLED_REASONS } from "../../../machines/webhook-breaker.ts";
import { BOUNDS } from "../bounds.ts";
import { once, repeatable } from "../operation.ts";
import { pageAfter } from "../page.ts";
import { callerSchema as caller } from "./caller.ts";
import { creationSchema as creation } from "./creation.ts";
import { attemptSchema, deliverySchema } from "./webhook-deliveries.ts";

const id = z.int().positive();

/**
 * `paused`: the owner has paused it, and deliveries wait. `disabled`: the service has disabled it for a reason, and
 * sends nothing until the owner activates it.
 */
export const ENDPOINT_STATUSES = ["active", "paused", "disabled"] as const;

export const endpointSchema = z.object({
  endpointId: id,
  consumerId: id,
  filialId: id,
  url: z.string(),
  status: z.enum(ENDPOINT_STATUSES),
  disabledReason: z.enum(DISABLED_REASONS).nullable(),
  /** Not null while the breaker is open: the service sends nothing before this time. */
  openUntilMs: z.number().nullable(),
  consecutiveFailures: z.int(),
  lastSuccessAtMs: z.number().nullable(),
  lastFailureAtMs: z.number().nullable(),
  /** When each live secret was created and when it expires; never its value. */
  secrets: z.array(z.object({ createdAtMs: z.number(), expiresAtMs: z.number().nullable() })),
  createdAtMs: z.number(),
});
export type WebhookEndpoint = z.infer<typeof endpointSchema>;
const endpointReply = z.object({ endpoint: endpointSchema });
/** Only this reply has the secret. */
const secretReply = z.object({ endpoint: endpointSchema, secret: z.string() });

export const listWebhookEndpoints = repeatable(
  "webhooks.listWebhookEndpoints",
  z.object({ caller, consumerId: id.optional(), ...pageAfter }),
  z.object({ endpoints: z.array(endpointSchema), hasMore: z.boolean() }),
);
export const getWebhookEndpoint = repeatable(
  "webhooks.getWebhookEndpoint",
  z.object({ caller, endpointId: id }),
  endpointReply,
);
/** Refuses with `webhook_target_refused` and the reason for an address that is not public. */
export const registerWebhookEndpoint = once(
  "webhooks.registerWebhookEndpoint",
  z.object({ caller, consumerId: id, url: z.string().max(BOUNDS.webhookUrlCharacters), creation: creation.optional() }),
  secretReply,
);
/**
 * Pauses or activates an endpoint. The activation of a disabled endpoint resets its failures and checks its address
 * again.
 */
export const changeWebhookEndpoint = once(
  "webhooks.changeWebhookEndpoint",
  z.object({ caller, endpointId: id, status: z.enum(["active", "paused"]) }),
  endpointReply,
);
/**
 * Generates a new secret. The service signs with both secrets until `overlapMs` is over. At most two are live: refuses
 * another rotation within the overlap with `conflict`, unless `replacesLost` ends the newest one, which the consumer has not received.
 */
export const rotateWebhookSecret = once(
  "webhooks.rotateWebhookSecret",
  z.object({
    caller,
    endpointId: id,
    overlapMs: z.int().min(0).max(BOUNDS.secretOverlapMs),
    replacesLost: z.boolean().optional(),
  }),
  secretReply,
);
/** Deletes an endpoint. The service sends no more of its deliveries, which stay readable. */
export const deleteWebhookEndpoint = once(
  "webhooks.deleteWebhookEndpoint",
  z.object({ caller, endpointId: id }),
  z.object({}),
);
/**
 * Sends one test event now, also while the breaker is open, with the same check of the address, and returns the
 * attempt. Refuses with `conflict` for a suspended consumer.
 */
export const testWebhookEndpoint = once(
  "webhooks.testWebhookEndpoint",
  z.object({ caller, endpointId: id }),
  z.object({ delivery: deliverySchema, attempt: attemptSchema }),
);
