/**
 * HTTP to the service: one request with pace and time-out, and an answer of limited size that a schema checks. Also the errors
 * of a request, and trust in the service's certificate.
 */

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { checkServerIdentity, getCACertificates } from "node:tls";
import { Agent, buildConnector, setGlobalDispatcher } from "undici";
import { z } from "zod";
import { parseJson } from "../device-kit/guards.ts";
import { clientLimits } from "../limits.ts";
import { noAnswer } from "./no-answer.ts";

export interface ServiceRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** The path after the API's root, for example `session/`. */
  readonly path: string;
  readonly body?: unknown;
  readonly credential?: string | undefined;
  /** Becomes `Idempotency-Key`. */
  readonly key?: string;
  readonly signal: AbortSignal;
}

export interface ServiceAnswer<T> {
  readonly body: T;
  /** False when the service has stored a change that is not yet effective. */
  readonly isEffective: boolean;
}

export interface ServiceTransport {
  send<TSchema extends z.ZodType>(request: ServiceRequest, schema: TSchema): Promise<ServiceAnswer<z.infer<TSchema>>>;
}

export function createTransport(deps: {
  readonly baseUrl: string;
  /** One of the service's APIs. The device kit has its own client for the device API. */
  readonly api: "backoffice" | "robotics" | "reconciliation";
  readonly pace: (signal: AbortSignal) => Promise<void>;
  /** The longest answer that the client reads. */
  readonly responseMaxBytes?: number;
}): ServiceTransport {
  const { responseMaxBytes = clientLimits.responseMaxBytes } = deps;
  const root = `${deps.baseUrl.replace(/\/+$/, "")}/api/${deps.api}/v1/`;
  return {
    async send(request, schema) {
      await deps.pace(request.signal);
      const response = await exchange(root, request);
      const isEffective = response.headers.get("x-effective") !== "false";
      const text = await readBounded(response, responseMaxBytes);
      if (response.status < 200 || response.status > 299) throw serviceError(response, text);
      const parsed = schema.safeParse(parseJson(text));
      if (!parsed.success) throw new ServiceUnreachable(`The answer to ${request.path} is not one of this service.`);
      return { body: parsed.data, isEffective };
    },
  };
}

const errorBodySchema = z.looseObject({
  code: z.string(),
  detail: z.string().optional(),
  /** The reason of a `conflict`. */
  reason: z.string().optional(),
});

async function exchange(root: string, request: ServiceRequest): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (request.credential !== undefined) headers["authorization"] = `Bearer ${request.credential}`;
  if (request.key !== undefined) headers["idempotency-key"] = request.key;
  if (request.body !== undefined) headers["content-type"] = "application/json";
  try {
    return await fetch(root + request.path, {
      method: request.method,
      headers,
      // A credential must not follow a redirect to another service.
      redirect: "error",
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal: AbortSignal.any([request.signal, AbortSignal.timeout(clientLimits.requestTimeoutMs)]),
    });
  } catch (error) {
    throw new ServiceUnreachable(noAnswer(root, error), { cause: error });
  }
}

async function readBounded(response: Response, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) break;
      text += decoder.decode(chunk, { stream: true });
    }
  } catch (error) {
    throw new ServiceUnreachable("The service's answer broke off.", { cause: error });
  }
  if (bytes > maxBytes) throw new ServiceUnreachable("The service's answer is too long.");
  return text + decoder.decode();
}

function serviceError(response: Response, text: string): ServiceError {
  const body = errorBodySchema.safeParse(parseJson(text));
  const code = body.success ? body.data.code : `http_${response.status}`;
  return new ServiceError({
    httpStatus: response.status,
    code,
    detail: (body.success ? body.data.detail : undefined) ?? `The service answered ${response.status} ${code}.`,
    reason: body.success ? body.data.reason : undefined,
    retryAfterMs: parseRetryAfter(response.headers.get("retry-after")),
  });
}

/** `Retry-After` in its form of seconds, the only one that this service sends. */
export function parseRetryAfter(header: string | null): number | undefined {
  const match = /^\s*(\d{1,9})\s*$/.exec(header ?? "");
  return match === null ? undefined : Math.min(Number(match[1]) * 1_000, clientLimits.retryAfterMaxMs);
}

/** The service answered with an error body (contract, "Errors"). */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly httpStatus: number;
  /** The stable code of the error body; `http_<status>` when the body carried none. */
  readonly code: string;
  /** The reason, when the code alone does not name it. */
  readonly reason: string | undefined;
  /** What `Retry-After` asked for. */
  readonly retryAfterMs: number | undefined;

  constructor(answer: {
    httpStatus: number;
    code: string;
    detail: string;
    reason: string | undefined;
    retryAfterMs: number | undefined;
  }) {
    super(answer.detail);
    this.httpStatus = answer.httpStatus;
    this.code = answer.code;
    this.reason = answer.reason;
    this.retryAfterMs = answer.retryAfterMs;
  }
}

/** No answer of this service arrived, so the outcome of the request is unknown. */
export class ServiceUnreachable extends Error {
  override readonly name = "ServiceUnreachable";
}

/** Whether the same request may be sent again as it is. Reads and requests with a key are safe to repeat. */
export function isRetryable(error: unknown): boolean {
  if (error instanceof ServiceUnreachable) return true;
  return (
    error instanceof ServiceError && (error.httpStatus === 429 || error.httpStatus === 408 || error.httpStatus >= 500)
  );
}

/**
 * Makes `fetch` trust this certificate in addition to Node's authorities. It needs no authority's signature and may name another
 * host: the server must present exactly this certificate. Each connection reads the file again, because a restarted service may
 * present a renewed certificate.
 */
export function trustCertificate(certificateFile: string): void {
  const connect: buildConnector.connector = (target, done) => {
    try {
      buildConnector(trustOf(readFileSync(certificateFile, "utf8")))(target, done);
    } catch (error) {
      done(error instanceof Error ? error : new Error("The certificate cannot be read."), null);
    }
  };
  setGlobalDispatcher(new Agent({ connect }));
}

function trustOf(pem: string): buildConnector.BuildOptions {
  const trusted = new X509Certificate(pem);
  return {
    ca: [...getCACertificates("default"), pem],
    // Without its authority the chain ends at the certificate itself.
    allowPartialTrustChain: true,
    checkServerIdentity: (host, shown) =>
      shown.raw.equals(trusted.raw) ? undefined : checkServerIdentity(host, shown),
  };
}
