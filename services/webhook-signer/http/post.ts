/** Sends one request on an open connection, and reads as much of the answer as its record needs. */
import { errors } from "undici";
import { SIGNER_LIMITS, TARGET_LIMITS } from "../limits.ts";
import type { Connection } from "./connections.ts";
import { AttemptFailure } from "./send-result.ts";

export interface Post {
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** The part of the answer that has arrived; after a failure it keeps that part. */
export interface Answer {
  firstByteMs: number | null;
  status: number | null;
  retryAfter: string | readonly string[] | undefined;
  /** Whether the body has a content encoding, for example a compression, so that its bytes are not the text. */
  isEncoded: boolean;
  readonly chunks: Uint8Array[];
  truncated: boolean;
}

export function noAnswer(): Answer {
  return {
    firstByteMs: null,
    status: null,
    retryAfter: undefined,
    isEncoded: false,
    chunks: [],
    truncated: false,
  };
}

/**
 * Writes into `answer`. Throws `AttemptFailure`, or the signal's reason when it aborts. It destroys the connection after a
 * failure and after a truncated answer; after every other answer the connection can be used again.
 */
export async function post(
  connection: Connection,
  { path, headers, body }: Post,
  answer: Answer,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const startedAt = performance.now();
  const bytesBefore = connection.bytesRead;
  let bodyBytes = 0;
  const abort = (): void => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  connection.watchReads(() => {
    if (connection.bytesRead - bytesBefore > TARGET_LIMITS.wireBytes) reject(new AttemptFailure("answer_invalid"));
  });
  try {
    connection.client.dispatch(
      {
        method: "POST",
        path,
        body,
        headers: { "user-agent": "device-payments-webhooks", ...headers, "accept-encoding": "identity" },
      },
      {
        // By this method undici recognizes a handler of its current interface.
        onRequestStart() {},
        onResponseStart(_controller, status, received) {
          // An informational answer (1xx): several may come, and their bytes count towards `wireBytes`.
          if (status < 200) return;
          answer.firstByteMs = performance.now() - startedAt;
          answer.status = status;
          answer.retryAfter = received["retry-after"];
          answer.isEncoded = ![undefined, "", "identity"].includes(received["content-encoding"]?.toString());
        },
        onResponseData(_controller, chunk) {
          const room = TARGET_LIMITS.answerBytes - bodyBytes;
          bodyBytes += chunk.length;
          // Keeps the beginning for the record; reads the rest so that the connection can be used again.
          if (answer.chunks.length === 0 || bodyBytes - chunk.length < TARGET_LIMITS.excerptBytes) {
            answer.chunks.push(chunk.subarray(0, room));
          }
          if (chunk.length <= room) return;
          answer.truncated = true;
          connection.destroy();
          resolve();
        },
        onResponseEnd: () => resolve(),
        onResponseError: (_controller, cause) => reject(failureOf(cause)),
      },
    );
    await promise;
  } catch (cause) {
    connection.destroy();
    throw cause;
  } finally {
    connection.watchReads(null);
    signal.removeEventListener("abort", abort);
  }
}

/** An invalid request is a defect of the service and not a failure of the target, so its error is returned as it is. */
function failureOf(cause: Error): Error {
  if (cause instanceof errors.InvalidArgumentError) return cause;
  const isAnswerWrong =
    cause instanceof errors.HTTPParserError ||
    cause instanceof errors.HeadersOverflowError ||
    cause instanceof errors.ResponseContentLengthMismatchError ||
    // undici's messages for an answer without a request, an unexpected 100, and a change of protocol.
    (cause instanceof errors.SocketError && /^bad (?:response|upgrade)$/.test(cause.message));
  return new AttemptFailure(isAnswerWrong ? "answer_invalid" : "connection_closed", { cause });
}

/** PostgreSQL cannot store NUL in a text; the others move a terminal's cursor or change the direction of the text. */
const UNPRINTABLE = /(?![\n\t])[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** At most `excerptBytes` of UTF-8. A byte that is not UTF-8 becomes U+FFFD, an unprintable character a space. */
export function answerText(body: Uint8Array): string {
  if (body.length === 0) return "";
  const text = new TextDecoder().decode(body.subarray(0, TARGET_LIMITS.excerptBytes)).replace(UNPRINTABLE, " ");
  // U+FFFD is longer than the byte that it replaces, so the text is cut to the limit again.
  const room = new Uint8Array(TARGET_LIMITS.excerptBytes);
  const { read } = new TextEncoder().encodeInto(text, room);
  return text.slice(0, read);
}

/** How long to wait before the next request, at most `longestRetryAfterMs`; null when the header is missing or invalid. */
export function retryAfterMs(header: string | readonly string[] | undefined, nowMs: number): number | null {
  const text = (typeof header === "object" ? header[0] : header)?.trim();
  if (text === undefined) return null;
  const waitMs = /^\d{1,10}$/.test(text) ? Number(text) * 1_000 : dateOf(text) - nowMs;
  if (Number.isNaN(waitMs)) return null;
  return Math.min(Math.max(waitMs, 0), SIGNER_LIMITS.longestRetryAfterMs);
}

/** Parses only the form that senders must use (IMF-fixdate): `Date.parse` also accepts texts that are not dates. */
function dateOf(text: string): number {
  return /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text) ? Date.parse(text) : Number.NaN;
}
