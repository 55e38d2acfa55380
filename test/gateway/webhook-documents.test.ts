/** The documents about webhooks: made from the schemas of the messages, equal to the contract, accepted by linters. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import formats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { ASYNCAPI_FILE, OPENAPI_FILE } from "../../gateway/api/meta/pages.ts";
import { SIGNATURE_HEADER, signatureHeaderSchema, WEBHOOK_EVENTS } from "../../gateway/api/robotics/webhook-events.ts";
import { asyncApiText } from "../../gateway/http/documents/asyncapi.ts";
import { ROBOTICS_EVENT_TYPES } from "../../services/bus/messages/robotics-events.ts";
import { DELIVERY_EVENT_TYPES } from "../../services/bus/messages/webhook-deliveries.ts";
import { SIGNATURE_HEADER as SENT_HEADER, signatureHeader } from "../../services/webhook-signer/signing.ts";
import { runProgram } from "../support/running-program.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const text = readFileSync(ASYNCAPI_FILE, "utf8");

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly const?: string;
}
interface Message {
  readonly name: string;
  readonly payload: { readonly $ref: string };
  readonly examples: readonly { readonly payload: unknown; readonly headers: Readonly<Record<string, string>> }[];
}
const asyncApi = JSON.parse(text) as {
  readonly asyncapi: string;
  readonly channels: Record<string, { readonly messages: Record<string, { readonly $ref: string }> }>;
  readonly operations: Record<string, { readonly action: string; readonly messages: readonly { $ref: string }[] }>;
  readonly components: { readonly messages: Record<string, Message>; readonly schemas: Record<string, Schema> };
};
interface Webhook {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly requestBody: {
    readonly content: {
      readonly "application/json": {
        readonly schema: Schema;
        readonly examples: Record<string, { readonly value: unknown }>;
      };
    };
  };
}
const openApi = JSON.parse(readFileSync(OPENAPI_FILE, "utf8")) as {
  readonly webhooks: Record<string, Record<string, Webhook>>;
  readonly components: { readonly schemas: Record<string, Schema>; readonly securitySchemes: Record<string, object> };
};

const messages = Object.values(asyncApi.components.messages);
const resolved = (schemas: Record<string, Schema>, schema: Schema | undefined): Schema =>
  schema?.$ref === undefined ? (schema ?? {}) : (schemas[schema.$ref.split("/").at(-1) as string] ?? {});

/** The payload's fields in the contract, by type of event (contract, "Payload"). */
const ENDED = ["task_id", "display_number", "leg", "status"];
const PAYLOADS: Record<(typeof DELIVERY_EVENT_TYPES)[number], readonly string[]> = {
  "serving_task.offered": [...ENDED, "expires_at"],
  "serving_task.cancelled": ENDED,
  "serving_task.expired": ENDED,
  "robotics.paused": ["filial_id"],
  "robotics.resumed": ["filial_id"],
  "webhook.test": ["endpoint_id"],
};
const ENVELOPE = ["delivery_id", "event_type", "created_at", "payload"];

function expectExactly(schema: Schema, fields: readonly string[], about: string): void {
  expect(Object.keys(schema.properties ?? {}).toSorted(), about).toEqual(fields.toSorted());
  expect(schema.required?.toSorted(), about).toEqual(fields.toSorted());
  expect(schema.additionalProperties, about).toBe(false);
}

