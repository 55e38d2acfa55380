/**
 * Whether a request's head is strictly valid, as far as the HTTP parser shows it (RFC 9112, 3.2, 6 and 11.2). A proxy in
 * front that reads a head differently from this server would take the rest of one client's request for the beginning of
 * another's (request smuggling), or would send it to another host; so what has more than one reading is refused.
 *
 * The parser accepts chunked bodies whose chunks do not end as they must, and does not show their bytes. So a body needs
 * its length in advance: any `Transfer-Encoding` is refused. The parser also hides all lines behind one without a name, so
 * a request that may have a body and announces none ends its connection. `docs/edge.md` has what the parser itself refuses.
 */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import { randomBytes } from "node:crypto";
import { LIMITS } from "../limits.ts";
import type { ClientAddress } from "./client-address.ts";

/** The headers that handlers may read; each costs a copy, so only these are. */
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

/** What is copied from a request before the first await: the request object is dead after it. */
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
  /** The other end of the connection, which is a proxy where there is one. */
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

/** Different for each process, so that ids of several gateways never meet. */
const PREFIX = randomBytes(6).toString("base64url");
let count = 0;

function newRequestId(): string {
  count += 1;
  return `${PREFIX}-${count.toString(36)}`;
}

/** Letters, digits and a few marks, bounded: it goes into a header and the log as it is. */
export function isValidRequestId(id: string): boolean {
  return id.length > 0 && id.length <= LIMITS.requestIdCharacters && /^[\w.:/+=-]+$/.test(id);
}

/** The id by which a request is found in the log: the client's own when it is valid, else a new one. */
export function requestIdFrom(header: string): string {
  return isValidRequestId(header) ? header : newRequestId();
}

export type HeadFault = "invalid_request" | "length_required";

/** What a host and a port may consist of (RFC 3986, 3.2.2). It may be empty, but not missing: the parser refuses that. */
const HOST = /^[\w.~!$&'()*+,;=:%[\]-]*$/;
/** Visible ASCII; anything else must be percent-encoded (RFC 3986, 2). */
const TARGET = /^[\x21-\x7e]*$/;
const LENGTH = /^\d+$/;

/**
 * Reads each header once and keeps what a poll needs. One for a whole server: it holds the request that is being handled
 * until the next one is read, so nothing may be taken from it after an await.
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

  /** Each case compares a name of that length only: this runs for every header of every poll. */
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
          // Several lines are one list (RFC 9110, 5.3).
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

  /** What is wrong with the head, if anything. */
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

/** Whether what follows a request may be a body of it that the parser does not know of. */
export function mayHideBody(method: string, announcesBody: boolean): boolean {
  return !announcesBody && method !== "GET" && method !== "HEAD";
}

/** Whether the path and the query are as a URI writes them. A path that a route names in full is. */
export function isStrictTarget(req: HttpRequest): boolean {
  return TARGET.test(req.getUrl()) && TARGET.test(req.getQuery() ?? "");
}
