/**
 * HTTP to the service: one request with pace and time-out, and an answer of limited size. It returns each failure as a value,
 * because a device handles every failure.
 */
import type { ErrorCode } from "./error-codes.ts";
import { isText, objectOf, parseJson, textOf } from "./guards.ts";
import { KIT_LIMITS } from "./limits.ts";
import type { Platform } from "./platform.ts";

export interface KitRequest {
  readonly method: "GET" | "POST";
  /** Below `devices/`, for example `me/`. */
  readonly path: string;
  readonly body?: object;
  readonly credential?: string;
  readonly etag?: string | undefined;
  /** True for a request that may use the last token of the burst. */
  readonly isUrgent?: boolean;
}

/** How a request failed. Status 0: this service has not answered, so the outcome of the request is unknown. */
export interface Failure {
  readonly status: number;
  readonly code: ErrorCode | "no_answer" | (string & {});
  /** For a person. */
  readonly detail: string;
  readonly request_id: string;
  /** The intent's status, on 409. */
  readonly intent_status: string;
  /** The wait that `Retry-After` asks for. */
  readonly retry_after_ms: number;
}

export interface Answer {
  readonly ok: true;
  readonly status: number;
  /** Undefined on 304. */
  readonly body: unknown;
  readonly etag: string | undefined;
  /** False when the service has stored a change that is not yet effective. */
  readonly isEffective: boolean;
}
export type Result<T> = (T & { readonly ok: true }) | { readonly ok: false; readonly failure: Failure };

export interface Transport {
  send(request: KitRequest): Promise<Result<Answer>>;
  /** Ends the pending requests: each is a failure without an answer. */
  abort(): void;
}

export function createTransport(deps: { readonly baseUrl: string; readonly platform: Platform }): Transport {
  const { baseUrl, platform } = deps;
  const root = `${baseUrl.replace(/\/+$/, "")}/api/payments/v1/devices/`;
  const pace = createPace(platform);
  const open = new Set<AbortController>();
  return {
    async send(request) {
      const abort = new AbortController();
      open.add(abort);
      let timer: unknown;
      try {
        await pace(request.isUrgent === true);
        if (abort.signal.aborted) return noAnswer("The request was cancelled.");
        const late = new Promise<never>((_resolve, reject) => {
          timer = platform.setTimeout(() => {
            // First, because the abort rejects, too. And a platform whose `fetch` ignores its signal must not stop the device.
            reject(new Error("The service did not answer in time."));
            abort.abort();
          }, KIT_LIMITS.requestTimeoutMs);
          abort.signal.addEventListener("abort", () => reject(new Error("The request was cancelled.")));
        });
        return await Promise.race([exchange(platform, root, request, abort.signal), late]);
      } catch (error) {
        return noAnswer(error instanceof Error ? error.message : "The service does not answer.");
      } finally {
        platform.clearTimeout(timer as never);
        open.delete(abort);
      }
    },
    abort() {
      open.forEach((request) => request.abort());
    },
  };
}

async function exchange(
  platform: Platform,
  root: string,
  request: KitRequest,
  signal: AbortSignal,
): Promise<Result<Answer>> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (request.credential !== undefined) headers["authorization"] = `Bearer ${request.credential}`;
  if (request.etag !== undefined) headers["if-none-match"] = request.etag;
  if (request.body !== undefined) headers["content-type"] = "application/json";
  // Node's types have no `cache`.
  const init: RequestInit & { readonly cache: "no-store" } = {
    method: request.method,
    headers,
    // A credential must not follow a redirect to another service, and no cache may answer for it.
    redirect: "error",
    cache: "no-store",
    body: request.body === undefined ? null : JSON.stringify(request.body),
    signal,
  };
  const response = await platform.fetch(root + request.path, init);
  const { status } = response;
  const header = (name: string): string | undefined => response.headers.get(name) ?? undefined;
  const text = status === 304 ? "" : await readBounded(response);
  const body = parseJson(text);
  if (status === 304 || (status >= 200 && status < 300))
    return { ok: true, status, body, etag: header("etag"), isEffective: header("x-effective") !== "false" };
  return { ok: false, failure: failureOf(status, body, header("retry-after")) };
}

async function readBounded(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  // An old WebView has no streams.
  if (reader === undefined) return bounded(await response.text());
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return bounded(text + decoder.decode());
    text += decoder.decode(value, { stream: true });
    if (text.length > KIT_LIMITS.answerMaxChars) {
      reader.cancel().catch(() => undefined);
      return bounded(text);
    }
  }
}

function bounded(text: string): string {
  if (text.length > KIT_LIMITS.answerMaxChars) throw new Error("The service's answer is too long.");
  return text;
}

const isErrorBody = objectOf<{ code: string }>({ code: isText });

/** An error without the service's error body comes from an intermediary, so it counts as no answer. */
function failureOf(status: number, body: unknown, retryAfter: string | undefined): Failure {
  const retry_after_ms = retryAfterMs(retryAfter);
  if (!isErrorBody(body))
    return { ...noAnswer(`HTTP ${status} without a body of the service.`).failure, retry_after_ms };
  const { code, detail, request_id, status: intentStatus } = body as Record<string, unknown> & { code: string };
  return {
    status,
    code,
    detail: textOf(detail) || code,
    request_id: textOf(request_id),
    intent_status: textOf(intentStatus),
    retry_after_ms,
  };
}

export function noAnswer(detail: string): { readonly ok: false; readonly failure: Failure } {
  return {
    ok: false,
    failure: { status: 0, code: "no_answer", detail, request_id: "", intent_status: "", retry_after_ms: 0 },
  };
}

/** `Retry-After` in its form of seconds, the only one that this service sends. */
function retryAfterMs(header: string | undefined): number {
  const match = /^\s*(\d{1,9})\s*$/.exec(header ?? "");
  return match === null ? 0 : Math.min(Number(match[1]) * 1_000, KIT_LIMITS.retryAfterMaxMs);
}

/** The same token bucket as in the service. Other requests leave one token for urgent ones, so a report never waits for polls. */
export function createPace(platform: Platform): (isUrgent: boolean) => Promise<void> {
  const { requestGapMs, burst, burstKept } = KIT_LIMITS;
  let tokens: number = burst;
  let countedAtMs = platform.nowMs();
  const take = (kept: number): number => {
    const nowMs = platform.nowMs();
    tokens = Math.min(burst, tokens + (nowMs - countedAtMs) / requestGapMs);
    countedAtMs = nowMs;
    if (tokens < 1 + kept) return (1 + kept - tokens) * requestGapMs;
    tokens -= 1;
    return 0;
  };
  return async (isUrgent) => {
    for (;;) {
      const waitMs = take(isUrgent ? 0 : burstKept);
      if (waitMs === 0) return;
      // A timer may fire a moment early.
      await new Promise<void>((resolve) => void platform.setTimeout(resolve, Math.ceil(waitMs) + 1));
    }
  };
}
