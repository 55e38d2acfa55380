/** Webhook endpoints and deliveries on the wire: what the owner registers and looks after, and what a consumer reads again. */
import { z } from "zod";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { eventTime } from "../../services/bus/messages/robotics-events.ts";
import { ATTEMPT_ERRORS, DISABLED_REASONS } from "../../services/bus/messages/webhooks.ts";
import { hasMoreAfter, hasMoreBefore, pageAfterQuery, pageBeforeQuery } from "../http/page.ts";
import { queryId } from "../http/query-number.ts";
import { idSchema, timestampSchema } from "../http/shared-schemas.ts";
import { LIMITS } from "../limits.ts";
import { webhookDeliveryStatusSchema, webhookEndpointStatusSchema, webhookEventTypeSchema } from "./enums.ts";
import {
  EXAMPLE_SECRET,
  endedTaskSchema,
  filialPayloadSchema,
  offeredTaskSchema,
  testPayloadSchema,
} from "./webhook-events.ts";

export const webhookEndpointSchema = z
  .object({
    endpoint_id: idSchema,
    consumer_id: idSchema,
    filial_id: idSchema,
    url: z.string().meta({ examples: ["https://fleet.example/hooks/robotics"] }),
    status: webhookEndpointStatusSchema.meta({
      description:
        "`paused` by the owner: deliveries wait, and offers lapse. `disabled` by the service, see `disabled_reason`: nothing is sent until the owner activates it.",
    }),
    disabled_reason: z.enum(DISABLED_REASONS).meta({ id: "WebhookDisabledReason" }).nullable().meta({
      description:
        "`gone`: the target answered 410. `failing`: no success for five days and twenty failures. Null unless disabled.",
    }),
    open_until: timestampSchema.nullable().meta({
      description:
        "After five failures in a row nothing is sent before this; no delivery's attempts are used up by it.",
    }),
    consecutive_failures: z.int().min(0),
    last_success_at: timestampSchema.nullable(),
    last_failure_at: timestampSchema.nullable(),
    secrets: z
      .array(z.object({ created_at: timestampSchema, expires_at: timestampSchema.nullable() }))
      .meta({ description: "Which are live, never what they are; two while one takes the other's place." }),
    created_at: timestampSchema,
  })
  .meta({ id: "WebhookEndpoint" });
export const webhookEndpointsSchema = z.object({
  webhook_endpoints: z.array(webhookEndpointSchema),
  has_more: hasMoreAfter,
});
export const webhookEndpointsQuerySchema = z.strictObject({
  ...pageAfterQuery,
  consumer_id: queryId().optional(),
});
export const newWebhookEndpointSchema = z
  .object({
    webhook_endpoint: webhookEndpointSchema,
    secret: z.string().meta({
      description: "What deliveries are signed with, the whole text; shown this once.",
      examples: [EXAMPLE_SECRET],
    }),
  })
  .meta({ id: "NewWebhookEndpoint" });
export const registerWebhookEndpointBodySchema = z
  .strictObject({
    consumer_id: idSchema,
    url: z.string().min(1).max(BOUNDS.webhookUrlCharacters).meta({
      description:
        "HTTPS to a public host, port 443 or 8443, without user name, password or fragment. Redirects are not followed: give the final address. The trail keeps it without its query.",
    }),
  })
  .meta({
    id: "RegisterWebhookEndpoint",
    examples: [{ consumer_id: 42, url: "https://fleet.example/hooks/robotics" }],
  });
export const changeWebhookEndpointBodySchema = z
  .strictObject({ status: z.enum(["active", "paused"]).meta({ id: "WantedEndpointStatus" }) })
  .meta({ id: "ChangeWebhookEndpoint", examples: [{ status: "paused" }] });
export const rotateWebhookSecretBodySchema = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(BOUNDS.secretOverlapMs / 1_000)
      .default(LIMITS.secretOverlapUnlessAskedSeconds)
      .meta({ description: "How long the old one signs as well; a day when left out. With 0 it ends now." }),
  })
  .meta({ id: "RotateWebhookSecret", examples: [{ overlap_seconds: 86_400 }] });

