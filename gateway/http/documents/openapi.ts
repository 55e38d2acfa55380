/** Makes the OpenAPI 3.1 document from the route table and the schemas. It is checked in as `openapi.json`. */
import { z } from "zod";
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from "zod-openapi";
import { TEST_EVENT_TYPE } from "../../../services/bus/messages/webhook-deliveries.ts";
import { VERSION } from "../../../services/runtime/version.ts";
import {
  SIGNATURE_DESCRIPTION,
  SIGNATURE_HEADER,
  WEBHOOK_EVENTS,
  type WebhookEvent,
} from "../../api/robotics/webhook-events.ts";
import { ERRORS, PUBLISHED_ERROR_CODES } from "../errors.ts";

import { EFFECTIVE_HEADER } from "../response.ts";
import { bodyTypesOf, pathParameters, type ReplyFacts, type Route, TAGS, type Tag } from "../route.ts";
import { errorBodySchema } from "../shared-schemas.ts";
import { ErrorReplies } from "./error-replies.ts";

const TAG_DESCRIPTIONS: Readonly<Record<Tag, string>> = {
  device: "What a smart POS companion or a customer display calls.",
  session: "Logging in and out, for people and their programs.",
  cashier: "Orders, the station's lease, and collections.",
  backoffice: "Places, devices, people, payment providers, robotics and the audit log, for the owner.",
  robotics: "What the fleets that carry out serving tasks call.",
  provider: "What a payment provider calls.",
  reconciliation: "Statements of providers and banks, and issues about payments, for the operator who resolves them.",
  platform: "What the operator of the installation calls with the platform key.",
  service: "The gateway itself.",
};

const INTRODUCTION = `Third-party devices take part in collecting restaurant payments, but never decide about amounts or about what is paid: a device shows, launches and reports; a cashier attests; every amount comes from the service.

Devices send their credential as a bearer token and may make one request a second, ten at once. All requests of a credential count equally and together, also those answered 304 or with an error: a poll every two seconds and a heartbeat every ten leave room for a report. A robotics consumer may make five requests a second, thirty at once. Paths end in a slash; without it the answer is 404 \`trailing_slash_missing\`, which names the right path and never redirects. Dates and moments in requests are of the years 1900 to 2199. Every error has the same body, \`ApiError\`; its \`code\` is from a closed list, which the schema \`ErrorCode\` explains.`;

/**
 * Adds the examples that zod leaves out when a schema transforms its input: they show what a client sends.
 */
const keepExamples: ZodOpenApiOverride = ({ zodSchema, jsonSchema, io }) => {
  const examples = z.globalRegistry.get(zodSchema)?.examples;
  if (io === "input" && Array.isArray(examples)) jsonSchema.examples ??= examples;
};

const TAKEN_OR_GONE = {
  "2XX": {
    description: "Accepted. Answer at once and work afterwards: an attempt, with its answer, ends after ten seconds.",
  },
  "410": { description: "The target no longer exists: the endpoint is disabled at once." },
};

/** How this service interprets the answers to a webhook. */
const ANSWERS = {
  ...TAKEN_OR_GONE,
  default: {
    description:
      "Not accepted, redirects included: tried again after about 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 6 h, 12 h and 24 h, or later when `Retry-After` asks for it, up to an hour.",
  },
};

/** The service does not repeat a test, because the owner waits for its result. */
const ANSWERS_TO_TEST = {
  ...TAKEN_OR_GONE,
  default: { description: "Not accepted, redirects included: the owner sees the answer, and it is not tried again." },
};

const WEBHOOK_SECURITY_SCHEME = {
  type: "apiKey",
  in: "header",
  name: SIGNATURE_HEADER,
  description: SIGNATURE_DESCRIPTION,
} as const;

const effective = z.literal(false).meta({
  description: "The change is stored. It takes effect by itself, as soon as the relay delivers it.",
});
const noBodySchema = z.object({ effective }).meta({ id: "NotYetEffective", examples: [{ effective: false }] });

const STORED =
  "The change is stored, and not yet effective: gateways and stations still act as before. It takes effect by itself. After that, a repetition of the request gets the usual answer, if it can be repeated.";
const headerSchema = z.object({
  [EFFECTIVE_HEADER]: z.literal("false").meta({ description: `Always there in this answer. ${STORED}` }),
});
const optionalHeaderSchema = z.object({
  [EFFECTIVE_HEADER]: z.literal("false").optional().meta({
    description: `Only there while the new resource is stored but not yet known at every gateway and station. Until then, a request that names it can be refused as unknown. It becomes known by itself.`,
  }),
});

