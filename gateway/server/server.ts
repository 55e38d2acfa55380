/** The HTTP server: each row of the route table on its path, and an answer for everything else. */
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
import { UserError } from "../../services/runtime/user-error.ts";
import type { ErrorCode } from "../contract/errors.ts";
import type { RefusalFacts } from "../handlers/context.ts";
import { LIMITS } from "../limits.ts";
import { type LiveUpgradeDeps, liveBehavior } from "../live/live-upgrade.ts";
import { ANSWERED, Poll, type PollDeps } from "../polls/polls.ts";
import type { Method, Route } from "../route.ts";
import type { ClientAddress } from "./client-address.ts";
import { Exchange, Exchanges } from "./exchange.ts";
import { copyRequest } from "./facts.ts";
import { isAmbiguous, isAmbiguousPoll } from "./framing.ts";
import { MissingSlashes } from "./missing-slashes.ts";
import { type PipelineDeps, pathParameters, runExchange } from "./pipeline.ts";
import { NO_OPERATION, type RequestFigures } from "./request-figures.ts";
import { requestIdFrom } from "./request-id.ts";
import { errorAnswer, SECURITY_HEADERS, writeAnswer } from "./response.ts";

/** How the server listens on its port. The package declares an enumeration for this but does not export it. */
const EXCLUSIVE_PORT = 1;
const SHARED_PORT = 0;

export interface ServerDeps {
  readonly pipeline: PipelineDeps;
  readonly polls: Omit<PollDeps, "isDraining">;
  readonly clientAddress: ClientAddress;
  readonly tls: { readonly keyFile: string; readonly certFile: string } | undefined;
  readonly figures: RequestFigures;
  /** Undefined where no row takes an upgrade. */
  readonly live?: Omit<LiveUpgradeDeps, "clientAddress" | "figures" | "log" | "isDraining">;
}

export class Server {
  readonly #app: TemplatedApp;
  readonly #deps: ServerDeps;
  readonly #exchanges = new Exchanges();
  #isDraining = false;
  #connections = 0;
  #socket: us_listen_socket | undefined;

