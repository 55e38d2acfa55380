/**
 * The events that a consumer receives (contract, "Events"), with one envelope for each type. The OpenAPI document's `webhooks`,
 * the AsyncAPI document and the answers with deliveries use these schemas.
 */
import { createHmac } from "node:crypto";
import { z } from "zod";
import { eventTime, ROBOTICS_PAYLOADS } from "../../../services/bus/messages/robotics-events.ts";
import { DELIVERY_EVENT_TYPES, TEST_EVENT_TYPE } from "../../../services/bus/messages/webhook-deliveries.ts";
import { idSchema } from "../../http/shared-schemas.ts";
import { servingTaskLegSchema, servingTaskStatusSchema } from "./serving-tasks.ts";

/** The header's name as the contract writes it. */
export const SIGNATURE_HEADER = "X-Service-Robotics-Signature";
/** The secret and the time of the examples' signatures, as in `clients/webhook-vectors.json`. */
export const EXAMPLE_SECRET = "whsec_3vJt0m4yT8nq1Qe5bW2xK7cZ9uLhRfGdPsAaYoEiN6M";
const EXAMPLE_UNIX_SECONDS = 1_795_176_000;
export const SIGNATURE_DESCRIPTION =
  "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over `<t>.<raw body>`, keyed with the endpoint's secret as it was shown. While a secret is being replaced there are two `v1=`, one for each. Compare in constant time, and refuse a `t` that is more than five minutes before or after now.";
/** The payloads by name. Cancelled and expired tasks have the same fields, and so do pauses and resumptions. */
const namedEnums = { leg: servingTaskLegSchema, status: servingTaskStatusSchema };
export const offeredTaskSchema = ROBOTICS_PAYLOADS["serving_task.offered"]
  .extend(namedEnums)
  .meta({ id: "OfferedTaskPayload" });
export const endedTaskSchema = ROBOTICS_PAYLOADS["serving_task.cancelled"]
  .extend(namedEnums)
  .meta({ id: "EndedTaskPayload" });
export const filialPayloadSchema = ROBOTICS_PAYLOADS["robotics.paused"].meta({ id: "FilialPayload" });
export const testPayloadSchema = z.strictObject({ endpoint_id: idSchema }).meta({ id: "TestPayload" });

const createdAt = eventTime.meta({
  description: "When the event happened, in UTC with milliseconds. It is the same in each attempt.",
  examples: ["2026-11-20T12:00:00.000Z"],
});
const deliveryId = idSchema.meta({
  description:
    "The delivery's id. It is the same in each attempt, and `since_id` counts by it. An event that goes to several endpoints is a separate delivery at each, and the ids of one consumer have gaps.",
});

type EventType = (typeof DELIVERY_EVENT_TYPES)[number];
interface EventFacts {
  readonly eventType: EventType;
  /** The name of its schema, in CamelCase. */
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly payload: z.ZodType;
  readonly example: object;
}
export interface WebhookEvent extends EventFacts {
  readonly envelope: z.ZodType;
  readonly envelopeExample: object;
  /** The signature of that example as one line without spaces, with its fields in the same order. */
  readonly signatureExample: string;
}

const task = { task_id: 42, display_number: 7, leg: "kitchen_to_table" };
const FACTS: Readonly<Record<EventType, Omit<EventFacts, "eventType">>> = {
  "serving_task.offered": {
    name: "ServingTaskOffered",
    summary: "A task is offered to the fleet",
    description:
      "Accept it before `expires_at`, or leave it to expire. The service never sends the event after the task's expiry. Read the task for what to carry and where; the event has neither.",
    payload: offeredTaskSchema,
    example: { ...task, status: "offered", expires_at: "2026-11-20T12:02:00.000Z" },
  },
  "serving_task.cancelled": {
    name: "ServingTaskCancelled",
    summary: "A task was cancelled",
    description: "If the fleet works on the task, it stops.",
    payload: endedTaskSchema,
    example: { ...task, status: "cancelled" },
  },
  "serving_task.expired": {
    name: "ServingTaskExpired",
    summary: "An offer expired",
    description: "The fleet did not accept the task in time, and cannot accept it any more.",
    payload: endedTaskSchema,
    example: { ...task, status: "expired" },
  },
  "robotics.paused": {
    name: "RoboticsPaused",
    summary: "Robotics is paused at the filial",
    description: "No task is offered or accepted until it is resumed; accepted tasks continue.",
    payload: filialPayloadSchema,
    example: { filial_id: 42 },
  },
  "robotics.resumed": {
    name: "RoboticsResumed",
    summary: "Robotics is resumed at the filial",
    description: "Tasks are offered and can be accepted again.",
    payload: filialPayloadSchema,
    example: { filial_id: 42 },
  },
  [TEST_EVENT_TYPE]: {
    name: "WebhookTest",
    summary: "The owner tries the endpoint",
    description: "The event is about no task. The service sends it once and does not repeat it.",
    payload: testPayloadSchema,
    example: { endpoint_id: 42 },
  },
};

/** The five events of the contract, and the test event for the owner. */
export const WEBHOOK_EVENTS: readonly WebhookEvent[] = DELIVERY_EVENT_TYPES.map((eventType) => {
  const facts = FACTS[eventType];
  const envelopeExample = {
    delivery_id: 42,
    event_type: eventType,
    created_at: "2026-11-20T12:00:00.000Z",
    payload: facts.example,
  };
  const envelope = z
    .strictObject({
      delivery_id: deliveryId,
      event_type: z.literal(eventType),
      created_at: createdAt,
      payload: facts.payload,
    })
    .meta({ id: `${facts.name}Envelope`, description: facts.summary, examples: [envelopeExample] });
  const signatureExample = signatureOf(JSON.stringify(envelopeExample));
  return { eventType, ...facts, envelope, envelopeExample, signatureExample };
});

function signatureOf(body: string): string {
  const t = EXAMPLE_UNIX_SECONDS;
  return `t=${t},v1=${createHmac("sha256", EXAMPLE_SECRET).update(`${t}.${body}`).digest("hex")}`;
}

export const signatureHeaderSchema = z
  .string()
  .regex(/^t=\d{1,12}(?:,v1=[0-9a-f]{64}){1,2}$/)
  .meta({ description: SIGNATURE_DESCRIPTION, examples: WEBHOOK_EVENTS.slice(0, 1).map((e) => e.signatureExample) });

/** The values with which a reader can reproduce the signature of an example. */
export const EXAMPLE_SIGNING = `Signed with the secret \`${EXAMPLE_SECRET}\` at \`t=${EXAMPLE_UNIX_SECONDS}\`, over the payload as one line without spaces, its fields in this order.`;
