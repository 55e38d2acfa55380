/** What is copied from a request before the first await: the request object is dead after it. */
import type { HttpRequest, HttpResponse } from "uWebSockets.js";
import type { ClientAddress } from "./client-address.ts";
import { requestIdFrom } from "./request-id.ts";

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
