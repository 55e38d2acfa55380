/** The HTTP server: it serves each row of the route table, and answers all other paths with an error. */

import {
  App,
  type HttpRequest,
  type HttpResponse,
  SSLApp,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from "uWebSockets.js";
import { setTimeout as delay } from "node:timers/promises";
import { UserError } from "../../services/runtime/user-error.ts";
import { CONNECTION_LIMITS, LIMITS } from "../limits.ts";
import { type LiveUpgradeDeps, liveBehavior } from "../live/live-upgrade.ts";
import { ANSWERED, Poll, type PollDeps } from "../read-model/polls.ts";
import { refusedTlsFiles, type TlsFiles } from "../tls-files.ts";
import { AnswerWriter, UnsentAnswers } from "./answer-writer.ts";
import { addressText, type ClientAddress } from "./client-address.ts";
import { connectionsByAddress } from "./connection-counts.ts";
import { Connections, type ConnectionsDeps } from "./connections.ts";
import type { ErrorCode } from "./errors.ts";
import { Exchange, Exchanges, NO_OPERATION, type RequestMetrics } from "./exchange.ts";
import type { ErrorFacts } from "./handler-context.ts";
import { type PipelineDeps, runExchange } from "./pipeline.ts";
import { RequestSlots, UnreadBodies, unreadBodyBounds } from "./request-bounds.ts";
import {
  copyRequest,
  type HeadFault,
  isStrictQuery,
  isStrictTarget,
  mayHideBody,
  RequestHead,
  requestIdFrom,
} from "./request-head.ts";
import { errorAnswer, SECURITY_HEADERS } from "./response.ts";
import { type Method, MissingSlashes, pathParameters, type Route } from "./route.ts";

const FAULT_DETAIL =
  "The head has more than one reading: send one valid Host, one Content-Length, Authorization and Idempotency-Key at most, and a target of visible ASCII.";

/** How the server listens on its port. The package declares an enumeration for this but does not export it. */
const EXCLUSIVE_PORT = 1;
const SHARED_PORT = 0;

export interface ServerDeps {
  readonly pipeline: PipelineDeps;
  readonly polls: Omit<PollDeps, "isDraining" | "isCrowded" | "writer">;
  readonly connectionBounds: ConnectionsDeps["bounds"];
  readonly clientAddress: ClientAddress;
  readonly tls: TlsFiles | undefined;
  readonly metrics: RequestMetrics;
  /** Undefined when no row accepts an upgrade. */
  readonly live?: Omit<LiveUpgradeDeps, "clientAddress" | "metrics" | "log" | "isDraining" | "writer" | "connections">;
}

type UwsHandler = (res: HttpResponse, req: HttpRequest) => void;

export class Server {
  readonly #app: TemplatedApp;
  readonly #deps: ServerDeps;
  readonly #exchanges = new Exchanges();
  readonly #slots = new RequestSlots(LIMITS);
  readonly #unread: UnreadBodies;
  readonly #unsent = new UnsentAnswers();
  readonly #writer = new AnswerWriter(this.#unsent);
  readonly #connections: Connections;
  readonly #head = new RequestHead();
  #isDraining = false;
  #socket: us_listen_socket | undefined;

  constructor(deps: ServerDeps, routes: readonly Route[]) {
    this.#deps = deps;
    this.#app = deps.tls === undefined ? App() : secureApp(deps.tls);
    this.#unread = new UnreadBodies(unreadBodyBounds(deps.connectionBounds));
    this.#connections = new Connections({
      bounds: deps.connectionBounds,
      isTrustedProxy: (address) => deps.clientAddress.isTrustedProxy(address),
      countByAddress: (keyOf) => connectionsByAddress(this.#port(), keyOf),
      isAnswered: () => this.#head.isAnswered,
      log: deps.pipeline.log,
    });
    this.#app.filter((res, change) => {
      if (change > 0) this.#connections.opened(res);
      else this.#connections.closed();
    });
    for (const [path, rows] of Map.groupBy(routes, (route) => route.path)) this.#addPath(path, rows);
    const slashes = new MissingSlashes(routes, deps.pipeline.platformCheck);
    this.#app.any(
      "/*",
      this.#strict((res, req) => this.#refuseUnknownPath(res, req, slashes.rightPath(req.getUrl()))),
    );
  }

  get connections(): Pick<Connections, "open" | "bounds" | "refused" | "madeRoom"> {
    return this.#connections;
  }

  get unsent(): Pick<UnsentAnswers, "size" | "bytes" | "closed"> {
    return this.#unsent;
  }

  /** The number of requests that hold a slot. */
  get requestsInFlight(): number {
    return this.#slots.size;
  }

  get unreadBodies(): Pick<UnreadBodies, "size" | "bounds" | "closed"> {
    return this.#unread;
  }

  /** Listens and returns the port. Throws UserError `port_taken`. With `shared`, several gateways listen on one port (Linux). */
  listen(options: { readonly host: string; readonly port: number; readonly shared: boolean }): number {
    const { host, port, shared } = options;
    const listen = this.#app.listen.bind(this.#app) as unknown as (
      host: string,
      port: number,
      options: number,
      done: (socket: us_listen_socket | false) => void,
    ) => void;
    listen(host, port, shared ? SHARED_PORT : EXCLUSIVE_PORT, (socket) => {
      if (socket !== false) this.#socket = socket;
    });
    if (this.#socket === undefined) {
      const sentence = `The gateway cannot listen on port ${port} of ${host}: another program listens there, or this user has no right to. End that program, or set PORT and HOST to others.`;
      throw new UserError(sentence, { code: "port_taken" });
    }
    return this.#port();
  }

  /** Accepts no further connections, ends the live sockets, waits (bounded) for running requests and closes the rest. */
  async stop(): Promise<void> {
    this.#isDraining = true;
    if (this.#socket !== undefined) us_listen_socket_close(this.#socket);
    this.#socket = undefined;
    this.#deps.live?.sockets.stop();
    await this.#exchanges.drain(LIMITS.drainMs);
    // Clients that are still sending need time to read the answer before their connection closes.
    const lingering = this.#exchanges.abandonAll() > 0 ? delay(CONNECTION_LIMITS.bodyFollowsMs) : undefined;
    await Promise.all([lingering, this.#writer.drain(LIMITS.drainMs), this.#unsent.drain(CONNECTION_LIMITS.stalledMs)]);
    this.#app.close();
  }

  #port(): number {
    return this.#socket === undefined ? 0 : us_socket_local_port(this.#socket);
  }

  #addPath(path: string, rows: readonly Route[]): void {
    const pattern = path.replaceAll(/\{(\w+)\}/g, ":$1");
    const allow = allowedMethods(rows);
    for (const row of rows) {
      if (row.upgrades === true) this.#app.ws(pattern, liveBehavior(this.#liveDeps(), row));
      const handler = this.#handlerOf(row, false);
      switch (row.method) {
        case "GET":
          this.#app.get(pattern, handler);
          this.#app.head(pattern, this.#handlerOf(row, true));
          break;
        case "POST":
          this.#app.post(pattern, handler);
          break;
        case "PUT":
          this.#app.put(pattern, handler);
          break;
        case "PATCH":
          this.#app.patch(pattern, handler);
          break;
        case "DELETE":
          this.#app.del(pattern, handler);
          break;
      }
    }
    this.#app.options(
      pattern,
      this.#strict((res) => this.#answerOptions(res, allow)),
    );
    this.#app.any(
      pattern,
      this.#strict((res, req) => this.#refuse(res, req, "method_not_allowed", { headers: { Allow: allow } })),
    );
  }

  #liveDeps(): LiveUpgradeDeps {
    const { live, clientAddress, metrics, pipeline } = this.#deps;
    if (live === undefined) throw new Error("A row accepts an upgrade, but the server has no live sockets.");
    return {
      ...live,
      clientAddress,
      metrics,
      log: pipeline.log,
      writer: this.#writer,
      isDraining: () => this.#isDraining,
      connections: this.#connections,
    };
  }

  #handlerOf(row: Route, isHead: boolean): UwsHandler {
    const parameterCount = pathParameters(row.path).length;
    if (row.poll === undefined) return this.#strict((res, req) => this.#run(row, res, req, parameterCount));
    const isCrowded = (res: HttpResponse): boolean => this.#isCrowded(res);
    const deps = { ...this.#deps.polls, writer: this.#writer, isCrowded, isDraining: () => this.#isDraining };
    const poll = new Poll(deps, row);
    const head = this.#head;
    return (res, req) => {
      const fault = head.read(req) ?? (isStrictQuery(req) ? undefined : "invalid_request");
      if (fault !== undefined) return this.#refuseFault(res, req, fault);
      const slot = poll.answer(res, head, isHead);
      if (slot !== ANSWERED) this.#run(row, res, req, parameterCount, slot);
    };
  }

  /** A handler that gets only requests with a valid head. */
  #strict(handler: UwsHandler): UwsHandler {
    return (res, req) => {
      const fault = this.#head.read(req) ?? (isStrictTarget(req) ? undefined : "invalid_request");
      if (fault === undefined) handler(res, req);
      else this.#refuseFault(res, req, fault);
    };
  }

  #run(row: Route, res: HttpResponse, req: HttpRequest, parameterCount: number, slot?: number): void {
    const facts = copyRequest(res, req, parameterCount, this.#deps.clientAddress);
    const exchange = new Exchange(res, facts, {
      isDraining: () => this.#isDraining,
      connections: this.#connections,
      writer: this.#writer,
      slots: this.#slots,
      unread: this.#unread,
      onOver: (over) => {
        this.#exchanges.remove(over);
        this.#deps.metrics.done(row.operationId, over.status, over.code, performance.now() - over.startedAtMs);
      },
    });
    this.#exchanges.add(exchange);
    void runExchange(this.#deps.pipeline, row, exchange, slot);
  }

  #answerOptions(res: HttpResponse, allow: string): void {
    const headers = { Allow: allow, "X-Request-Id": requestIdFrom(this.#head.requestId), ...SECURITY_HEADERS };
    this.#writer.writeSoon(res, { status: 204, headers, body: undefined }, { isHead: false, close: true });
  }

  /** Also closes the connection, because the next bytes may belong to this request or to another one. */
  #refuseFault(res: HttpResponse, req: HttpRequest, fault: HeadFault): void {
    const requestId = requestIdFrom(this.#head.requestId);
    const isHead = req.getCaseSensitiveMethod() === "HEAD";
    this.#deps.pipeline.log.debug({ requestId, url: req.getUrl(), refusal: fault }, "refused: the head is not valid");
    const facts = fault === "invalid_request" ? { detail: FAULT_DETAIL } : {};
    const answer = errorAnswer(fault, requestId, facts);
    const bodyFollows = this.#head.announcesBody && !this.#isCrowded(res);
    this.#writer.writeSoon(res, answer, { isHead, close: true, bodyFollows });
    this.#deps.metrics.refused(NO_OPERATION, answer.status, answer.code);
  }

  #refuseUnknownPath(res: HttpResponse, req: HttpRequest, rightPath: string | undefined): void {
    if (rightPath === undefined) return this.#refuse(res, req, "path_not_found");
    const detail = `Send the request to ${rightPath} instead: paths end in a slash.`;
    this.#refuse(res, req, "trailing_slash_missing", { detail });
  }

  #refuse(res: HttpResponse, req: HttpRequest, code: ErrorCode, facts: ErrorFacts = {}): void {
    const requestId = requestIdFrom(this.#head.requestId);
    const method = req.getCaseSensitiveMethod();
    const isHead = method === "HEAD";
    // A body may follow that no handler reads. Without a close, the server would read it as a request.
    const mayHaveBody = this.#head.announcesBody || mayHideBody(method, false);
    const isCrowded = this.#isCrowded(res);
    const close = this.#isDraining || mayHaveBody || isCrowded;
    const answer = errorAnswer(code, requestId, facts);
    this.#writer.writeSoon(res, answer, { isHead, close, bodyFollows: this.#head.announcesBody && !isCrowded });
    this.#deps.metrics.refused(NO_OPERATION, answer.status, code);
    this.#deps.pipeline.log.debug({ requestId, method, url: req.getUrl(), refusal: code }, "refused");
  }

  #isCrowded(res: HttpResponse): boolean {
    return this.#connections.isCrowded(() => addressText(new Uint8Array(res.getRemoteAddress())));
  }
}

/** Throws UserError `invalid_setting` when the library refuses the files. */
function secureApp({ keyFile, certFile }: TlsFiles): TemplatedApp {
  try {
    return SSLApp({ key_file_name: keyFile, cert_file_name: certFile });
  } catch (error) {
    throw refusedTlsFiles(error);
  }
}

function allowedMethods(rows: readonly Route[]): string {
  const methods = new Set<Method | "HEAD" | "OPTIONS">(rows.map((row) => row.method));
  if (methods.has("GET")) methods.add("HEAD");
  methods.add("OPTIONS");
  return [...methods].join(", ");
}
