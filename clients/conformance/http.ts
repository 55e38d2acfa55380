/** HTTP for the suite: any request, the unchanged answer, and the exchange for the report of a failed check. */
import { setTimeout as delay } from "node:timers/promises";
import { parseJson } from "../device-kit/guards.ts";
import { noAnswer } from "../http/no-answer.ts";
import { clientLimits } from "../limits.ts";

export interface SuiteRequest {
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent unchanged; the headers contain its `content-type`. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface SuiteAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined when the text is not JSON. */
  readonly body: unknown;
}

export interface Exchange {
  readonly method: string;
  readonly url: string;
  readonly request: SuiteRequest;
  /** The sender. The curl line has a variable with this name instead of the secret. */
  readonly party: string;
  readonly hasToken: boolean;
  readonly answer: SuiteAnswer | undefined;
}

/** The state that all parties of one run share. */
export interface Wire {
  readonly baseUrl: string;
  readonly signal: AbortSignal;
  /** The newest exchange of any party. */
  last: Exchange | undefined;
  /** Answers to devices that break a rule for all answers; checked at the end. */
  readonly oddities: Oddity[];
  readonly clock: ServerClock;
  /** The device operations that the service has answered with 200, such as "GET me/". */
  readonly served: Set<string>;
}

/**
 * The service's clock compared with the suite's monotonic clock, in milliseconds. The service reads each `server_time` between
 * request and answer. So the difference has a lower and an upper bound, over all answers of the run.
 */
export interface ServerClock {
  firstAtMs: number | undefined;
  leastMs: number;
  mostMs: number;
}

export interface Oddity {
  readonly kind: "credential_repeated" | "throttled_at_pace" | "refusal_without_code" | "not_json" | "cacheable";
  /** The request whose answer breaks the rule. */
  readonly where: string;
}

export const newWire = (baseUrl: string, signal: AbortSignal): Wire => ({
  baseUrl: baseUrl.replace(/\/+$/, ""),
  signal,
  last: undefined,
  oddities: [],
  clock: { firstAtMs: undefined, leastMs: -Infinity, mostMs: Infinity },
  served: new Set(),
});

/** The service did not answer at all, so the suite could not run. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** Requests that the suite sends at once with a credential, one less than allowed; then one a second (contract, "Limits" 1). */
const BURST = 9;
const GAP_MS = 1_050;

export const DEVICE_ROOT = "/api/payments/v1/devices/";

/** One party at one API: a person with a session, a device with a credential, or a party without a token. */
export class Party {
  readonly #wire: Wire;
  readonly #name: string;
  readonly #root: string;
  readonly #token: string | undefined;
  readonly #isPaced: boolean;
  #tokens = BURST;
  #countedAtMs = performance.now();

  constructor(wire: Wire, name: string, root: string, token?: string, isPaced = false) {
    this.#wire = wire;
    this.#name = name;
    this.#root = root;
    this.#token = token;
    this.#isPaced = isPaced;
  }

  get token(): string {
    return this.#token ?? "";
  }

