/**
 * Checks that a request's head is strictly valid, as far as the HTTP parser shows it (RFC 9112, 3.2, 6 and 11.2). When a proxy
 * reads a head differently from this server, it may take the rest of one client's request for the beginning of another
 * client's (request smuggling), or send it to another host. So the server refuses a head that has more than one reading.
 *
 * The parser accepts chunked bodies with wrong chunk ends, and does not show their bytes. So a body needs its length in
 * advance, and the server refuses any `Transfer-Encoding`. The parser also hides all header lines after a line without a name.
 * So the server closes the connection after a request that may have a body and announces none. `docs/edge.md` lists what the
 * parser refuses.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { randomBytes } from "node:crypto";
import { isRequestId } from "../../services/runtime/log.ts";
import type { ClientAddress } from "./client-address.ts";

/** The headers that handlers may read. The list is short, because the server copies each of them. */
export const COPIED_HEADERS = [
  "accept-encoding",
  "authorization",
  "content-length",
  "content-type",
  "cookie",
  "host",
  "idempotency-key",
  "if-none-match",
  "origin",
  "sec-fetch-site",
  "user-agent",
  "x-provider-signature",
] as const;
export type CopiedHeader = (typeof COPIED_HEADERS)[number];

/** The copy of a request for use after the first await, when the request object is no longer valid. */
export interface RequestFacts {
  readonly requestId: string;
  readonly method: string;
  readonly url: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Raw values of the path's parameters, in order. */
  readonly parameters: readonly string[];
  readonly address: string;
  readonly secure: boolean;
  /** The address at the other end of the connection: the client's or a proxy's. */
  readonly peer: string;
}

export function copyRequest(
  res: HttpResponse,
  req: HttpRequest,
  parameterCount: number,
  clientAddress: ClientAddress,
): RequestFacts {
  const headers: Record<string, string> = {};
  for (const name of COPIED_HEADERS) {
    const value = req.getHeader(name);
    if (value !== "") headers[name] = value;
  }
  const parameters: string[] = [];
  for (let index = 0; index < parameterCount; index += 1) parameters.push(req.getParameter(index) ?? "");
  return {
    requestId: requestIdFrom(req.getHeader("x-request-id")),
    method: req.getCaseSensitiveMethod(),
    url: req.getUrl(),
    query: req.getQuery() ?? "",
    headers,
    parameters,
    ...clientAddress.of(res, req),
  };
}

/** Different for each process, so that two gateways never make the same id. */
const PREFIX = randomBytes(6).toString("base64url");
/** Six digits in base 36 until the two-billionth request, so that an answer's length does not depend on earlier requests. */
let count = 36 ** 5;

function newRequestId(): string {
  count += 1;
  return `${PREFIX}-${count.toString(36)}`;
}

/** The id of a request in the log: the client's id when it is valid, otherwise a new one. */
export function requestIdFrom(header: string): string {
  return isRequestId(header) ? header : newRequestId();
}

export type HeadFault = "invalid_request" | "length_required";

/** The characters of a host and a port (RFC 3986, 3.2.2). The value may be empty. The parser refuses a missing header. */
const HOST = /^[\w.~!$&'()*+,;=:%[\]-]*$/;
/** Visible ASCII: clients must percent-encode all else (RFC 3986, 2). */
const TARGET = /^[\x21-\x7e]*$/;
const LENGTH = /^\d+$/;

/**
 * Reads each header once and keeps what a poll needs. The server has one instance. It contains the current request until the
 * server reads the next one, so do not read it after an await.
 */
export class RequestHead {
  authorization = "";
  ifNoneMatch = "";
  requestId = "";
  /** Set by a handler that has answered without a body and keeps the connection open. */
  isAnswered = false;
  /** Whether the headers announce a body, even an empty one. */
  announcesBody = false;
  #hosts = 0;
  #credentials = 0;
  #keys = 0;
  #lengths = 0;
  #encodings = 0;
  #isClear = true;

  /** Compares only names of the same length, because it runs for every header of every poll. */
  readonly #take = (name: string, value: string): void => {
    switch (name.length) {
      case 4:
        if (name === "host") {
          this.#hosts += 1;
          this.#isClear &&= HOST.test(value);
        }
        break;
      case 12:
        if (name === "x-request-id") this.requestId = value;
        break;
      case 13:
        if (name === "authorization") {
          this.#credentials += 1;
          this.authorization = value;
        } else if (name === "if-none-match") {
          // Several header lines make one list (RFC 9110, 5.3).
          this.ifNoneMatch = this.ifNoneMatch === "" ? value : `${this.ifNoneMatch}, ${value}`;
        }
        break;
      case 14:
        if (name === "content-length") {
          this.#lengths += 1;
          this.#isClear &&= LENGTH.test(value);
        }
        break;
      case 15:
        if (name === "idempotency-key") this.#keys += 1;
        break;
      case 17:
        if (name === "transfer-encoding") this.#encodings += 1;
        break;
      default:
    }
  };

  /** The fault of the head, or undefined. */
  read(req: HttpRequest): HeadFault | undefined {
    this.authorization = "";
    this.ifNoneMatch = "";
    this.requestId = "";
    this.isAnswered = false;
    this.#hosts = 0;
    this.#credentials = 0;
    this.#keys = 0;
    this.#lengths = 0;
    this.#encodings = 0;
    this.#isClear = true;
    req.forEach(this.#take);
    this.announcesBody = this.#lengths + this.#encodings > 0;
    const isRepeated = this.#lengths > 1 || this.#credentials > 1 || this.#keys > 1;
    if (!this.#isClear || this.#hosts !== 1 || isRepeated) return "invalid_request";
    return this.#encodings > 0 ? "length_required" : undefined;
  }
}

/** Whether a body may follow the request that the parser does not recognise. */
export function mayHideBody(method: string, announcesBody: boolean): boolean {
  return !announcesBody && method !== "GET" && method !== "HEAD";
}

export function isStrictTarget(req: HttpRequest): boolean {
  return TARGET.test(req.getUrl()) && isStrictQuery(req);
}

/** Enough for a poll: a path that equals a route's path without parameters is valid. */
export function isStrictQuery(req: HttpRequest): boolean {
  const query = req.getQuery();
  return query === undefined || TARGET.test(query);
}
