/**
 * A proxy between the device under test and the service. It records each request with its answer, and injects a fault when a
 * check asks for one. For the device this looks like a service with the fault.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parseJson } from "../../device-kit/guards.ts";
import { clientLimits } from "../../limits.ts";
import { DEVICE_ROOT } from "../http.ts";
import { CannotRun } from "../world.ts";

/** One request of the device. Times are of the monotonic clock, in milliseconds. */
export interface Observed {
  readonly method: string;
  readonly operation: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: Readonly<Record<string, unknown>>;
  readonly atMs: number;
  /** The answer that the device received; undefined while it waits, and when it received none. */
  answer: ObservedAnswer | undefined;
  /** The answer of the service; undefined when the proxy did not forward the request. */
  served: ObservedAnswer | undefined;
}

export interface ObservedAnswer {
  readonly status: number;
  readonly etag: string;
  readonly json: Readonly<Record<string, unknown>>;
  readonly atMs: number;
}

/** The fault of one request. */
export type Fault =
  /** The proxy refuses the request and does not forward it. */
  | {
      readonly kind: "refuse";
      readonly status: 429 | 502 | 503;
      readonly code: string;
      readonly retryAfterSeconds: number;
    }
  /** The service answers, but the device receives nothing. */
  | { readonly kind: "lose answer" }
  /** The proxy does not forward the request, and the device receives nothing. */
  | { readonly kind: "no connection" }
  /** The body of the answer arrives slowly, in small parts. */
  | { readonly kind: "slow body"; readonly takesMs: number }
  /** The proxy changes the answer. */
  | { readonly kind: "change"; readonly change: (answer: ChangedAnswer) => void }
  /** The proxy forwards the request without these headers. */
  | { readonly kind: "drop request headers"; readonly names: readonly string[] };

export interface ChangedAnswer {
  readonly headers: Map<string, string>;
  json: Record<string, unknown>;
}

interface Rule {
  readonly operation: string | undefined;
  readonly fault: Fault;
  left: number;
}

export interface ObserverOptions {
  /** The address of the service. */
  readonly baseUrl: string;
  readonly host: string;
  /** 0 chooses any free port. */
  readonly port: number;
}

export class Observer {
  readonly #server: Server;
  readonly #service: string;
  readonly #rules: Rule[] = [];
  readonly #requests: Observed[] = [];
  #address = "";

