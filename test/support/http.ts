/** The HTTP client of the tests. It compares each answer with the OpenAPI document before it returns the answer. */
import { type Dispatcher, fetch as fetchBy } from "undici";
import { checkAnswer } from "./contract-check.ts";

export interface Sending {
  /** Becomes JSON. */
  readonly json?: unknown;
  /** Sent as it is, with its own content type in `headers`. */
  readonly body?: string | Uint8Array | FormData | URLSearchParams;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as a bearer token. */
  readonly token?: string;
  /** Rejects with a TimeoutError when the whole answer has not arrived by then. Unset: no limit. */
  readonly timeoutMs?: number;
  /** How it connects, for example from another source address, or to a server with a certificate that the test issued. */
  readonly dispatcher?: Dispatcher;
}

export interface Answer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  /** The body as it came. */
  readonly text: string;
  /** The parsed body; undefined when there was none. */
  readonly body: T;
}

/** The body of a refusal. */
export interface Refused {
  readonly code: string;
  readonly detail: string;
  readonly request_id: string;
  readonly status?: string;
  readonly reason?: string;
  readonly reason_number?: number;
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
}

/** Sends one request and checks its answer. `T` is what the test expects; the document has checked the answer. */
export async function send<T = Record<string, unknown>>(
  baseUrl: string,
  method: string,
  path: string,
  sending: Sending = {},
): Promise<Answer<T>> {
  const headers = new Headers(sending.headers);
  if (sending.token !== undefined) headers.set("authorization", `Bearer ${sending.token}`);
  if (sending.json !== undefined) headers.set("content-type", "application/json");
  const body = sending.json === undefined ? (sending.body ?? null) : JSON.stringify(sending.json);
  const { dispatcher, timeoutMs } = sending;
  const signal = timeoutMs === undefined ? null : AbortSignal.timeout(timeoutMs);
  const init = {
    method,
    headers: Object.fromEntries(headers),
    body: body as BodyInit | null,
    redirect: "manual",
    signal,
  } as const;
  const response =
    dispatcher === undefined
      ? await fetch(baseUrl + path, init)
      : await fetchBy(baseUrl + path, { ...(init as object), dispatcher });
  const text = await response.text();
  const answered = new Headers([...response.headers]);
  checkAnswer({ method, path, status: response.status, headers: answered, text });
  const isJson = answered.get("content-type") === "application/json";
  return {
    status: response.status,
    headers: answered,
    text,
    body: (isJson && text !== "" ? JSON.parse(text) : undefined) as T,
  };
}