/** The success answers of a route by status, including the answers to a change that is not yet effective. */
function repliesOf(route: Route): Readonly<Record<string, ReplyFacts>> {
  if (route.awaitsEffect !== true) return route.replies;
  const { 201: created, ...others } = route.replies;
  const done = others[200] ?? others[204];
  return {
    ...others,
    ...(created === undefined
      ? {}
      : { 201: { ...created, headers: created.headers?.extend(optionalHeaderSchema.shape) ?? optionalHeaderSchema } }),
    ...(done === undefined
      ? {}
      : { 202: { description: STORED, schema: notYetEffectiveSchema(done.schema), headers: headerSchema } }),
  };
}

/** By the schema of the effective answer, so that operations with the same answer also share the other schema. */
const extended = new Map<z.ZodType, z.ZodObject>();

function notYetEffectiveSchema(schema: z.ZodType | null): z.ZodObject {
  if (schema === null) return noBodySchema;
  const known = extended.get(schema);
  if (known !== undefined) return known;
  const { id, examples } = schema.meta() ?? {};
  if (!(schema instanceof z.ZodObject) || id === undefined || !Array.isArray(examples) || examples.length === 0)
    throw new Error("The answer of a route with `awaitsEffect` is an object with a name and an example.");
  const made = schema.extend({ effective }).meta({
    id: `${id}NotYetEffective`,
    examples: examples.map((example) => ({ ...(example as object), effective: false })),
  });
  extended.set(schema, made);
  return made;
}

/** The document of these routes, without the undocumented ones. */
export function buildDocument(routes: readonly Route[]) {
  const errors = new ErrorReplies();
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const route of routes.filter((row) => row.undocumented !== true)) {
    paths[route.path] ??= {};
    (paths[route.path] as Record<string, ZodOpenApiOperationObject>)[route.method.toLowerCase()] = operationOf(
      route,
      errors,
    );
  }
  return createDocument(
    {
      openapi: "3.1.0",
      info: {
        title: "Device Payments",
        version: VERSION,
        description: INTRODUCTION,
        contact: { name: "The operator of this installation" },
        license: { name: "Proprietary", identifier: "LicenseRef-Proprietary" },
      },
      servers: [{ url: "/", description: "This gateway." }],
      tags: [
        ...TAGS.map((name) => ({ name, description: TAG_DESCRIPTIONS[name] })),
        { name: "webhook", description: "What this service calls at the endpoints of robotics consumers." },
      ],
      paths,
      webhooks: webhookOperations(),
      components: {
        schemas: { ApiError: errorBodySchema },
        responses: errors.components as Record<string, ZodOpenApiResponseObject>,
        securitySchemes: {
          deviceCredential: {
            type: "http",
            scheme: "bearer",
            description: "The credential that enroll returned once.",
          },
          consumerCredential: {
            type: "http",
            scheme: "bearer",
            description:
              "The credential that the owner saw once, when the robotics consumer was created or its credential reset.",
          },
          webhookSignature: WEBHOOK_SECURITY_SCHEME,
          platformKey: {
            type: "http",
            scheme: "bearer",
            description: "The gateway's setting PLATFORM_KEY; without it these paths do not exist.",
          },
          sessionBearer: { type: "http", scheme: "bearer", description: "The token that logging in returned once." },
          sessionCookie: {
            type: "apiKey",
            in: "cookie",
            name: "dp_session",
            description: "For the service's own pages; requests from other origins are refused.",
          },
        },
      },
      "x-error-codes": Object.fromEntries(
        PUBLISHED_ERROR_CODES.map((code) => {
          const { status, sentence, retryable, moneyMayHaveMoved, cashierAction } = ERRORS[code];
          return [
            code,
            {
              status,
              meaning: sentence,
              retryable,
              money_may_have_moved: moneyMayHaveMoved,
              cashier_action: cashierAction ?? null,
            },
          ];
        }),
      ),
    },
    { override: keepExamples },
  );
}

function operationOf(route: Route, errors: ErrorReplies): ZodOpenApiOperationObject {
  const names = pathParameters(route.path);
  const hasParameters = names.length > 0 || route.query !== undefined || route.headers !== undefined;
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    security: securityOf(route),
    ...(hasParameters
      ? {
          requestParams: {
            ...(names.length > 0 ? { path: pathSchema(names) } : {}),
            ...(route.query === undefined ? {} : { query: route.query as z.ZodObject }),
            ...(route.headers === undefined ? {} : { header: route.headers }),
          },
        }
      : {}),
    ...(route.rawBody === true
      ? {
          requestBody: { required: true, content: { "application/json": { schema: route.signedBody ?? z.unknown() } } },
        }
      : {}),
    ...(route.streamsBody === true
      ? {
          requestBody: {
            required: true,
            content: {
              "application/octet-stream": {
                schema: z.string().meta({ format: "binary", examples: ["The bytes of a file."] }),
              },
            },
          },
        }
      : {}),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: route.bodyOptional !== true,
            content: Object.fromEntries(bodyTypesOf(route).map((type) => [type, { schema: route.body as z.ZodType }])),
          },
        }),
    responses: responsesOf(route, errors),
  };
}

