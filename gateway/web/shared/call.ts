/**
 * How a page calls the API:
 *
 *   const result = await call("GET /api/cashier/v1/stations/{station_id}/routes/", { path: { station_id } });
 *   if (result.ok) show(result.reply); else showFailure(result);
 *
 * The compiler checks the name, the request and the reply against the route table. A call never throws, and it ends at its
 * deadline at the latest. The session is a cookie; requests go only to this origin.
 */
import { signal } from "@preact/signals";
import { answerDate } from "./clock.ts";
import type { Failure, NoAnswerCode } from "./failures.ts";
import type { ErrorBody, OperationName, ReplyOf, RequestOf } from "./operations.ts";

/** Longer than the gateway takes to answer (12 s at most), so that the page receives the gateway's error. */
export const DEADLINE_MS = 15_000;

interface Success<T> {
  readonly ok: true;
  readonly reply: T;
}

export type Result<T> = Success<T> | Failure;

/** True while the browser or the last call reports that the page cannot reach the service. Pages disable what needs it. */
export const isOffline = signal(false);
/** True when an answer has reported that there is no session; the page then shows its sign-in. */
export const hasNoSession = signal(false);

addEventListener("offline", () => {
  isOffline.value = true;
});
addEventListener("online", () => {
  isOffline.value = false;
});

/** How often an offline page checks whether the service answers again. */
const PROBE_MS = 2_000;

// Some views do not poll. Without this check their buttons would stay disabled after an outage.
setInterval(() => {
  if (!isOffline.peek() || document.hidden) return;
  const controller = new AbortController();
  setTimeout(() => controller.abort(), PROBE_MS);
  const isBack = (): void => {
    isOffline.value = false;
  };
  fetch("/healthz", { cache: "no-store", signal: controller.signal }).then(isBack, () => undefined);
}, PROBE_MS);

/**
 * An idempotency key. Make it when the form or button appears, not at the click: two clicks, or a retry, are then one
 * request. Make a new key when the content of the request changes.
 */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether the outcome is unknown: the page then repeats the same request with the same key. */
export function isUnknown({ code }: Failure): boolean {
  const codes: readonly string[] = ["offline", "no_answer", "answer_unreadable", "unavailable", "internal_error"];
  return codes.includes(code);
}

/** With these codes the service has done nothing. They are not about what the request asks for. */
const NOTHING_DONE: readonly string[] = [
  "request_timeout",
  "session_missing",
  "session_invalid",
  "throttled",
  "replica_stale",
  "storage_low",
  "busy",
];

/**
 * Whether the next attempt is the same request, with the same key: the outcome is unknown, or this attempt did nothing. The
 * second case also keeps the key, because an earlier attempt may have had an unknown outcome.
 */
export function isStillOpen(failure: Failure): boolean {
  return isUnknown(failure) || NOTHING_DONE.includes(failure.code);
}

interface CallOptions {
  readonly deadlineMs?: number;
  /** Ends the call early; it then fails with `no_answer`. */
  readonly signal?: AbortSignal;
}

interface LooseRequest {
  readonly path?: Readonly<Record<string, number>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly key?: string;
}

type Arguments<N extends OperationName> =
  object extends RequestOf<N>
    ? readonly [request?: RequestOf<N>, options?: CallOptions]
    : readonly [request: RequestOf<N>, options?: CallOptions];

export async function call<N extends OperationName>(name: N, ...args: Arguments<N>): Promise<Result<ReplyOf<N>>> {
  const [request = {}, options = {}] = args as readonly [LooseRequest?, CallOptions?];
  return (await send(name, request, options)) as Result<ReplyOf<N>>;
}

/** The address of an operation that is a GET, for links, downloads and WebSockets. */
export function addressOf<N extends Extract<OperationName, `GET ${string}`>>(name: N, request: RequestOf<N>): string {
  return addressIn(name, request as unknown as LooseRequest);
}

function addressIn(name: string, { path = {}, query = {} }: LooseRequest): string {
  const filled = name.slice(name.indexOf(" ") + 1).replace(/\{(\w+)\}/g, (_whole, id: string) => String(path[id]));
  const search = new URLSearchParams();
  for (const [field, value] of Object.entries(query)) if (value !== undefined) search.set(field, String(value));
  const text = search.toString();
  return text === "" ? filled : `${filled}?${text}`;
}

async function send(name: string, request: LooseRequest, options: CallOptions): Promise<Result<unknown>> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const timer = setTimeout(abort, options.deadlineMs ?? DEADLINE_MS);
  options.signal?.addEventListener("abort", abort);
  const headers: Record<string, string> = { Accept: "application/json" };
  if (request.body !== undefined) headers["Content-Type"] = "application/json";
  if (request.key !== undefined) headers["Idempotency-Key"] = request.key;
  const init: RequestInit = {
    method: name.slice(0, name.indexOf(" ")),
    headers,
    credentials: "same-origin",
    cache: "no-store",
    signal: controller.signal,
  };
  if (request.body !== undefined) init.body = JSON.stringify(request.body);
  try {
    const answer = await fetch(addressIn(name, request), init);
    const text = await answer.text();
    isOffline.value = false;
    answerDate(answer.headers.get("date"));
    return resultOf(answer, text);
  } catch {
    // `fetch` throws the same error for every network failure. Only an abort is recognizable, by the signal.
    if (controller.signal.aborted) return noAnswer("no_answer");
    isOffline.value = true;
    return noAnswer("offline");
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener("abort", abort);
  }
}

const noAnswer = (code: NoAnswerCode, httpStatus = 0): Failure => ({
  ok: false,
  code,
  detail: "",
  httpStatus,
  retryAfterMs: null,
});

function resultOf(answer: Response, text: string): Result<unknown> {
  const body = parsed(answer, text);
  if (answer.ok && body !== undefined) {
    hasNoSession.value = false;
    return { ok: true, reply: body };
  }
  if (answer.ok || body === undefined || body === null || typeof (body as ErrorBody).code !== "string") {
    return noAnswer("answer_unreadable", answer.status);
  }
  const { code } = body as ErrorBody;
  if (code === "session_missing" || code === "session_invalid") hasNoSession.value = true;
  const seconds = Number(answer.headers.get("retry-after"));
  return {
    ...(body as ErrorBody),
    ok: false,
    httpStatus: answer.status,
    retryAfterMs: seconds > 0 ? seconds * 1_000 : null,
  };
}

/** Undefined when the body cannot be read: invalid JSON, or an error that is no JSON. */
function parsed(answer: Response, text: string): unknown {
  if (text === "") return null;
  if (!(answer.headers.get("content-type") ?? "").startsWith("application/json")) return answer.ok ? text : undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