const payloadSchema = z
  .union([offeredTaskSchema, endedTaskSchema, filialPayloadSchema, testPayloadSchema])
  .meta({ description: "As the event's type has it; see `webhooks`." });
const deliveryFields = {
  delivery_id: idSchema,
  endpoint_id: idSchema.nullable().meta({
    description:
      "Where it goes; null when the consumer had no endpoint. One event has a delivery of its own for each endpoint.",
  }),
  event_type: webhookEventTypeSchema,
  status: webhookDeliveryStatusSchema.meta({
    description:
      "`pending`: it is due, or waits for its next attempt. `failed`: its attempts are used up, or its endpoint was disabled, deleted, or paused for as long as deliveries are kept; also a `webhook.test` that is under way, until it is delivered. `lapsed`: an offer that expired before it could be sent. `unsent`: the consumer had no endpoint in use; it can be read here.",
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
const offeredPayloadExample = {
  task_id: 42,
  display_number: 7,
  leg: "kitchen_to_table",
  status: "offered",
  expires_at: "2026-11-20T12:02:00.000Z",
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
  payload: offeredPayloadExample,
} as const;
/** As a consumer reads it again. */
export const webhookDeliverySchema = z
  .object(deliveryFields)
  .meta({ id: "WebhookDelivery", examples: [deliveryExample] });
export const webhookDeliveriesSchema = z
  .object({ webhook_deliveries: z.array(webhookDeliverySchema), has_more: hasMoreAfter })
  .meta({ id: "WebhookDeliveries", examples: [{ webhook_deliveries: [deliveryExample], has_more: false }] });
const filters = {
  event_type: webhookEventTypeSchema.optional(),
  status: webhookDeliveryStatusSchema.optional(),
};
export const webhookDeliveriesQuerySchema = z.strictObject({ ...pageAfterQuery, ...filters });

/** As the owner sees it: whose it is as well. */
const ownDeliveryFields = {
  ...deliveryFields,
  consumer_id: idSchema,
};
export const ownWebhookDeliverySchema = z.object(ownDeliveryFields).meta({ id: "OwnWebhookDelivery" });
export const ownWebhookDeliveriesSchema = z.object({
  webhook_deliveries: z.array(ownWebhookDeliverySchema),
  has_more: hasMoreBefore,
});
export const ownWebhookDeliveriesQuerySchema = z.strictObject({
  ...pageBeforeQuery,
  ...filters,
  endpoint_id: queryId().optional(),
  consumer_id: queryId().optional(),
});

const milliseconds = z.number().min(0).nullable();
export const webhookAttemptSchema = z
  .object({
    attempt_id: idSchema,
    started_at: timestampSchema,
    address: z.string().nullable().meta({ description: "Where it went; null for a target that was refused." }),
    dns_ms: milliseconds,
    connect_ms: milliseconds,
    tls_ms: milliseconds,
    first_byte_ms: milliseconds,
    total_ms: milliseconds,
    status: z.int().nullable().meta({ description: "The HTTP status that the target answered; only 2xx is success." }),
    error: z
      .enum(ATTEMPT_ERRORS)
      .meta({ id: "WebhookAttemptError" })
      .nullable()
      .meta({ description: "Null for a success." }),
    response_body: z.string().meta({ description: "The beginning of the answer; empty for a refused target." }),
    truncated: z.boolean().meta({ description: "Whether the answer was longer than the 16 KiB that are read of it." }),
    manual: z.boolean().meta({ description: "Asked for by somebody instead of due by the schedule." }),
  })
  .meta({ id: "WebhookAttempt" });
export const ownWebhookDeliveryDetailSchema = z
  .object({
    webhook_delivery: ownWebhookDeliverySchema,
    attempts: z.array(webhookAttemptSchema).meta({ description: "Newest first." }),
  })
  .meta({ id: "OwnWebhookDeliveryDetail" });
export const webhookTestSchema = z
  .object({ webhook_delivery: ownWebhookDeliverySchema, attempt: webhookAttemptSchema })
  .meta({ id: "WebhookTestResult" });
