/**
 * The AsyncAPI 3 document of the webhooks: the channel is a consumer's endpoint, and this service sends. It is made
 * from the schemas of the sent events, and checked in as `asyncapi.json`.
 */

import { z } from "zod";
import { VERSION } from "../../../services/runtime/version.ts";
import { servingTaskLegSchema, servingTaskStatusSchema } from "../../api/robotics/serving-tasks.ts";
import {
  EXAMPLE_SIGNING,
  SIGNATURE_DESCRIPTION,
  SIGNATURE_HEADER,
  signatureHeaderSchema,
  WEBHOOK_EVENTS,
  type WebhookEvent,
} from "../../api/robotics/webhook-events.ts";

const DESCRIPTION = `The events that robotics consumers receive, as signed HTTPS requests to an endpoint that the owner has registered. Webhooks are optional and only make a consumer faster: the list of serving tasks is authoritative, and a consumer reads it after any event.

Events are sent at least once: one may come twice, late, or out of order; a repetition has the same \`delivery_id\`. An event that goes to several endpoints of a consumer has a different \`delivery_id\` at each endpoint. The ids of one consumer have gaps, which have no meaning. A consumer reads missed events with \`GET /api/robotics/v1/webhook-deliveries/?since_id=<last delivery_id>\`. Without a 2xx within ten seconds the service tries again, nine times over two days; an offer is never sent after its own expiry, and \`webhook.test\` is sent once.

Payloads are exact: within \`v1\` of the paths, no field is added or removed. New types of events may be added; answer an unknown type with 2xx and ignore it.`;

/** A reference to a part of the document. */
const ref = (kind: "messages" | "schemas" | "securitySchemes", name: string) => ({
  $ref: `#/components/${kind}/${name}`,
});
const CHANNEL = "consumerEndpoint";

function buildAsyncApi(): object {
  return {
    asyncapi: "3.0.0",
    id: "urn:device-payments:webhooks",
    info: {
      title: "Device Payments Webhooks",
      version: VERSION,
      description: DESCRIPTION,
      contact: { name: "The operator of this installation" },
      license: { name: "Proprietary" },
      tags: [{ name: "robotics", description: "Serving tasks, and whether robotics is paused at a filial." }],
    },
    defaultContentType: "application/json",
    servers: {
      consumer: {
        host: "{host}",
        protocol: "https",
        protocolVersion: "1.1",
        description:
          "The HTTPS server of a consumer. Its name must resolve to public addresses only, at registration and at each delivery; TLS 1.2 at least, port 443 or 8443.",
        variables: {
          host: { description: "The host of the address that the owner registered.", default: "fleet.example" },
        },
        security: [ref("securitySchemes", "webhookSignature")],
      },
    },
    channels: {
      [CHANNEL]: {
        address: "{path}",
        title: "A consumer's webhook endpoint",
        description: "The service calls the registered address itself and follows no redirect.",
        servers: [{ $ref: "#/servers/consumer" }],
        parameters: { path: { description: "Path and query of the registered address.", default: "/hooks/robotics" } },
        messages: Object.fromEntries(WEBHOOK_EVENTS.map(({ name }) => [name, ref("messages", name)])),
      },
    },
    operations: Object.fromEntries(
      WEBHOOK_EVENTS.map(({ name, summary, description }) => [
        `send${name}`,
        {
          action: "send",
          channel: { $ref: `#/channels/${CHANNEL}` },
          title: summary,
          summary,
          description,
          bindings: { http: { method: "POST", bindingVersion: "0.3.0" } },
          messages: [{ $ref: `#/channels/${CHANNEL}/messages/${name}` }],
        },
      ]),
    ),
    components: {
      messages: Object.fromEntries(WEBHOOK_EVENTS.map((event) => [event.name, messageOf(event)])),
      schemas: { ...jsonSchemas(), WebhookHeaders: headersSchema() },
      securitySchemes: {
        webhookSignature: {
          type: "httpApiKey",
          name: SIGNATURE_HEADER,
          in: "header",
          description: SIGNATURE_DESCRIPTION,
        },
      },
    },
  };
}

function messageOf({ eventType, name, summary, description, envelopeExample, signatureExample }: WebhookEvent) {
  return {
    name: eventType,
    title: summary,
    summary,
    description,
    contentType: "application/json",
    headers: ref("schemas", "WebhookHeaders"),
    payload: ref("schemas", `${name}Envelope`),
    examples: [
      {
        name: `${name}Example`,
        summary: `${summary}. ${EXAMPLE_SIGNING}`,
        headers: { "Content-Type": "application/json", [SIGNATURE_HEADER]: signatureExample },
        payload: envelopeExample,
      },
    ],
  };
}

function headersSchema(): object {
  return {
    type: "object",
    required: ["Content-Type", SIGNATURE_HEADER],
    properties: {
      "Content-Type": { type: "string", const: "application/json" },
      [SIGNATURE_HEADER]: withoutDialect(z.toJSONSchema(signatureHeaderSchema, { target: "draft-7" })),
    },
  };
}

/** The envelopes and their payloads by id, in AsyncAPI's dialect of JSON Schema. */
function jsonSchemas(): Record<string, object> {
  const registry = z.registry<{ id: string }>();
  for (const { envelope, payload } of WEBHOOK_EVENTS) {
    for (const schema of [envelope, payload, servingTaskLegSchema, servingTaskStatusSchema]) {
      const id = schema.meta()?.id;
      if (id === undefined) throw new Error("A schema of the AsyncAPI document has no id.");
      if (!registry.has(schema)) registry.add(schema, { id });
    }
  }
  const { schemas } = z.toJSONSchema(registry, {
    target: "draft-7",
    metadata: z.globalRegistry,
    uri: (id) => `#/components/schemas/${id}`,
  });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutDialect(schema)]));
}

/** The schema without its keys for dialect and id, which the document states once for all schemas. */
function withoutDialect({ $schema: _dialect, $id: _place, id: _id, ...schema }: Record<string, unknown>): object {
  return schema;
}

/** The bytes that are checked in. */
export const asyncApiText = (): string => `${JSON.stringify(buildAsyncApi(), null, 2)}\n`;
