/**
 * Handles a request that is not answered from memory:
 *
 *   facts copied ──► caller ──► body read ──► slot ──► parsed, validated ──► handler ──► reply or error ──► one log line
 *
 * The pipeline checks the caller before it reads the body, so that an unknown caller cannot make the gateway parse anything.
 */
import type { ConsumerCaller } from "../../services/bus/messages/consumers.ts";
import type { SessionEntry } from "../../services/bus/messages/sessions.ts";
import { forRequest, type Log } from "../../services/runtime/log.ts";
import type { Count } from "../../services/runtime/metrics.ts";
import {
  type ConsumerCheck,
  checkSession,
  type DeviceCheck,
  isSessionOpen,
  type PlatformCheck,
  refuseForeignOrigin,
  type SessionCheckDeps,
} from "./caller-checks.ts";
import type { ErrorCode } from "./errors.ts";
import type { Exchange } from "./exchange.ts";
import {
  ApiError,
  type DeviceCaller,
  type Effect,
  type HandlerDeps,
  type Reply,
  UnknownCaller,
} from "./handler-context.ts";
import { parseBody, queryOf, requireStorableText, validate } from "./parse-request.ts";
import { announcesTooMuch, ClientGoneError, mostBytesOf, readBody } from "./read-body.ts";
import { COPIED_HEADERS, type CopiedHeader, type RequestFacts } from "./request-head.ts";
import { type Answer, errorAnswer, notEffective, refusalOf, SECURITY_HEADERS } from "./response.ts";
import { type ErasedHandler, isPathId, pathParameters, type Route } from "./route.ts";
import { sendStream } from "./send-stream.ts";
import { type StreamedBody, streamBody } from "./stream-body.ts";

export interface PipelineDeps {
  readonly log: Log;
  readonly handlerDeps: HandlerDeps;
  readonly sessionCheck: SessionCheckDeps;
  readonly deviceCheck: DeviceCheck;
  readonly platformCheck: PlatformCheck;
  readonly consumerCheck: Pick<ConsumerCheck, "check">;
  /** Answers to changes that were stored but not yet effective. */
  readonly notEffective: Count<"operation">;
}

/** The only path parameter that is not an id. */
const FILE = "file";

interface Caller {
  readonly caller?: SessionEntry;
  readonly device?: DeviceCaller;
  readonly consumer?: ConsumerCaller;
}

/** Runs a request to its answer; never rejects. `slot` is the credential's slot of a device that the gate has admitted. */
export function runExchange(deps: PipelineDeps, route: Route, exchange: Exchange, slot?: number): Promise<void> {
  return forRequest(exchange.facts.requestId, () => run(deps, route, exchange, slot));
}

async function run(deps: PipelineDeps, route: Route, exchange: Exchange, slot?: number): Promise<void> {
  const { facts } = exchange;
  let who: Caller = {};
  let code: string | undefined;
  let stream: StreamedBody | undefined;
  try {
    exchange.onDeadline = () => exchange.answer(errorAnswer("unavailable", facts.requestId));
    // The call that identifies a consumer needs a slot.
    if (route.who.kind === "consumer") requireSlot(exchange);
    const found = findCaller(deps, route, facts, slot);
    // No await for a row with a body, because a body can only be read before the first await.
    who = found instanceof Promise ? await found : found;
    exchange.isKnownCaller = route.who.kind !== "anyone";
    if (route.streamsBody === true) stream = takeStream(route, exchange);
    const hasBody = route.body !== undefined || route.rawBody === true;
    const bytes = hasBody ? await takeBytes(route, exchange) : null;
    if (route.needsNoSlot !== true) requireSlot(exchange);
    const body = hasBody ? bodyOf(route, facts, bytes) : undefined;
    if (stream === undefined) exchange.onDeadline = () => exchange.answer(errorAnswer("unavailable", facts.requestId));
    const query = queryOf(route, facts.query);
    const effect: Effect = { isEffective: true };
    const reply = await handlerOf(route)({
      ...who,
      body: stream?.pieces ?? (route.body === undefined ? body : validate(route.body, body)),
      query,
      id: (name: string) => idOf(route, facts, name),
      file: () => facts.parameters[pathParameters(route.path).indexOf(FILE)] ?? "",
      header: (name: string) => headerOf(facts, name),
      requestId: facts.requestId,
      address: facts.address,
      secure: facts.secure,
      deps: handlerDepsOf(deps, route, effect),
    } as Parameters<ErasedHandler>[0]);
    if (!effect.isEffective) deps.notEffective.add({ operation: route.operationId });
    const answer = replyAnswer(route, effect.isEffective ? reply : notEffective(reply), facts);
    if (reply.stream === undefined) exchange.answer(answer);
    else {
      const isAdmitted = (): boolean => isStillAdmitted(deps, route, facts);
      const codeOf = (error: unknown): ErrorCode => explained(deps.log, facts, error).code;
      await sendStream({ isStillAdmitted: isAdmitted, codeOf }, exchange, answer, reply.stream);
      code = exchange.code;
    }
  } catch (error) {
    const reason = error instanceof UnknownCaller ? new ApiError(await error.why()) : error;
    if (!(reason instanceof ClientGoneError)) code = refuse(deps.log, exchange, reason);
  } finally {
    stream?.end();
  }
  logExchange(deps.log, route, exchange, who, code);
}

