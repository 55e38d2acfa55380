/** Opens a live socket: it makes the checks of any other request from memory, and then the upgrade. */
import type { HttpRequest, HttpResponse, us_socket_context_t, WebSocketBehavior } from "uWebSockets.js";
import { addressBlock } from "../../services/bus/address-block.ts";
import type { Permission } from "../../services/bus/messages/caller.ts";
import type { SessionEntry } from "../../services/bus/messages/sessions.ts";
import type { Log } from "../../services/runtime/log.ts";
import type { AnswerWriter, WriteOptions } from "../http/answer-writer.ts";
import { checkUpgrade } from "../http/caller-checks.ts";
import type { ClientAddress } from "../http/client-address.ts";
import type { Connections } from "../http/connections.ts";
import type { ErrorCode } from "../http/errors.ts";
import type { RequestMetrics } from "../http/exchange.ts";
import { ApiError, UnknownCaller } from "../http/handler-context.ts";
import { queryOf } from "../http/parse-request.ts";
import { checkIds } from "../http/pipeline.ts";
import { copyRequest, type RequestFacts, RequestHead } from "../http/request-head.ts";
import { type Answer, errorAnswer, refusalOf } from "../http/response.ts";
import type { Route } from "../http/route.ts";
import type { MissingStations } from "../read-model/missing-stations.ts";
import type { Replicas } from "../read-model/replicas.ts";
import { CLOSE_CODES, LIVE_LIMITS, LiveSocket, type SocketData } from "./live-socket.ts";
import type { LiveSockets } from "./live-sockets.ts";

export interface LiveUpgradeDeps {
  readonly sockets: LiveSockets;
  readonly replicas: Replicas;
  readonly missing: Pick<MissingStations, "whyNone">;
  readonly clientAddress: ClientAddress;
  readonly metrics: RequestMetrics;
  readonly log: Log;
  readonly writer: AnswerWriter;
  readonly connections: Pick<Connections, "closed" | "unused">;
  /** True once the gateway is shutting down: it opens no more sockets. */
  isDraining(): boolean;
}

/** The server's handlers for the sockets of a row whose path accepts an upgrade. */
export function liveBehavior(deps: LiveUpgradeDeps, row: Route): WebSocketBehavior<SocketData> {
  const { sockets } = deps;
  return {
    idleTimeout: LIVE_LIMITS.idleSeconds,
    sendPingsAutomatically: true,
    maxPayloadLength: LIVE_LIMITS.incomingBytes,
    maxBackpressure: LIVE_LIMITS.backlogBytes,
    closeOnBackpressureLimit: true,
    upgrade: (res, req, context) => upgrade(deps, row, { res, req, context }),
    open: (ws) => {
      const { live } = ws.getUserData();
      live.open(ws);
      sockets.add(live);
    },
    message: (ws) => ws.end(CLOSE_CODES.nothingExpected, "nothing_expected"),
    pong: (ws, message) => {
      const { live } = ws.getUserData();
      if (live.ponged(Buffer.from(message).toString("latin1"))) sockets.mark(live);
    },
    close: (ws, code) => {
      const { live } = ws.getUserData();
      live.closed();
      // For this connection, the server reports only the opening to `Connections`.
      deps.connections.closed();
      sockets.remove(live, code);
    },
  };
}

interface Asked {
  readonly res: HttpResponse;
  readonly req: HttpRequest;
  readonly context: us_socket_context_t;
}

const CLOSING: WriteOptions = { isHead: false, close: true };

