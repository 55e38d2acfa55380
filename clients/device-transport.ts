/** One request of a device or of another client: paced, with a time-out, its answer read with a bound and checked against its schema. */
import type { z } from "zod";
import { errorBodySchema } from "./device-contract.ts";
import { ServiceRefusal, ServiceUnreachable } from "./device-error.ts";
import { clientLimits } from "./limits.ts";

export interface DeviceRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Below the API, for example `devices/me/`. */
  readonly path: string;
  readonly body?: unknown;
  readonly credential?: string | undefined;
  /** Sent as `Idempotency-Key`. */
  readonly key?: string;
  readonly etag?: string | undefined;
  readonly signal: AbortSignal;
}

/** An answer; `body` is undefined on 304, when nothing changed. */
export interface DeviceAnswer<T> {
  readonly body: T | undefined;
  readonly etag: string | undefined;
  /** False when the service has stored a change that is not yet effective. */
  readonly isEffective: boolean;
}

export interface DeviceTransport {
  send<TSchema extends z.ZodType>(request: DeviceRequest, schema: TSchema): Promise<DeviceAnswer<z.infer<TSchema>>>;
}

export function createTransport(deps: {
  readonly baseUrl: string;
  /** Which of the service's APIs; the devices' by default. */
  readonly api?: "payments" | "backoffice" | "robotics";
  readonly pace: (signal: AbortSignal) => Promise<void>;
}): DeviceTransport {
  const root = `${deps.baseUrl.replace(/\/+$/, "")}/api/${deps.api ?? "payments"}/v1/`;
  return {
    async send(request, schema) {
      await deps.pace(request.signal);
      const response = await exchange(root, request);
      const etag = response.headers.get("etag") ?? undefined;
      const isEffective = response.headers.get("x-effective") !== "false";
      if (response.status === 304) return { body: undefined, etag, isEffective };
      const text = await readBounded(response);
      if (response.status < 200 || response.status > 299) throw refusal(response, text);
      const parsed = schema.safeParse(parseJson(text));
      if (!parsed.success) throw new ServiceUnreachable(`The answer to ${request.path} is not one of this service.`);
      return { body: parsed.data, etag, isEffective };
    },
  };
}

async function exchange(root: string, request: DeviceRequest): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (request.credential !== undefined) headers["authorization"] = `Bearer ${request.credential}`;
  if (request.etag !== undefined) headers["if-none-match"] = request.etag;
  if (request.key !== undefined) headers["idempotency-key"] = request.key;
  if (request.body !== undefined) headers["content-type"] = "application/json";
  try {
    return await fetch(root + request.path, {
      method: request.method,
      headers,
      // A credential must not follow a redirect to somebody else.
      redirect: "error",
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal: AbortSignal.any([request.signal, AbortSignal.timeout(clientLimits.requestTimeoutMs)]),
    });
  } catch (error) {
    throw new ServiceUnreachable(`The service at ${root} does not answer.`, { cause: error });
  }
}

async function readBounded(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.byteLength;
      if (bytes > clientLimits.responseMaxBytes) break;
      text += decoder.decode(chunk, { stream: true });
    }
  } catch (error) {
    throw new ServiceUnreachable("The service's answer broke off.", { cause: error });
  }
  if (bytes > clientLimits.responseMaxBytes) throw new ServiceUnreachable("The service's answer is too long.");
  return text + decoder.decode();
}

function refusal(response: Response, text: string): ServiceRefusal {
  const body = errorBodySchema.safeParse(parseJson(text));
  const code = body.success ? body.data.code : `http_${response.status}`;
  return new ServiceRefusal({
    httpStatus: response.status,
    code,
    detail: (body.success ? body.data.detail : undefined) ?? `The service answered ${response.status} ${code}.`,
    intentStatus: body.success ? body.data.status : undefined,
    retryAfterMs: parseRetryAfter(response.headers.get("retry-after")),
  });
}

/** `Retry-After` in its form of seconds, the only one that this service sends. */
export function parseRetryAfter(header: string | null): number | undefined {
  const match = /^\s*(\d{1,9})\s*$/.exec(header ?? "");
  return match === null ? undefined : Math.min(Number(match[1]) * 1_000, clientLimits.retryAfterMaxMs);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
