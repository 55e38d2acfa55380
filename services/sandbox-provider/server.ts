/**
 * The HTTP server of the sandbox provider. Bearer key, JSON, amounts as decimal strings.
 *
 *   POST /v1/accounts                                  {name}            opens an account; its secrets are shown this once (the installation's key)
 *   POST /v1/account/callback-secret                   {}                a new callback secret
 *   POST /v1/payments                                  a payment         idempotent by reference
 *   GET  /v1/payments/by-reference/{reference}                           the payment with its status
 *   POST /v1/payments/by-reference/{reference}/cancel  {}                cancels it, unless it is paid
 *   GET  /magic-amounts                                (no key)          which amount does what
 *   GET  /v1/statement.json, /v1/statement.csv         ?after=&limit=    paid payments in the order of their lines
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Failures } from "../bus/outage.ts";
import { forRequest, isRequestId } from "../runtime/log.ts";
import { createServer, type Listening, listen } from "../runtime/node-http.ts";
import * as accounts from "./accounts.ts";
import { decideAsGuest, refuseForeignPage, showGuestPage } from "./decisions.ts";
import { ApiError, type Reply, type SandboxDeps } from "./deps.ts";
import { SANDBOX_LIMITS } from "./limits.ts";
import { MAGIC_AMOUNTS } from "./magic-amounts.ts";
import * as payments from "./payments.ts";

/** Throws UserError `sandbox_provider_port_taken`. */
export async function startHttpServer(
  deps: SandboxDeps,
  at: { readonly host: string; readonly port: number },
): Promise<Listening> {
  const failures = new Failures((...line) => deps.log.error(...line), "a request to the sandbox provider failed");
  const using = { ...deps, failures };
  const server = createServer({ requestTimeout: SANDBOX_LIMITS.requestMs }, (request, response) => {
    void forRequest(requestIdOf(request), () => answer(using, request, response));
  });
  server.maxConnections = SANDBOX_LIMITS.connections;
  const sentence = `The sandbox provider cannot listen on port ${at.port} of ${at.host}; set SANDBOX_PROVIDER_PORT to a free one.`;
  return await listen(server, at, { code: "sandbox_provider_port_taken", sentence: () => sentence });
}

/** The id that the providers service sends; undefined where there is none, and for one that the gateway would not take. */
function requestIdOf({ headers }: IncomingMessage): string | undefined {
  const { "x-request-id": id } = headers;
  return typeof id === "string" && isRequestId(id) ? id : undefined;
}

async function answer(
  deps: SandboxDeps & { readonly failures: Failures },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let reply: Reply;
  if (request.method === "POST") deps.activity.lastPostAtMs = performance.now();
  try {
    reply = await route(deps, request);
  } catch (error) {
    if (!(error instanceof ApiError)) deps.failures.failed(error, {});
    const known = error instanceof ApiError ? error : new ApiError(500, "unexpected", "This should not have happened.");
    reply = known.reply();
  }
  if (response.destroyed) return;
  const { status, json, text, headers } = reply;
  const isJson = json !== undefined;
  response.writeHead(status, { ...(isJson ? { "content-type": "application/json" } : {}), ...headers });
  response.end(isJson ? JSON.stringify(json) : text);
}

const ORIGIN = "http://sandbox.invalid";
const BY_REFERENCE = /^\/v1\/payments\/by-reference\/([A-Za-z0-9_-]{1,64})(\/cancel)?$/;
const GUEST = /^\/pay\/([A-Za-z0-9_-]{1,64})$/;

async function route(deps: SandboxDeps, request: IncomingMessage): Promise<Reply> {
  // A request target such as `//` names another host or no host. This server has no path for it.
  const url = URL.parse(request.url ?? "/", ORIGIN);
  if (url?.origin !== ORIGIN) throw noSuchPath();
  const what = `${request.method} ${url.pathname}`;
  const guest = GUEST.exec(url.pathname)?.[1];
  if (guest !== undefined && request.method === "GET") return await showGuestPage(deps, guest);
  if (guest !== undefined && request.method === "POST") {
    refuseForeignPage(deps, request);
    return await decideAsGuest(deps, guest, await bodyOf(request));
  }
  if (what === "GET /magic-amounts") return { status: 200, json: { magic_amounts: MAGIC_AMOUNTS } };
  if (what === "GET /healthz") return { status: 200, json: { status: "ok" } };
  if (what === "POST /v1/accounts") {
    accounts.requireInstallation(deps, request);
    return await accounts.openAccount(deps, await jsonOf(request));
  }
  if (!url.pathname.startsWith("/v1/")) throw noSuchPath();
  const account = await accounts.accountOf(deps, request);
  if (what === "POST /v1/account/callback-secret") {
    return await accounts.renewCallbackSecret(deps, account, await jsonOf(request));
  }
  if (what === "POST /v1/payments") return await payments.createPayment(deps, account, await jsonOf(request));
  for (const format of ["json", "csv"] as const) {
    const query = url.searchParams;
    if (what === `GET /v1/statement.${format}`) return await payments.getStatement(deps, account, { format, query });
  }
  const [, reference, cancel] = BY_REFERENCE.exec(url.pathname) ?? [];
  if (reference !== undefined && cancel === undefined && request.method === "GET") {
    return await payments.getPayment(deps, account, reference);
  }
  if (reference !== undefined && cancel !== undefined && request.method === "POST") {
    return await payments.cancelPayment(deps, account, { reference, body: await jsonOf(request) });
  }
  throw noSuchPath();
}

function noSuchPath(): ApiError {
  return new ApiError(404, "not_found", "This API has no such path.");
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
  try {
    return JSON.parse(await bodyOf(request));
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError(400, "invalid_json", "The body is no JSON.");
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > SANDBOX_LIMITS.bodyBytes) throw new ApiError(413, "body_too_large", "The body is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
