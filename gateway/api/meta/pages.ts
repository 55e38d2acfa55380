/** The OpenAPI and AsyncAPI documents and the API page, served from memory. */
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { anyone, type Route, route } from "../../http/route.ts";
import { staticFile } from "./static-file.ts";

/** Where the documents are checked in. */
export const OPENAPI_FILE = new URL("../../http/documents/openapi.json", import.meta.url);
export const ASYNCAPI_FILE = new URL("../../http/documents/asyncapi.json", import.meta.url);

const UNCHANGED = {
  description:
    "Unchanged: the `ETag` that was sent in `If-None-Match` still is the current one. No body; keep what the last 200 answer said.",
  schema: null,
};

/** A browser that opens the service gets the API page. */
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
    // 308 keeps the method.
    handler: () => ({ status: 308, headers: { Location: "/docs/" } }),
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

export const pageRoutes: readonly Route[] = [
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
      304: UNCHANGED,
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
      304: UNCHANGED,
    },
    errors: [],
    handler: staticFile(() => ASYNCAPI_FILE, "application/json"),
  }),
  toPage("/", "redirectRoot"),
  toPage("/docs", "redirectDocs"),
  page("/docs/", "getDocs", () => new URL("../../web/docs.html", import.meta.url), "text/html; charset=utf-8"),
  page(
    "/docs/page.js",
    "getDocsScript",
    () => new URL("../../web/docs.js", import.meta.url),
    "text/javascript; charset=utf-8",
  ),
  page("/docs/swagger-ui.css", "getDocsStyles", () => swaggerFile("swagger-ui.css"), "text/css; charset=utf-8"),
  page("/docs/swagger-ui.js", "getDocsUi", () => swaggerFile("swagger-ui-bundle.js"), "text/javascript; charset=utf-8"),
];
