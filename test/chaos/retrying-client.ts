/**
 * A client that retries. It repeats a request that may be repeated, with the same key and the same body and not before
 * `Retry-After`, until it has an answer or its time has ended.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { ApiClient, Request } from "../support/api-client.ts";
import type { Answer } from "../support/http.ts";

/** The limit of one request with all attempts: long enough for several outages in a row. */
const RETRY_LIMIT_MS = 60_000;
/** The pause after a connection was refused or broken, because there is no `Retry-After` then. */
const BROKEN_PAUSE_MS = 200;
/** Statuses after which the client retries: body too slow, throttled, not available. */
const LATER = new Set([408, 429, 503]);

export class RetryingClient {
  /** The longest time from a request's first failure to its answer. */
  longestOutageMs = 0;
  /** The number of failures of each kind. */
  readonly failures = new Map<string, number>();

  /** Sends the request until it has a final answer, which may be a refusal. Throws when the time has ended. */
  async call<T>(client: ApiClient, method: string, path: string, request?: Request): Promise<Answer<T>> {
    const answers: string[] = [];
    let failedAtMs: number | undefined;
    for (;;) {
      const outcome = await attempt(() => client.call<T>(method, path, request));
      if (!("failure" in outcome)) {
        if (failedAtMs !== undefined)
          this.longestOutageMs = Math.max(this.longestOutageMs, performance.now() - failedAtMs);
        return outcome;
      }
      failedAtMs ??= performance.now();
      answers.push(`${Math.round(performance.now() - failedAtMs)} ms: ${outcome.failure}`);
      this.failures.set(outcome.failure, (this.failures.get(outcome.failure) ?? 0) + 1);
      if (performance.now() - failedAtMs > RETRY_LIMIT_MS) {
        throw new Error(`${method} ${path} had no answer in ${RETRY_LIMIT_MS} ms:\n${answers.slice(-20).join("\n")}`);
      }
      await delay(outcome.pauseMs);
    }
  }
}

async function attempt<T>(
  send: () => Promise<Answer<T>>,
): Promise<Answer<T> | { readonly failure: string; readonly pauseMs: number }> {
  let answer: Answer<T>;
  try {
    answer = await send();
  } catch (error) {
    // `fetch` rejects with a TypeError only when the connection fails.
    if (!(error instanceof TypeError)) throw error;
    return { failure: "no connection", pauseMs: BROKEN_PAUSE_MS };
  }
  if (!LATER.has(answer.status)) return answer;
  const { code } = answer.body as { readonly code: string };
  return { failure: `${answer.status} ${code}`, pauseMs: Number(answer.headers.get("retry-after") ?? "1") * 1_000 };
}
