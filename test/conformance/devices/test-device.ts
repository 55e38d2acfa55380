/** A device for tests: it follows the guide for device makers, except for its flaw. */
import { setTimeout as delay } from "node:timers/promises";
import type { DeviceUnderTest, PaymentAct, Shown } from "../../../clients/conformance/devices/device.ts";

export type Flaw =
  | "claims its code twice"
  | "sends chunked bodies"
  | "sends a request without its credential"
  | "keeps its first credential"
  | "claims a code at each start"
  | "continues after 401"
  | "sends no heartbeat"
  | "sends no heartbeat while a guest pays"
  | "stops permanently at 403"
  | "polls too fast"
  | "ignores Retry-After of 429"
  | "ignores Retry-After of 503";

export interface Answer {
  readonly status: number;
  readonly etag: string;
  readonly json: Readonly<Record<string, unknown>>;
}

const HEARTBEAT_MS = 8_000;
const POLL_MS = 1_500;
const BLOCKED_MS = 3_000;
const ANSWER_MS = 10_000;

/** The data that survives a power cut. */
interface Stored {
  baseUrl: string;
  credential: string;
  code: string;
}

export abstract class TestDevice<TFlaw extends string> implements DeviceUnderTest {
  readonly stepMs = 20_000;
  readonly flaw: Flaw | TFlaw | undefined;
  protected readonly stored: Stored = { baseUrl: "", credential: "", code: "" };
  protected act: PaymentAct = "approve";
  #power = new AbortController();
  #isCollecting = false;
  readonly #notBeforeMs = new Map<string, number>();

  constructor(flaw?: Flaw | TFlaw) {
    this.flaw = flaw;
  }

  /** Does one poll and its effects. Resolves to the status of the answer, or to undefined without an answer. */
  protected abstract poll(signal: AbortSignal): Promise<number | undefined>;
  /** Runs before the first poll. */
  protected abstract started(signal: AbortSignal): Promise<void>;
  abstract finish(): Promise<void>;
  abstract shown(): Promise<Shown>;

  async enroll({ baseUrl, code }: { readonly baseUrl: string; readonly code: string }): Promise<void> {
    Object.assign(this.stored, { baseUrl, code });
    await this.#claim();
    if (this.flaw === "claims its code twice") await this.#claim();
    if (this.flaw === "sends a request without its credential") await this.send("GET", "me/");
    this.#start();
  }

  async payments(act: PaymentAct): Promise<void> {
    this.act = act;
  }

  async restart(): Promise<void> {
    this.#power.abort();
    this.#power = new AbortController();
    if (this.flaw === "claims a code at each start") await this.#claim();
    this.#start();
  }

  async stop(): Promise<void> {
    this.#power.abort();
  }

  protected async whileCollecting(work: () => Promise<void>): Promise<void> {
    this.#isCollecting = true;
    try {
      await work();
    } finally {
      this.#isCollecting = false;
    }
  }

  /** Resolves to undefined when there is no answer. */
  protected async send(
    method: string,
    operation: string,
    options: { json?: object; etag?: string } = {},
  ): Promise<Answer | undefined> {
    const signal = this.#power.signal;
    const waitMs = (this.#notBeforeMs.get(operation) ?? 0) - performance.now();
    if (waitMs > 0) await delay(waitMs, undefined, { signal });
    // An additional request, because presence needs the heartbeats and the polls.
    const isAnonymous =
      operation === "enroll/" || (operation === "me/" && this.flaw === "sends a request without its credential");
    try {
      const response = await fetch(`${this.stored.baseUrl}/api/payments/v1/devices/${operation}`, {
        method,
        headers: {
          ...(isAnonymous ? {} : { authorization: `Bearer ${this.stored.credential}` }),
          ...(options.etag ? { "if-none-match": options.etag } : {}),
          ...(options.json ? { "content-type": "application/json" } : {}),
        },
        ...this.#bodyOf(options.json),
        signal: AbortSignal.any([signal, AbortSignal.timeout(this.answerMs(operation))]),
      });
      const text = await response.text();
      const retryAfterMs = Number(response.headers.get("retry-after") ?? 0) * 1_000;
      // The flaw is about polls only: a report that is repeated too early would fail another capability.
      const isIgnored = method === "GET" && this.flaw === `ignores Retry-After of ${response.status}`;
      if (!isIgnored) this.#notBeforeMs.set(operation, performance.now() + retryAfterMs);
      return {
        status: response.status,
        etag: response.headers.get("etag") ?? "",
        json: text === "" ? {} : JSON.parse(text),
      };
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  protected answerMs(_operation: string): number {
    return ANSWER_MS;
  }

  #bodyOf(json: object | undefined): RequestInit & { readonly duplex?: "half" } {
    if (json === undefined) return {};
    const body = JSON.stringify(json);
    // The length of a stream is not known before its end.
    return this.flaw === "sends chunked bodies" ? { body: new Blob([body]).stream(), duplex: "half" } : { body };
  }

  async #claim(): Promise<void> {
    const answer = await this.send("POST", "enroll/", { json: { code: this.stored.code } });
    const isKept = this.stored.credential !== "" && this.flaw === "keeps its first credential";
    if (answer?.status === 201 && !isKept) this.stored.credential = String(answer.json["credential"]);
  }

  #start(): void {
    this.#power.abort();
    this.#power = new AbortController();
    const { signal } = this.#power;
    // Without power, a device stops all it does.
    this.#beat(signal).catch(() => undefined);
    this.started(signal)
      .then(() => this.#loop(signal))
      .catch(() => undefined);
  }

  async #beat(signal: AbortSignal): Promise<void> {
    if (this.flaw === "sends no heartbeat") return;
    for (;;) {
      const isPaused = this.#isCollecting && this.flaw === "sends no heartbeat while a guest pays";
      const answer = isPaused ? undefined : await this.send("POST", "heartbeat/", { json: { summary: {} } });
      if (answer?.status === 401 && this.flaw !== "continues after 401") return;
      await delay(HEARTBEAT_MS, undefined, { signal });
    }
  }

  async #loop(signal: AbortSignal): Promise<void> {
    for (;;) {
      const status = await this.poll(signal);
      if (status === 401 && this.flaw !== "continues after 401") return;
      if (status === 403 && this.flaw === "stops permanently at 403") return;
      const pauseMs = this.flaw === "polls too fast" ? 300 : POLL_MS;
      await delay(status === 403 ? BLOCKED_MS : this.pollMs(pauseMs), undefined, { signal });
    }
  }

  protected pollMs(usualMs: number): number {
    return usualMs;
  }
}