/** For a route with `awaitsEffect`, the bus of this one request. */
function handlerDepsOf({ handlerDeps }: PipelineDeps, route: Route, effect: Effect): HandlerDeps {
  return route.awaitsEffect === true ? { ...handlerDeps, bus: handlerDeps.bus.noting(effect) } : handlerDeps;
}

function findCaller(
  deps: PipelineDeps,
  route: Route,
  facts: RequestFacts,
  slot: number | undefined,
): Caller | Promise<Caller> {
  checkIds(route, facts);
  const { who } = route;
  switch (who.kind) {
    case "anyone":
      if (who.cookie === true) refuseForeignOrigin(facts);
      return {};
    case "session":
      return { caller: checkSession(deps.sessionCheck, facts, who.permission) };
    case "platform":
      deps.platformCheck.check(facts);
      return {};
    case "consumer":
      return deps.consumerCheck.check(facts).then((consumer) => ({ consumer }));
    case "device": {
      const authorization = facts.headers.authorization ?? "";
      return { device: deps.deviceCheck.check(authorization, who.scope, who.blocked, slot) };
    }
  }
}

/** An answer may take hours. A session that ends meanwhile gets no further piece. */
function isStillAdmitted({ sessionCheck }: PipelineDeps, { who }: Route, facts: RequestFacts): boolean {
  return who.kind !== "session" || isSessionOpen(sessionCheck, facts);
}

function requireSlot(exchange: Exchange): void {
  if (!exchange.takeSlot()) throw new ApiError("busy");
}

function takeStream(route: Route, exchange: Exchange): StreamedBody {
  const mostBytes = mostBytesOf(route);
  if (announcesTooMuch(exchange.facts.headers["content-length"], mostBytes)) throw new ApiError("body_too_large");
  return streamBody(exchange, mostBytes);
}

/** Null when the body exceeds its limit and the handler answers with its own error. */
async function takeBytes(route: Route, exchange: Exchange): Promise<Buffer | null> {
  const mostBytes = mostBytesOf(route);
  try {
    if (announcesTooMuch(exchange.facts.headers["content-length"], mostBytes)) throw new ApiError("body_too_large");
    return await readBody(exchange, mostBytes);
  } catch (error) {
    if (route.rawBody === true && error instanceof ApiError && error.code === "body_too_large") return null;
    throw error;
  }
}

function bodyOf(route: Route, { headers }: RequestFacts, bytes: Buffer | null): unknown {
  if (route.rawBody === true || bytes === null) return bytes;
  if (bytes.length === 0 && route.bodyOptional === true) return {};
  const value = parseBody(bytes, headers["content-type"] ?? "", route);
  if (route.unstorableText !== "kept") requireStorableText(value);
  return value;
}

