/** The OpenAPI and AsyncAPI documents and the API page, served from memory. */
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { anyone, route } from "../../http/route.ts";
import { staticFile } from "./static-file.ts";

/** Where the documents are checked in. */
export const OPENAPI_FILE = new URL("../../http/documents/openapi.json", import.meta.url);
export const ASYNCAPI_FILE = new URL("../../http/documents/asyncapi.json", import.meta.url);
export const BUS_ASYNCAPI_FILE = new URL("../../http/documents/asyncapi-bus.json", import.meta.url);

const asyncApiSchema = z.looseObject({ asyncapi: z.string() }).meta({ id: "AsyncApi" });

const UNCHANGED = {
  description: "Unchanged: the `ETag` in `If-None-Match` is still current. No body; keep the last 200 answer.",
  schema: null,
};

/** Redirects a browser from the root to the API page. */
function redirectToPage(path: "/" | "/docs", operation: string) {
  return route({
    method: "GET",
    path,
    operation,
    tag: "service",
    summary: "Redirect to the API page",
    who: anyone,
    replies: { 308: { description: "To `/docs/`.", schema: null } },
    undocumented: true,
    // 308 keeps the method.
    handler: () => ({ status: 308, headers: { Location: "/docs/" } }),
  });
}

/** One file of the API page. The gateway serves all its files, so the page needs no other host. */
function page(path: `/docs/${string}`, operation: string, file: () => URL | string, contentType: string) {
  return route({
    method: "GET",
    path,
    operation,
    tag: "service",
    summary: "The API page",
    who: anyone,
    replies: { 200: { description: "The file.", schema: null } },
    undocumented: true,
    handler: staticFile(file, contentType),
  });
}

function swaggerFile(name: string): string {
  return fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`));
}

export const pageRoutes = [
  route({
    method: "GET",
    path: "/openapi.json",
    operation: "getOpenapi",
    tag: "service",
    summary: "This document",
    description: "It has an ETag; send that back as `If-None-Match`.",
    who: anyone,
    replies: {
      200: { description: "OpenAPI 3.1.", schema: z.looseObject({ openapi: z.string() }).meta({ id: "OpenApi" }) },
      304: UNCHANGED,
    },
    handler: staticFile(() => OPENAPI_FILE, "application/json"),
  }),
  route({
    method: "GET",
    path: "/asyncapi.json",
    operation: "getAsyncapi",
    tag: "service",
    summary: "The webhooks as an AsyncAPI document",
    description:
      "Describes the requests that robotics consumers receive, for tools that read AsyncAPI. It has an ETag, as `/openapi.json` does.",
    who: anyone,
    replies: {
      200: { description: "AsyncAPI 3.", schema: asyncApiSchema },
      304: UNCHANGED,
    },
    handler: staticFile(() => ASYNCAPI_FILE, "application/json"),
  }),
  route({
    method: "GET",
    path: "/asyncapi-bus.json",
    operation: "getBusAsyncapi",
    tag: "service",
    summary: "The events on the bus as an AsyncAPI document",
    description:
      "Describes the events of issues, for programs inside the installation that subscribe to its NATS servers. It has an ETag, as `/openapi.json` does.",
    who: anyone,
    replies: {
      200: { description: "AsyncAPI 3.", schema: asyncApiSchema },
      304: UNCHANGED,
    },
    handler: staticFile(() => BUS_ASYNCAPI_FILE, "application/json"),
  }),
  redirectToPage("/", "redirectRoot"),
  redirectToPage("/docs", "redirectDocs"),
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
