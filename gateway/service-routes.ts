/** The gateway's own routes: health, the OpenAPI and AsyncAPI documents and the API page. */
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { healthSchema, readinessSchema } from "./contract/service.ts";
import { health, ready } from "./handlers/meta/health.ts";
import { redirectTo } from "./handlers/meta/redirect.ts";
import { staticFile } from "./handlers/meta/static-file.ts";
import { ASYNCAPI_FILE } from "./http/documents/asyncapi-location.ts";
import { OPENAPI_FILE } from "./http/documents/openapi-location.ts";
import { anyone, type Route, route } from "./http/route.ts";

export const serviceRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/healthz",
    operation: "getHealth",
    tag: "service",
    summary: "Whether the process is alive",
    description: "Says nothing about what it depends on; `/readyz` does.",
    who: anyone,
    replies: { 200: { description: "It is.", schema: healthSchema } },
    errors: [],
    quiet: true,
    needsNoSlot: true,
    handler: health,
  }),
  route({
    method: "GET",
    path: "/readyz",
    operation: "getReadiness",
    tag: "service",
    summary: "Whether this gateway should be sent requests",
    description:
      "By dependency. The bus and the feeds that this gateway answers from are required. What stands behind the bus is told for monitors and decides nothing here, because all gateways share it; it is asked at most once a second, and the last answer is told when a new one is slow.",
    who: anyone,
    replies: {
      200: { description: "Ready.", schema: readinessSchema },
      503: {
        description: "Not ready: a required dependency is not, and answers that depend on it are refused.",
        schema: readinessSchema,
      },
    },
    errors: [],
    quiet: true,
    needsNoSlot: true,
    handler: ready,
  }),
  route({
    method: "GET",
    path: "/openapi.json",
    operation: "getOpenapi",
    tag: "service",
    summary: "This document",
    description: "With an ETag; send it back as `If-None-Match`.",
    who: anyone,
    replies: {
      200: { description: "OpenAPI 3.1.", schema: z.looseObject({ openapi: z.string() }).meta({ id: "OpenApi" }) },
      304: {
        description:
          "Unchanged: the `ETag` that was sent in `If-None-Match` still is the current one. No body; keep what the last 200 answer said.",
        schema: null,
      },
    },
    errors: [],
    handler: staticFile(() => OPENAPI_FILE, "application/json"),
  }),
  route({
    method: "GET",
    path: "/asyncapi.json",
    operation: "getAsyncapi",
    tag: "service",
    summary: "The webhooks as an AsyncAPI document",
    description: "What is sent to robotics consumers, for tools that know AsyncAPI. With an ETag, as this document.",
    who: anyone,
    replies: {
      200: { description: "AsyncAPI 3.", schema: z.looseObject({ asyncapi: z.string() }).meta({ id: "AsyncApi" }) },
      304: {
        description:
          "Unchanged: the `ETag` that was sent in `If-None-Match` still is the current one. No body; keep what the last 200 answer said.",
        schema: null,
      },
    },
    errors: [],
    handler: staticFile(() => ASYNCAPI_FILE, "application/json"),
  }),
  toPage("/", "redirectRoot"),
  toPage("/docs", "redirectDocs"),
  page("/docs/", "getDocs", () => new URL("web/docs.html", import.meta.url), "text/html; charset=utf-8"),
  page(
    "/docs/page.js",
    "getDocsScript",
    () => new URL("web/docs.js", import.meta.url),
    "text/javascript; charset=utf-8",
  ),
  page("/docs/swagger-ui.css", "getDocsStyles", () => swaggerFile("swagger-ui.css"), "text/css; charset=utf-8"),
  page("/docs/swagger-ui.js", "getDocsUi", () => swaggerFile("swagger-ui-bundle.js"), "text/javascript; charset=utf-8"),
];

/** Whoever opens the service in a browser wants to see what it can do. */
function toPage(path: "/" | "/docs", operation: string): Route {
  return route({
    method: "GET",
    path,
    operation,
    tag: "service",
    summary: "Leads to the API page",
    who: anyone,
    replies: { 308: { description: "To `/docs/`.", schema: null } },
    errors: [],
    undocumented: true,
    handler: redirectTo("/docs/"),
  });
}

/** The API page comes whole from here, without any outside host. */
function page(path: `/docs/${string}`, operation: string, file: () => URL | string, contentType: string): Route {
  return route({
    method: "GET",
    path,
    operation,
    tag: "service",
    summary: "The API page",
    who: anyone,
    replies: { 200: { description: "The file.", schema: null } },
    errors: [],
    undocumented: true,
    handler: staticFile(file, contentType),
  });
}

function swaggerFile(name: string): string {
  return fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`));
}
