/** Calls a provider over HTTP: one deadline for everything, a bounded JSON answer, no redirects, TLS verified. */
import { Agent, type Dispatcher } from "undici";
import { currentRequestId } from "../../runtime/log.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import type { CallOperation, ProviderMetrics } from "../metrics.ts";
import { ProviderError } from "./adapter.ts";
import { parseJsonBody } from "./reading.ts";

interface ProviderCall {
  /** For the metrics. */
  readonly operation: CallOperation;
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly apiKey: string | undefined;
  readonly body?: object;
  /** Ends the call; the error is then `provider_timed_out`. */
  readonly signal: AbortSignal;
}

export interface ProviderAnswer {
  readonly status: number;
  readonly json: unknown;
}

export interface HttpClient {
  /**
   * Returns what `read` makes of a 2xx or 4xx answer with a JSON body. Throws `ProviderError` for every other answer.
   * `read` throws it for an invalid answer, and the metrics then count the call as failed too.
   */
  ask<T>(question: ProviderCall, read: (answer: ProviderAnswer) => T): Promise<T>;
  close(): Promise<void>;
}

export function createHttpClient(metrics: Pick<ProviderMetrics, "calls" | "callSeconds">): HttpClient {
  const { callMs, connectionsPerHost } = PROVIDER_LIMITS;
  const agent = new Agent({
    connections: connectionsPerHost,
    pipelining: 1,
    // The signal of a call has a shorter deadline. These limits end a call whose signal has none.
    headersTimeout: callMs * 2,
    bodyTimeout: callMs * 2,
    connect: { timeout: callMs, rejectUnauthorized: true, minVersion: "TLSv1.2" },
  });
  return {
    async ask(question, read) {
      const { operation } = question;
      const startedAtMs = performance.now();
      let result = "failed";
      try {
        const answer = read(await ask(agent, question));
        result = "answered";
        return answer;
      } catch (error) {
        if (error instanceof ProviderError) result = error.failure;
        throw error;
      } finally {
        metrics.calls.add({ operation, result });
        metrics.callSeconds.observe({ operation }, (performance.now() - startedAtMs) / 1_000);
      }
    },
    close: () => agent.destroy(),
  };
}

async function ask(agent: Agent, question: ProviderCall): Promise<ProviderAnswer> {
  const { method, url, apiKey, body, signal } = question;
  const requestId = currentRequestId();
  let status: number;
  let bytes: Uint8Array;
  try {
    const response = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      signal,
      headers: {
        accept: "application/json",
        "accept-encoding": "identity",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
        ...(requestId === undefined ? {} : { "x-request-id": requestId }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    status = response.statusCode;
    bytes = await readBounded(response.body);
  } catch (cause) {
    if (cause instanceof ProviderError) throw cause;
    if (signal.aborted)
      throw new ProviderError("provider_timed_out", "The provider has not answered in time.", { cause });
    throw new ProviderError("provider_unavailable", "The provider could not be reached.", { cause });
  }
  if (status >= 500 || status === 429) {
    throw new ProviderError("provider_unavailable", `The provider answered ${status}.`);
  }
  if (status < 200 || (status >= 300 && status < 400)) {
    throw new ProviderError(
      "provider_answer_invalid",
      `The provider answered ${status}, which is neither a result nor an error.`,
    );
  }
  return { status, json: parseJson(bytes) };
}

async function readBounded(body: Dispatcher.ResponseData["body"]): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > PROVIDER_LIMITS.answerBytes) {
      throw new ProviderError("provider_answer_invalid", "The provider's answer is too long.");
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseJson(bytes: Uint8Array): unknown {
  const json = parseJsonBody(bytes);
  if (json !== undefined) return json;
  throw new ProviderError("provider_answer_invalid", "The provider's answer is no JSON.");
}
