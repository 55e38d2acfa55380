/** The HTTP client of the tests: each answer is held against the OpenAPI document before the test sees it. */
import { checkAnswer } from "./contract-check.ts";

export interface Sending {
  /** Becomes JSON. */
  readonly json?: unknown;
  /** Sent as it is, with its own content type in `headers`. */
  readonly body?: string | Uint8Array | FormData | URLSearchParams;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as a bearer token. */
  readonly token?: string;
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
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
}

/** Sends one request and checks its answer. `T` is what the test expects; the document has checked what came. */
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
  const response = await fetch(baseUrl + path, { method, headers, body, redirect: "manual" });
  const text = await response.text();
  checkAnswer({ method, path, status: response.status, headers: response.headers, text });
  const isJson = response.headers.get("content-type") === "application/json";
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (isJson && text !== "" ? JSON.parse(text) : undefined) as T,
  };
}