function upgrade(deps: LiveUpgradeDeps, row: Route, { res, req, context }: Asked): void {
  const startedAtMs = performance.now();
  const facts = copyRequest(res, req, 1, deps.clientAddress);
  const durationMs = (): number => performance.now() - startedAtMs;
  const refused = (error: unknown): Answer => {
    const { code, facts: refusalFacts, isUnexpected } = refusalOf(error);
    const { requestId, url } = facts;
    if (isUnexpected) deps.log.error({ err: error, requestId, url }, "a request failed unexpectedly");
    else deps.log.debug({ requestId, url, refusal: code }, "refused");
    const answer = errorAnswer(code, requestId, refusalFacts);
    deps.metrics.done(row.operationId, answer.status, code, durationMs());
    return answer;
  };
  const refuseLater = async (why: () => Promise<ErrorCode>): Promise<void> => {
    const find = async () => ({ answer: refused(new ApiError(await why())), options: CLOSING });
    await deps.writer.writeLater(res, find);
  };
  try {
    const { key, extensions } = requireHandshake(req);
    const admitted = admit(deps, row, facts);
    if ("missing" in admitted) {
      const { session, stationId } = admitted.missing;
      return void refuseLater(() => deps.missing.whyNone(session, stationId));
    }
    // One of this address's connections becomes a WebSocket, and the server does not report which.
    deps.connections.unused.forget(addressBlock(facts.peer));
    // The empty subprotocol: live sockets have none.
    res.upgrade<SocketData>(admitted, key, "", extensions, context);
    deps.metrics.done(row.operationId, 101, undefined, durationMs());
  } catch (error) {
    if (error instanceof UnknownCaller) void refuseLater(error.why);
    else deps.writer.writeSoon(res, refused(error), CLOSING);
  }
}

/** Sixteen bytes in base64. */
const WEBSOCKET_KEY = /^[A-Za-z0-9+/]{21}[AQgw]==$/;

/** Throws the error of a wrong handshake (RFC 6455, 4.2.1 and 4.4). The server would accept any. */
function requireHandshake(req: HttpRequest): { readonly key: string; readonly extensions: string } {
  const fault = new RequestHead().read(req);
  if (fault !== undefined) throw new ApiError(fault);
  if (req.getHeader("sec-websocket-version") !== "13") {
    const headers = { Upgrade: "websocket", "Sec-WebSocket-Version": "13" };
    throw new ApiError("websocket_version_unsupported", { headers });
  }
  const key = req.getHeader("sec-websocket-key");
  const options = req.getHeader("connection").toLowerCase().split(",");
  const isWhole =
    req.getHeader("upgrade").toLowerCase() === "websocket" &&
    options.some((option) => option.trim() === "upgrade") &&
    WEBSOCKET_KEY.test(key);
  if (!isWhole) throw new ApiError("invalid_request", { detail: "This is no whole WebSocket handshake." });
  return { key, extensions: req.getHeader("sec-websocket-extensions") };
}

/** A station that the replica does not have. */
interface Missing {
  readonly missing: { readonly session: SessionEntry; readonly stationId: number };
}

/** Throws the errors of a GET of the same path. For another organization's station the error is `not_found`. */
function admit(deps: LiveUpgradeDeps, row: Route, facts: RequestFacts): SocketData | Missing {
  const { replicas, sockets } = deps;
  if (deps.isDraining()) throw new ApiError("busy");
  checkIds(row, facts);
  const { session, digest } = checkUpgrade(replicas, facts, permissionOf(row));
  queryOf(row, facts.query);
  const nowMs = replicas.nowMs();
  const stationId = Number(facts.parameters[0]);
  if (!replicas.isStationFresh(stationId, nowMs) || !replicas.areSwitchesFresh()) throw new ApiError("replica_stale");
  const state = replicas.stations.state(stationId);
  if (state === undefined) return { missing: { session, stationId } };
  if (state.organizationId !== session.organizationId) throw new ApiError("not_found");
  const { sessionId, userId } = session;
  sockets.requireRoom(sessionId);
  return { live: new LiveSocket({ stationId, userId, sessionId, sessionDigest: digest, requestId: facts.requestId }) };
}

function permissionOf({ who, operationId }: Route): Permission | null {
  if (who.kind !== "session") throw new Error(`${operationId} accepts an upgrade but needs no session.`);
  return who.permission;
}
