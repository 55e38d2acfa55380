/**
 * A client behind a load balancer. After a failure it repeats the request with the same key, at the next gateway unless the
 * answer was 429. It records each step and each failure in the history.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { ApiClient, Request } from "../support/api-client.ts";
import type { Answer, Refused } from "../support/http.ts";
import type { History } from "./history.ts";

/** A till or a device abandons an attempt after this time. */
const ATTEMPT_MS = 5_000;
/** Longer than any allowed outage. A station without a good answer for this time is stuck. */
const STUCK_MS = 90_000;
export const PAUSE_MS = 250;
/** With these statuses the service asks the client to repeat the request later. */
const LATER: ReadonlySet<number> = new Set([408, 429, 503]);

export class StuckError extends Error {}

/** Repeats the work until it is stopped or stuck; the history records a stuck station, and the trial fails. */
export async function workUntil(isStopped: () => boolean, work: () => Promise<void>): Promise<void> {
  try {
    while (!isStopped()) await work();
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
  }
}

export class TrialClient {
  readonly #clients: readonly ApiClient[];
  readonly #gateways: readonly string[];
  readonly #history: History;
  readonly #stationId: number;
  #current: number;

  constructor(deps: {
    readonly caller: ApiClient;
    readonly gateways: readonly string[];
    readonly history: History;
    readonly stationId: number;
  }) {
    this.#gateways = deps.gateways;
    this.#clients = deps.gateways.map((gateway) => deps.caller.at(gateway));
    this.#history = deps.history;
    this.#stationId = deps.stationId;
    this.#current = deps.stationId % deps.gateways.length;
  }

  /** The gateway that the next attempt goes to. */
  get gateway(): string {
    return this.#gateways[this.#current] as string;
  }

  /**
   * Sends the request until it gets a good answer, and returns it. Returns an error that a client would take for final only if
   * `isRight` accepts it; otherwise records the error as wrong and repeats the request. Throws StuckError after `STUCK_MS`.
   */
  async send<T>(
    step: string,
    method: string,
    path: string,
    request: Request = {},
    isRight: (answer: Answer<Refused>) => boolean = () => false,
  ): Promise<Answer<T>> {
    const startedAtMs = performance.now();
    let failedAtMs: number | undefined;
    for (;;) {
      const answer = await this.#attempt<T>(method, path, request);
      if (answer !== undefined && answer.status < 400) {
        const endedAtMs = performance.now();
        this.#history.steps.push({ stationId: this.#stationId, step, startedAtMs, endedAtMs, failedAtMs });
        return answer;
      }
      failedAtMs ??= performance.now();
      if (answer !== undefined && !LATER.has(answer.status)) {
        if (isRight(answer as Answer<Refused>)) return answer;
        this.#history.wrongErrors.push({
          stationId: this.#stationId,
          step,
          atMs: performance.now(),
          gateway: this.gateway,
          status: answer.status,
          text: answer.text.slice(0, 300),
        });
      }
      if (performance.now() - startedAtMs > STUCK_MS) {
        const fault = this.#history.duringFault(startedAtMs);
        const sentence = `Station ${this.#stationId}: ${method} ${path} had no good answer in ${STUCK_MS} ms${fault}; the last was ${answer?.text ?? "none"}.`;
        this.#history.stuck.push(sentence);
        throw new StuckError(sentence);
      }
      if (answer?.status !== 429) this.#current = (this.#current + 1) % this.#gateways.length;
      await delay(PAUSE_MS);
    }
  }

  async #attempt<T>(method: string, path: string, request: Request): Promise<Answer<T> | undefined> {
    const client = this.#clients[this.#current] as ApiClient;
    try {
      const answer = await client.call<T>(method, path, { ...request, timeoutMs: ATTEMPT_MS });
      if (LATER.has(answer.status)) {
        this.#history.countLater(`${answer.status} ${(answer.body as { readonly code: string }).code}`);
      }
      return answer;
    } catch (error) {
      // `fetch` rejects with a TypeError when the connection fails, and with a TimeoutError after the timeout.
      if (!(error instanceof TypeError) && (error as Error).name !== "TimeoutError") throw error;
      this.#history.countLater(error instanceof TypeError ? "no connection" : "no answer");
      return undefined;
    }
  }
}