describe("the AsyncAPI document of webhooks", () => {
  it("equals the schemas' document; after a change run `npm run openapi`", () => {
    expect(text === asyncApiText()).toBe(true);
  });

  it("one channel of AsyncAPI 3, on which this service sends each type of event", () => {
    expect(asyncApi.asyncapi).toBe("3.0.0");
    expect(Object.keys(asyncApi.channels)).toHaveLength(1);
    const operations = Object.values(asyncApi.operations);
    expect(operations.map(({ action }) => action)).toEqual(DELIVERY_EVENT_TYPES.map(() => "send"));
    expect(messages.map(({ name }) => name).toSorted()).toEqual(DELIVERY_EVENT_TYPES.toSorted());
    expect(DELIVERY_EVENT_TYPES).toEqual(expect.arrayContaining([...ROBOTICS_EVENT_TYPES]));
  });

  it.each(Object.entries(PAYLOADS))("the event %s: exactly the contract's fields", (eventType, fields) => {
    const { schemas } = asyncApi.components;
    const envelope = resolved(schemas, messages.find(({ name }) => name === eventType)?.payload);
    expectExactly(envelope, ENVELOPE, eventType);
    expect(envelope.properties?.["event_type"]?.const).toBe(eventType);
    expectExactly(resolved(schemas, envelope.properties?.["payload"]), fields, eventType);
  });

  it("the examples: fit the document's schemas and the code's schemas", () => {
    const ajv = new Ajv({ strict: false, allErrors: true });
    formats.default(ajv);
    ajv.addSchema({ components: asyncApi.components }, "asyncapi");
    for (const { name, payload, examples } of messages) {
      const check = ajv.compile({ $ref: `asyncapi${payload.$ref}` });
      const event = WEBHOOK_EVENTS.find(({ eventType }) => eventType === name);
      for (const example of examples) {
        expect(check(example.payload), `${name} ${JSON.stringify(check.errors)}`).toBe(true);
        expect(event?.envelope.safeParse(example.payload).success, name).toBe(true);
        expect(signatureHeaderSchema.safeParse(example.headers[SIGNATURE_HEADER]).success, name).toBe(true);
      }
      const bad = { ...(examples[0]?.payload as object), manifest: [] };
      expect(check(bad), `${name} accepts a manifest`).toBe(false);
    }
  });
});

describe("the header of a webhook's signature", () => {
  it("has the documented name and format, with one secret and with two", () => {
    expect(SIGNATURE_HEADER).toBe(SENT_HEADER);
    const secrets = ["whsec_one", "whsec_two"];
    for (const live of [secrets.slice(1), secrets]) {
      const header = signatureHeader(live, { body: "{}", nowMs: 1_795_176_000_000 });
      expect(signatureHeaderSchema.safeParse(header).success, header).toBe(true);
    }
    expect(openApi.components.securitySchemes["webhookSignature"]).toMatchObject({ in: "header", name: SENT_HEADER });
  });
});

describe("the OpenAPI document's webhooks", () => {
  it("the same types of events, each a signed POST", () => {
    expect(Object.keys(openApi.webhooks).toSorted()).toEqual(DELIVERY_EVENT_TYPES.toSorted());
    for (const item of Object.values(openApi.webhooks)) {
      expect(Object.keys(item)).toEqual(["post"]);
      expect(item["post"]?.security).toEqual([{ webhookSignature: [] }]);
    }
    const ids = Object.values(openApi.webhooks).map((item) => item["post"]?.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it.each(Object.entries(PAYLOADS))("the event %s: exactly the contract's fields", (eventType, fields) => {
    const { schemas } = openApi.components;
    const body = openApi.webhooks[eventType]?.["post"]?.requestBody.content["application/json"];
    const envelope = resolved(schemas, body?.schema);
    expectExactly(envelope, ENVELOPE, eventType);
    expectExactly(resolved(schemas, envelope.properties?.["payload"]), fields, eventType);
    const event = WEBHOOK_EVENTS.find((known) => known.eventType === eventType);
    expect(event?.envelope.safeParse(body?.examples[eventType]?.value).success).toBe(true);
  });
});

/** Each linter runs once for both documents, because its start takes longer than the check of a document. */
describe("the linters of the AsyncAPI documents", () => {
  const lint = async (command: string, args: string[]): Promise<{ exit: unknown; output: string }> => {
    const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true", CI: "true" };
    const program = runProgram(join(CHECKOUT, "node_modules", ".bin", command), args, { cwd: CHECKOUT, env });
    return { exit: await program.ended, output: program.output() };
  };
  const files = ["asyncapi", "asyncapi-bus"].map((name) => `gateway/http/documents/${name}.json`);

  it("Redocly finds no error and no warning", async () => {
    const config = "test/gateway/redocly-asyncapi.yaml";
    const { exit, output } = await lint("redocly", ["lint", ...files, "--config", config, "--format", "json"]);
    expect(output.match(/"problems": \[\]/g), output).toHaveLength(files.length);
    expect(exit, output).toBe(0);
  });

  it("Spectral finds no error and no warning", async () => {
    const rules = "test/gateway/spectral-asyncapi.yaml";
    const { exit, output } = await lint("spectral", ["lint", ...files, "-r", rules, "-F", "warn"]);
    expect(output).toMatch(/0 errors, 0 warnings|No results with a severity of 'warn' or higher found!/);
    expect(exit, output).toBe(0);
  });
});