/** The description of every id in a path, and the answer that contains it. */
const PATH_IDS: Readonly<Record<string, string>> = {
  account_id:
    "The statement account's id. The list of accounts shows it, and so does the answer that created the account.",
  artifact_id:
    "The certification artifact's id. The list of artifacts shows it, and so does the answer that recorded the run.",
  closing_id: "The closing's id. The list of closings shows it, and so does the answer that closed the period.",
  code_id:
    "The enrollment code's id. The list of the device's enrollment codes shows it, and so does the answer that issued the code.",
  config_id:
    "The provider config's id. The owner's list of provider configs shows it, and so does the answer that created the config.",
  consumer_id:
    "The robotics consumer's id. The owner's list of robotics consumers shows it, and so does the answer that created the consumer.",
  delivery_id: "The webhook delivery's id. The list of webhook deliveries shows it, and the webhook itself carries it.",
  device_id:
    "The device's id. The owner's list of devices shows it, and so does the answer that registered the device.",
  endpoint_id:
    "The webhook endpoint's id. The owner's list of webhook endpoints shows it, and so does the answer that created the endpoint.",
  filial_id: "The filial's id. The owner's list of filials shows it, and so does the answer that created the filial.",
  intent_id: "The intent's id. The answer that created the intent shows it, and so does the station's list of intents.",
  item_id: "The item's id. The owner's list of the catalogue shows it, and so does the answer that added the item.",
  issue_id: "The issue's id. The list of issues shows it.",
  order_id: "The order's id. The station's list of orders shows it, and so does the answer that created the order.",
  organization_id:
    "The organization's id. The list of organizations shows it, and so does the answer that created the organization.",
  import_id:
    "The id of an import of a statement file. The list of imports shows it, and so does the answer to the upload.",
  mapping_id:
    "The id of one version of a mapping. The list of mappings shows it, and so does the answer that stored it.",
  test_id: "The id of a test of a mapping. The answer that started the test shows it.",
  conformance_run_id:
    "The conformance run's id. The list of runs shows it, and so does the answer that started the run.",
  run_id: "The reconciliation run's id. The list of runs shows it, and so does the answer that started the run.",
  station_id: "The station's id. The list of stations shows it, for a cashier and for the owner.",
  task_id: "The serving task's id. The list of serving tasks shows it, and each webhook about the task carries it.",
  sandbox_id: "The sandbox's id. The owner's list of sandboxes shows it, and so does the answer that seeded it.",
  user_id: "The user's id. The owner's list of users shows it, and so does the answer that created the user.",
};

function pathSchema(names: readonly string[]): z.ZodObject {
  return z.object(Object.fromEntries(names.map((name) => [name, idParameter(name)])));
}

function idParameter(name: string): z.ZodType {
  const description = PATH_IDS[name];
  if (description === undefined) throw new Error(`Describe the path parameter ${name} in PATH_IDS.`);
  return z
    .int()
    .positive()
    .meta({ description, examples: [42] });
}

function securityOf(route: Route): Record<string, string[]>[] {
  switch (route.who.kind) {
    case "anyone":
      return [];
    case "device":
      return [{ deviceCredential: [] }];
    case "consumer":
      return [{ consumerCredential: [] }];
    case "session":
      return [{ sessionBearer: [] }, { sessionCookie: [] }];
    case "platform":
      return [{ platformKey: [] }];
  }
}

/** Polls only repeat an id that the client chose, because the gateway does not log single polls. */
function requestIdHeader(route: Route): z.ZodObject {
  const isPoll = route.poll !== undefined;
  const description = isPoll
    ? "The client's own `X-Request-Id`; only there when the client sent one."
    : "The client's own `X-Request-Id`, or a new one.";
  const id = z.string();
  return z.object({ "X-Request-Id": (isPoll ? id.optional() : id).meta({ description }) });
}

function responsesOf(route: Route, errors: ErrorReplies): ZodOpenApiResponsesObject {
  const good = Object.entries(repliesOf(route)).map(([status, reply]) => [status, goodReply(route, reply)] as const);
  return { ...errors.of(route), ...Object.fromEntries(good) };
}

function goodReply(route: Route, reply: ReplyFacts) {
  return {
    description: reply.description,
    headers: z.object({ ...requestIdHeader(route).shape, ...reply.headers?.shape }),
    ...(reply.schema === null
      ? {}
      : {
          content: {
            "application/json": {
              schema: reply.schema,
              ...(reply.examples === undefined ? {} : { examples: reply.examples }),
            },
            ...(reply.textType === undefined ? {} : { [reply.textType]: { schema: z.string() } }),
          },
        }),
  };
}

/** The bytes that are checked in. */
export function documentText(document: ReturnType<typeof buildDocument>): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** The `webhooks` of the document: the requests of this service to a consumer's endpoint. */
function webhookOperations(): ZodOpenApiPathsObject {
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
