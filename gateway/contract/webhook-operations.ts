/** The `webhooks` of the OpenAPI document: what this service calls at a consumer's endpoint. */
import type { ZodOpenApiPathsObject } from "zod-openapi";
import { SIGNATURE_DESCRIPTION, SIGNATURE_HEADER, WEBHOOK_EVENTS, type WebhookEvent } from "./webhook-events.ts";

/** What the answers to a webhook mean to the service that sent it. */
const ANSWERS = {
  "2XX": {
    description: "Taken. Answer at once and work afterwards: an attempt ends after ten seconds, answer and all.",
  },
  "410": { description: "Nobody is here any more: the endpoint is disabled at once." },
  default: {
    description:
      "Not taken, redirects included: tried again after about 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h, 12 h and 24 h, or later when `Retry-After` asks for it, up to an hour.",
  },
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
      responses: ANSWERS,
    },
  };
}