  constructor(deps: ServerDeps, routes: readonly Route[]) {
    this.#deps = deps;
    this.#app =
      deps.tls === undefined ? App() : SSLApp({ key_file_name: deps.tls.keyFile, cert_file_name: deps.tls.certFile });
    this.#app.filter((_res, change) => {
      this.#connections += change;
    });
    for (const [path, rows] of Map.groupBy(routes, (route) => route.path)) this.#addPath(path, rows);
    const slashes = new MissingSlashes(routes, deps.pipeline.platformCheck);
    this.#app.any("/*", (res, req) => this.#refuseUnknownPath(res, req, slashes.rightPath(req.getUrl())));
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#connections;
  }

  /** Requests that wait for something other than memory. */
  get requestsInFlight(): number {
    return this.#exchanges.size;
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
      throw new UserError(`Port ${port} on ${host} is taken or not allowed.`, { code: "port_taken" });
    }
    return us_socket_local_port(this.#socket);
  }

  /** Takes no further connections, ends the live sockets, lets running requests finish (bounded) and closes the rest. */
  async stop(): Promise<void> {
    this.#isDraining = true;
    if (this.#socket !== undefined) us_listen_socket_close(this.#socket);
    this.#socket = undefined;
    this.#deps.live?.sockets.stop();
    await this.#exchanges.drain(LIMITS.drainMs);
    this.#app.close();
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
    this.#app.options(pattern, (res, req) => this.#answerOptions(res, req, allow));
    this.#app.any(pattern, (res, req) => this.#refuse(res, req, "method_not_allowed", { headers: { Allow: allow } }));
  }

  #liveDeps(): LiveUpgradeDeps {
    const { live, clientAddress, figures, pipeline } = this.#deps;
    if (live === undefined) throw new Error("A row takes an upgrade, but there are no live sockets.");
    return { ...live, clientAddress, figures, log: pipeline.log, isDraining: () => this.#isDraining };
  }

  #handlerOf(row: Route, isHead: boolean): (res: HttpResponse, req: HttpRequest) => void {
    const parameterCount = pathParameters(row.path).length;
    if (row.poll === undefined) {
      return (res, req) => {
        if (isAmbiguous(req)) this.#refuseAmbiguous(res, req);
        else this.#run(row, res, req, parameterCount);
      };
    }
    const poll = new Poll({ ...this.#deps.polls, isDraining: () => this.#isDraining }, row);
    return (res, req) => {
      if (isAmbiguousPoll(req)) return this.#refuseAmbiguous(res, req);
      const slot = poll.answer(res, req, isHead);
      if (slot !== ANSWERED) this.#run(row, res, req, parameterCount, slot);
    };
  }

  #run(row: Route, res: HttpResponse, req: HttpRequest, parameterCount: number, slot?: number): void {
    if (this.#exchanges.size >= LIMITS.requestsInFlight) return this.#refuse(res, req, "busy", {}, row.operationId);
    const facts = copyRequest(res, req, parameterCount, this.#deps.clientAddress);
    const exchange = new Exchange(res, facts, {
      isDraining: () => this.#isDraining,
      onOver: (over) => {
        this.#exchanges.remove(over);
        this.#deps.figures.done(row.operationId, over.status, over.code, performance.now() - over.startedAtMs);
      },
    });
    this.#exchanges.add(exchange);
    void runExchange(this.#deps.pipeline, row, exchange, slot);
  }

  #answerOptions(res: HttpResponse, req: HttpRequest, allow: string): void {
    if (isAmbiguous(req)) return this.#refuseAmbiguous(res, req);
    const headers = { Allow: allow, "X-Request-Id": requestIdFrom(req.getHeader("x-request-id")), ...SECURITY_HEADERS };
    writeAnswer(res, { status: 204, headers, body: undefined }, { isHead: false, close: this.#isDraining });
  }

  /**
   * Whatever follows cannot be told from the next request, so the connection ends as well. Answered a turn later: while
   * a request is under way the parser ends a connection on which another one follows, and after it, it would run that.
   */
  #refuseAmbiguous(res: HttpResponse, req: HttpRequest): void {
    const requestId = requestIdFrom(req.getHeader("x-request-id"));
    const isHead = req.getCaseSensitiveMethod() === "HEAD";
    this.#deps.pipeline.log.debug({ requestId, url: req.getUrl() }, "refused: where its body ends is in doubt");
    const detail =
      "The headers leave in doubt where the body ends; send one Content-Length, or Transfer-Encoding: chunked.";
    let isGone = false;
    res.onAborted(() => {
      isGone = true;
    });
    setImmediate(() => {
      if (isGone) return;
      const answer = errorAnswer("invalid_request", requestId, { detail });
      writeAnswer(res, answer, { isHead, close: true });
      this.#deps.figures.refused(NO_OPERATION, answer.status, answer.code);
    });
  }

  #refuseUnknownPath(res: HttpResponse, req: HttpRequest, rightPath: string | undefined): void {
    if (rightPath === undefined) return this.#refuse(res, req, "path_not_found");
    const detail = `Send the request to ${rightPath} instead: paths end in a slash.`;
    this.#refuse(res, req, "trailing_slash_missing", { detail });
  }

  #refuse(
    res: HttpResponse,
    req: HttpRequest,
    code: ErrorCode,
    facts: RefusalFacts = {},
    operation: string = NO_OPERATION,
  ): void {
    const requestId = requestIdFrom(req.getHeader("x-request-id"));
    const isHead = req.getCaseSensitiveMethod() === "HEAD";
    // A body that nobody reads may follow; only a connection that ends cannot take it for a request.
    const close =
      this.#isDraining || req.getHeader("content-length") !== "" || req.getHeader("transfer-encoding") !== "";
    const answer = errorAnswer(code, requestId, facts);
    writeAnswer(res, answer, { isHead, close });
    this.#deps.figures.refused(operation, answer.status, code);
    this.#deps.pipeline.log.debug(
      { requestId, method: req.getCaseSensitiveMethod(), url: req.getUrl(), refusal: code },
      "refused",
    );
  }
}

function allowedMethods(rows: readonly Route[]): string {
  const methods = new Set<Method | "HEAD" | "OPTIONS">(rows.map((row) => row.method));
  if (methods.has("GET")) methods.add("HEAD");
  methods.add("OPTIONS");
  return [...methods].join(", ");
}
