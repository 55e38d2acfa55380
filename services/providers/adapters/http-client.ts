/**
 * Asking a provider over HTTP: one deadline over everything, a bounded answer, no redirects, TLS verified. What comes
 * back is JSON or nothing.
 */
import { Agent, type Dispatcher } from "undici";
import { PROVIDER_LIMITS } from "../limits.ts";
import { parseJsonBody } from "./json-body.ts";
import { ProviderError } from "./provider-error.ts";

export interface ProviderQuestion {
  readonly method: "GET" | "POST";
  readonly url: URL;
  readonly apiKey: string | undefined;
  readonly body?: object;
  /** Ends the question. A signal that was aborted by its time-out means `provider_timed_out`. */
  readonly signal: AbortSignal;
}

export interface ProviderAnswer {
  readonly status: number;
  readonly json: unknown;
}

export interface HttpClient {
  /** Resolves for 2xx and 4xx with a JSON body. Throws `ProviderError` for everything else. */
  ask(question: ProviderQuestion): Promise<ProviderAnswer>;
  close(): Promise<void>;
}

export function createHttpClient(): HttpClient {
  const { callMs, connectionsPerHost } = PROVIDER_LIMITS;
  const agent = new Agent({
    connections: connectionsPerHost,
    pipelining: 1,
    // The question's own deadline is shorter; these end what a deadline that was forgotten would leave.
    headersTimeout: callMs * 2,
    bodyTimeout: callMs * 2,
    connect: { timeout: callMs, rejectUnauthorized: true, minVersion: "TLSv1.2" },
  });
  return {
    ask: (question) => ask(agent, question),
    close: () => agent.destroy(),
  };
}

async function ask(agent: Agent, question: ProviderQuestion): Promise<ProviderAnswer> {
  const { method, url, apiKey, body, signal } = question;
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
    throw new ProviderError("provider_answer_invalid", `The provider answered ${status}, which is no answer.`);
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