  /** The same party with another wire. */
  over(wire: Wire): Party {
    return new Party(wire, this.#name, this.#root, this.#token, this.#isPaced);
  }

  /** The same party at another API, without waits for the throttle. */
  at(root: string): Party {
    return new Party(this.#wire, this.#name, root, this.#token);
  }

  /** The same party without waits for the throttle. */
  unpaced(): Party {
    return new Party(this.#wire, this.#name, this.#root, this.#token);
  }

  async send(method: string, path: string, request: SuiteRequest = {}): Promise<SuiteAnswer> {
    if (this.#isPaced) await this.#pace();
    const url = this.#wire.baseUrl + this.#root + path;
    const exchange = { method, url, request, party: this.#name, hasToken: this.#token !== undefined };
    this.#wire.last = { ...exchange, answer: undefined };
    const sentAtMs = performance.now();
    const answer = await exchangeOver(this.#wire, url, {
      method,
      headers: {
        accept: "application/json",
        ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(request.json === undefined ? {} : { "content-type": "application/json" }),
        ...request.headers,
      },
      body: request.json === undefined ? (request.body ?? null) : JSON.stringify(request.json),
    });
    this.#wire.last = { ...exchange, answer };
    if (this.#root === DEVICE_ROOT) {
      this.#judge(`${method} ${path}`, answer);
      if (answer.status === 200) this.#wire.served.add(`${method} ${path}`);
      this.#readClock(answer, sentAtMs);
    }
    return answer;
  }

  /**
   * Repeats a change until it is effective. A service whose relay is silent answers 202 and stores the change, and this is no
   * fault. Returns the last answer, which is 202 when the time is over.
   */
  async change(method: string, path: string, request: SuiteRequest = {}): Promise<SuiteAnswer> {
    const deadlineMs = performance.now() + clientLimits.conformanceEffectMs;
    for (;;) {
      const answer = await this.send(method, path, request);
      if (answer.status !== 202 || performance.now() > deadlineMs) return answer;
      await delay(clientLimits.conformancePollMs, undefined, { signal: this.#wire.signal });
    }
  }

  #judge(where: string, { status, text, body, headers }: SuiteAnswer): void {
    const note = (kind: Oddity["kind"], isOdd: boolean): void => {
      if (isOdd) this.#wire.oddities.push({ kind, where });
    };
    note("credential_repeated", this.token !== "" && text.includes(this.token));
    note("throttled_at_pace", this.#isPaced && status === 429);
    note("refusal_without_code", status >= 400 && typeof (body as { code?: unknown } | undefined)?.code !== "string");
    note("cacheable", !/\bno-(?:cache|store)\b/.test(headers.get("cache-control") ?? ""));
    note("not_json", text !== "" && !/^application\/json\b/.test(headers.get("content-type") ?? ""));
  }

  #readClock({ body }: SuiteAnswer, sentAtMs: number): void {
    const serverTimeMs = Date.parse(String((body as { server_time?: unknown } | undefined)?.server_time));
    if (Number.isNaN(serverTimeMs)) return;
    const { clock } = this.#wire;
    clock.firstAtMs ??= sentAtMs;
    clock.leastMs = Math.max(clock.leastMs, serverTimeMs - performance.now());
    clock.mostMs = Math.min(clock.mostMs, serverTimeMs - sentAtMs);
  }

  /** Waits so that the throttle never refuses this credential: the checks are about other answers. */
  async #pace(): Promise<void> {
    const nowMs = performance.now();
    this.#tokens = Math.min(BURST, this.#tokens + (nowMs - this.#countedAtMs) / GAP_MS) - 1;
    this.#countedAtMs = nowMs;
    if (this.#tokens < 0) await delay(-this.#tokens * GAP_MS, undefined, { signal: this.#wire.signal });
  }
}

async function exchangeOver(wire: Wire, url: string, init: RequestInit): Promise<SuiteAnswer> {
  try {
    const timeout = AbortSignal.timeout(clientLimits.conformanceAnswerMs);
    const response = await fetch(url, { ...init, redirect: "manual", signal: AbortSignal.any([wire.signal, timeout]) });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: parseJson(text) };
  } catch (error) {
    if (wire.signal.aborted) throw error;
    throw new NoAnswer(noAnswer(url, error), { cause: error });
  }
}

/** Quotes a text as one shell word on one line: a device may have sent line ends and escape sequences. */
function quoted(text: string): string {
  if (!/\p{Cc}/u.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`;
  const escaped = text.replaceAll(/['\\]|\p{Cc}/gu, (character) =>
    "'\\".includes(character)
      ? `\\${character}`
      : [...Buffer.from(character)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join(""),
  );
  return `$'${escaped}'`;
}

/** A shell line that repeats the exchange, with variables instead of secrets. */
export function curlLine({ method, url, request, party, hasToken }: Exchange): string {
  const headers = Object.entries(request.headers ?? {}).map(([name, value]) => ` -H ${quoted(`${name}: ${value}`)}`);
  const json = request.json === undefined ? "" : ` --json ${quoted(JSON.stringify(request.json))}`;
  // Other options read a file when the text begins with "@".
  const body = request.body === undefined ? "" : ` --data-raw ${quoted(request.body)}`;
  // Curl would read brackets as a list of addresses.
  const glob = /[[\]{}]/.test(url) ? " --globoff" : "";
  const token = hasToken ? ` -H "Authorization: Bearer $${party.toUpperCase()}_TOKEN"` : "";
  return `curl -i -X ${method}${token}${headers.join("")}${json}${body}${glob} ${quoted(url)}`;
}
