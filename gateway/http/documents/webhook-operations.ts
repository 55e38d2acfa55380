/** The `webhooks` of the OpenAPI document: what this service calls at a consumer's endpoint. */
import type { ZodOpenApiPathsObject } from "zod-openapi";
import { TEST_EVENT_TYPE } from "../../../services/bus/messages/webhook-deliveries.ts";
import {
  SIGNATURE_DESCRIPTION,
  SIGNATURE_HEADER,
  WEBHOOK_EVENTS,
  type WebhookEvent,
} from "../../api/robotics/webhook-events.ts";

const TAKEN_OR_GONE = {
  "2XX": {
    description: "Taken. Answer at once and work afterwards: an attempt ends after ten seconds, answer and all.",
  },
  "410": { description: "Nobody is here any more: the endpoint is disabled at once." },
};

/** What the answers to a webhook mean to the service that sent it. */
const ANSWERS = {
  ...TAKEN_OR_GONE,
  default: {
    description:
      "Not taken, redirects included: tried again after about 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h, 12 h and 24 h, or later when `Retry-After` asks for it, up to an hour.",
  },
};

/** The owner waits for what comes of a test, so it is not tried again. */
const ANSWERS_TO_TEST = {
  ...TAKEN_OR_GONE,
  default: { description: "Not taken, redirects included: the owner is shown the answer, and it is not tried again." },
};

export const WEBHOOK_SECURITY_SCHEME = {
  type: "apiKey",
  in: "header",
  name: SIGNATURE_HEADER,
  description: SIGNATURE_DESCRIPTION,
} as const;

export function webhookOperations(): ZodOpenApiPathsObject {
  return Object.fromEntries(WEBHOOK_EVENTS.map((event) => [event.eventType, pathItem(event)]));
}

function pathItem({ eventType, name, summary, description, envelope, envelopeExample }: WebhookEvent) {
  return {
    post: {
      operationId: `webhook_${name.replaceAll(/(?!^)[A-Z]/g, "_$&").toLowerCase()}`,
      tags: ["webhook"],
      summary,
      description,
      security: [{ webhookSignature: [] }],
      requestBody: {
        required: true,
        content: {
          "application/json": { schema: envelope, examples: { [eventType]: { summary, value: envelopeExample } } },
        },
      },
      responses: eventType === TEST_EVENT_TYPE ? ANSWERS_TO_TEST : ANSWERS,
    },
  };
}
