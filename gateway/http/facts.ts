/** What is copied from a request before the first await: the request object is dead after it. */
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

export function newRequestId(): string {
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