  private constructor(service: string) {
    this.#service = service;
    this.#server = createServer((request, response) => {
      this.#exchange(request, response).catch(() => response.destroy());
    });
  }

  /** Throws `CannotRun` when it is not possible to listen there. */
  static async start({ baseUrl, host, port }: ObserverOptions): Promise<Observer> {
    const observer = new Observer(baseUrl);
    const server = observer.#server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", ({ message }) =>
        reject(new CannotRun(`It is not possible to listen at ${host}: ${message}.`)),
      );
      server.listen(port, host, resolve);
    });
    const address = server.address();
    observer.#address = `http://${host}:${typeof address === "object" && address !== null ? address.port : port}`;
    return observer;
  }

  /** The address to which the device sends its requests. */
  get baseUrl(): string {
    return this.#address;
  }

  /** All requests so far, the oldest first. */
  get requests(): readonly Observed[] {
    return this.#requests;
  }

  /** Applies the fault to the next requests of the operation, of any where it is undefined. Returns the function that ends it. */
  interfere(operation: string | undefined, fault: Fault, times = 1): () => void {
    const rule: Rule = { operation, fault, left: times };
    this.#rules.push(rule);
    return () => {
      rule.left = 0;
    };
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #exchange(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const atMs = performance.now();
    const text = await bodyOf(request);
    const url = request.url ?? "/";
    const operation = url.startsWith(DEVICE_ROOT) ? url.slice(DEVICE_ROOT.length).replace(/\?.*$/s, "") : url;
    const observed: Observed = {
      method: request.method ?? "GET",
      operation,
      headers: request.headers,
      text,
      json: objectIn(text),
      atMs,
      answer: undefined,
      served: undefined,
    };
    this.#requests.push(observed);
    if (request.headers["transfer-encoding"] !== undefined) return refuse(response, observed, CHUNKED);
    const faults = this.#take(operation);
    const refusal = faults.find((fault) => fault.kind === "refuse");
    if (refusal !== undefined) return refuse(response, observed, { ...refusal, detail: "Try again later." });
    if (faults.some(({ kind }) => kind === "no connection")) return void response.destroy();
    const dropped = faults.flatMap((fault) => (fault.kind === "drop request headers" ? fault.names : []));
    const served = await this.#ask(request, text, dropped);
    observed.served = answered(served);
    if (faults.some(({ kind }) => kind === "lose answer")) return void response.destroy();
    for (const fault of faults) if (fault.kind === "change" && served.text !== "") change(served, fault.change);
    const slow = faults.find((fault) => fault.kind === "slow body");
    response.writeHead(served.status, Object.fromEntries(served.headers));
    if (slow !== undefined) await trickle(response, served.text, slow.takesMs);
    else response.end(served.text);
    observed.answer = answered(served);
  }

  #take(operation: string): readonly Fault[] {
    const rules = this.#rules.filter((rule) => rule.left > 0 && (rule.operation ?? operation) === operation);
    for (const rule of rules) rule.left -= 1;
    return rules.map(({ fault }) => fault);
  }

  async #ask(request: IncomingMessage, text: string, dropped: readonly string[]): Promise<Served> {
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers)) {
      if (typeof value === "string" && !OF_THE_CONNECTION.includes(name) && !dropped.includes(name))
        headers.set(name, value);
    }
    const answer = await fetch(this.#service + (request.url ?? "/"), {
      method: request.method ?? "GET",
      headers,
      body: text === "" ? null : text,
      redirect: "manual",
      signal: AbortSignal.timeout(clientLimits.conformanceAnswerMs),
    });
    const kept = [...answer.headers].filter(([name]) => !OF_THE_CONNECTION.includes(name));
    return { status: answer.status, headers: new Map(kept), text: await answer.text() };
  }
}

interface Served {
  readonly status: number;
  readonly headers: Map<string, string>;
  text: string;
}

/** Headers that belong to one connection or depend on the body. */
const OF_THE_CONNECTION: readonly string[] = [
  "connection",
  "content-encoding",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
];

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > clientLimits.responseMaxBytes) throw new Error("The body is too large.");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function objectIn(text: string): Record<string, unknown> {
  const value = parseJson(text);
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

const answered = ({ status, headers, text }: Served): ObservedAnswer => ({
  status,
  etag: headers.get("etag") ?? "",
  json: objectIn(text),
  atMs: performance.now(),
});

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly retryAfterSeconds?: number;
}

/** The gateway refuses these bodies too. The proxy reads the whole body, so the gateway would not receive the chunks. */
const CHUNKED: Refusal = {
  status: 411,
  code: "length_required",
  detail: "Send the body with a Content-Length; chunked bodies are not accepted here.",
};

function refuse(response: ServerResponse, observed: Observed, refusal: Refusal): void {
  const { status, code, detail, retryAfterSeconds } = refusal;
  const json = { code, detail, request_id: "conformance" };
  const retryAfter = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
  response.writeHead(status, { "content-type": "application/json", ...retryAfter });
  response.end(JSON.stringify(json));
  observed.answer = { status, etag: "", json, atMs: performance.now() };
}

function change(served: Served, by: (answer: ChangedAnswer) => void): void {
  const answer: ChangedAnswer = { headers: served.headers, json: objectIn(served.text) };
  by(answer);
  served.text = JSON.stringify(answer.json);
}

/** A device whose time-out restarts at each byte would never time out between these parts. */
const PARTS = 20;

async function trickle(response: ServerResponse, text: string, takesMs: number): Promise<void> {
  const length = Math.ceil(text.length / PARTS);
  for (let at = 0; at < text.length; at += length) {
    if (response.destroyed) return;
    response.write(text.slice(at, at + length));
    await delay(takesMs / PARTS);
  }
  response.end();
}