/** A poll's row has a handler only when some answers need more than memory. */
function handlerOf(route: Route): ErasedHandler {
  if (route.handler === undefined) throw new Error(`${route.operationId} has no handler.`);
  return route.handler as ErasedHandler;
}

/** What an error means to the client. Logs a fault of the program. */
function explained(log: Log, { requestId, url }: RequestFacts, error: unknown): ReturnType<typeof refusalOf> {
  const refusal = refusalOf(error);
  if (refusal.isUnexpected) log.error({ err: error, requestId, url }, "a request failed unexpectedly");
  return refusal;
}

function refuse(log: Log, exchange: Exchange, error: unknown): string {
  const { code, facts } = explained(log, exchange.facts, error);
  const { requestId } = exchange.facts;
  // The server would read the rest of an unread body as the next request.
  const close = code === "body_too_large" || exchange.isBodyUnread;
  exchange.answer(errorAnswer(code, requestId, facts), { close });
  return code;
}

function replyAnswer(route: Route, reply: Reply, facts: RequestFacts): Answer {
  const text = reply.body === undefined ? reply.ready : JSON.stringify(reply.body);
  return {
    status: reply.status,
    headers: {
      ...(text === undefined ? {} : { "Content-Type": "application/json" }),
      // An answer depends on the caller, so no cache may share it. A handler may set other headers.
      ...(route.who.kind === "device" || route.who.kind === "consumer"
        ? { "Cache-Control": "private, no-cache", Vary: "Authorization" }
        : { "Cache-Control": "no-store" }),
      "X-Request-Id": facts.requestId,
      ...SECURITY_HEADERS,
      ...(facts.secure ? { "Strict-Transport-Security": "max-age=31536000" } : {}),
      ...reply.headers,
    },
    cookies: reply.cookies,
    body: text,
  };
}

/** Throws `path_not_found` unless each id of the path is a positive integer. */
export function checkIds(route: Route, facts: RequestFacts): void {
  for (const [index, name] of pathParameters(route.path).entries()) {
    if (name !== FILE && !isPathId(facts.parameters[index] ?? "")) throw new ApiError("path_not_found");
  }
}

function idOf(route: Route, facts: RequestFacts, name: string): number {
  const index = pathParameters(route.path).indexOf(name);
  if (index < 0) throw new Error(`${route.path} has no {${name}}.`);
  return Number(facts.parameters[index]);
}

function headerOf(facts: RequestFacts, name: string): string {
  if (!COPIED_HEADERS.includes(name as CopiedHeader))
    throw new Error(`The header ${name} is not copied; see request-head.ts.`);
  return facts.headers[name] ?? "";
}

/**
 * Writes one wide line per request. Requests that devices make every few seconds, and public reads, get a line at `debug` only.
 * The log bounds the lines with a `refusal`, and the metrics count every request.
 */
function logExchange(log: Log, route: Route, exchange: Exchange, who: Caller, refusal: string | undefined): void {
  const { facts, status } = exchange;
  const isPublicRead = status < 400 && route.method === "GET" && route.who.kind === "anyone";
  const isRoutine = status < 500 && (route.quiet === true || facts.method === "HEAD" || status === 0 || isPublicRead);
  const level = status >= 500 ? "warn" : isRoutine ? "debug" : "info";
  if (!log.isLevelEnabled(level)) return;
  log[level](
    {
      requestId: facts.requestId,
      method: facts.method,
      route: route.path,
      operation: route.operationId,
      ids: facts.parameters.length === 0 ? undefined : facts.parameters,
      status: status === 0 ? "client_gone" : status,
      refusal,
      durationMs: Math.round((performance.now() - exchange.startedAtMs) * 10) / 10,
      address: facts.address,
      userId: who.caller?.userId,
      organizationId: who.caller?.organizationId ?? who.consumer?.organizationId,
      consumerId: who.consumer?.consumerId,
      deviceId: who.device?.deviceId,
      stationId: who.device?.stationId,
    },
    "request",
  );
}
