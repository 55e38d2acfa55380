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

/** `paused` by the owner: deliveries wait. `disabled` by the service, with the reason: nothing is sent until the owner activates it. */
export const ENDPOINT_STATUSES = ["active", "paused", "disabled"] as const;

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
/** The secret is returned this once. */
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
/** `webhook_target_refused` with the reason for an address that is not public. */
export const registerWebhookEndpoint = once(
  "webhooks.registerWebhookEndpoint",
  z.object({ caller, consumerId: id, url: z.string().max(BOUNDS.webhookUrlCharacters), creation: creation.optional() }),
  secretReply,
);
/** Pauses or activates. Activating a disabled one forgets its failures and checks its address again. */
export const changeWebhookEndpoint = once(
  "webhooks.changeWebhookEndpoint",
  z.object({ caller, endpointId: id, status: z.enum(["active", "paused"]) }),
  endpointReply,
);
/** A new secret; both sign until `overlapMs` is over. At most two are live: a third rotation within the overlap is a `conflict`. */
export const rotateWebhookSecret = once(
  "webhooks.rotateWebhookSecret",
  z.object({ caller, endpointId: id, overlapMs: z.int().min(0).max(BOUNDS.secretOverlapMs) }),
  secretReply,
);
/** What was not sent yet never will be; its deliveries stay readable. */
export const deleteWebhookEndpoint = once(
  "webhooks.deleteWebhookEndpoint",
  z.object({ caller, endpointId: id }),
  z.object({}),
);
/** Sends one test event now, past the breaker, through the same guard, and returns the attempt. `conflict` for a suspended consumer. */
export const testWebhookEndpoint = once(
  "webhooks.testWebhookEndpoint",
  z.object({ caller, endpointId: id }),
  z.object({ delivery: deliverySchema, attempt: attemptSchema }),
);
