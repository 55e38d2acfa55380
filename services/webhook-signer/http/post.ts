/** One request on an open connection, and as much of the answer as a record needs. */
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

/** What has come of the answer; it holds what there was when the rest failed. */
export interface Answer {
  firstByteMs: number | null;
  status: number | null;
  retryAfter: string | readonly string[] | undefined;
  /** Whether the body is compressed, or otherwise not the text that it stands for. */
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
 * Writes into `answer`. Throws `AttemptFailure`, or the signal's reason when it aborts. After a failure and after an
 * answer that was cut the connection is ended; after any other it may be used again.
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
        // undici takes a handler for one of the present kind by this method.
        onRequestStart() {},
        onResponseStart(_controller, status, received) {
          // Of an answer that is only a beginning (1xx) there may be several; they count as bytes.
          if (status < 200) return;
          answer.firstByteMs = performance.now() - startedAt;
          answer.status = status;
          answer.retryAfter = received["retry-after"];
          answer.isEncoded = ![undefined, "", "identity"].includes(received["content-encoding"]?.toString());
        },
        onResponseData(_controller, chunk) {
          const room = TARGET_LIMITS.answerBytes - bodyBytes;
          bodyBytes += chunk.length;
          // The record's beginning is all that is kept; the rest is read so that the connection can be used again.
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

/** A request that we made wrongly is no failure of the target, and stays what it is. */
function failureOf(cause: Error): Error {
  if (cause instanceof errors.InvalidArgumentError) return cause;
  const isAnswerWrong =
    cause instanceof errors.HTTPParserError ||
    cause instanceof errors.HeadersOverflowError ||
    cause instanceof errors.ResponseContentLengthMismatchError ||
    // What undici calls these: an answer to nothing, 100 to a request that did not ask for it, a change of protocol.
    (cause instanceof errors.SocketError && /^bad (?:response|upgrade)$/.test(cause.message));
  return new AttemptFailure(isAnswerWrong ? "answer_invalid" : "connection_closed", { cause });
}

/** PostgreSQL's text holds no NUL; the others would move a terminal's cursor or turn the text around it. */
const UNSEEN = /(?![\n\t])[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** At most `excerptBytes` of UTF-8; what is no UTF-8 becomes U+FFFD, what cannot be seen a space. */
export function answerText(body: Uint8Array): string {
  if (body.length === 0) return "";
  const text = new TextDecoder().decode(body.subarray(0, TARGET_LIMITS.excerptBytes)).replace(UNSEEN, " ");
  // U+FFFD takes more room than the byte that it stands for, so the text is measured again.
  const room = new Uint8Array(TARGET_LIMITS.excerptBytes);
  const { read } = new TextEncoder().encodeInto(text, room);
  return text.slice(0, read);
}

/** How long the target wants to be left alone, at most `longestRetryAfterMs`; null where that cannot be understood. */
export function retryAfterMs(header: string | readonly string[] | undefined, nowMs: number): number | null {
  const text = (typeof header === "object" ? header[0] : header)?.trim();
  if (text === undefined) return null;
  const waitMs = /^\d{1,10}$/.test(text) ? Number(text) * 1_000 : dateOf(text) - nowMs;
  if (Number.isNaN(waitMs)) return null;
  return Math.min(Math.max(waitMs, 0), SIGNER_LIMITS.longestRetryAfterMs);
}

/** Only the form that is to be sent (IMF-fixdate); `Date.parse` alone takes much that is no date. */
function dateOf(text: string): number {
  return /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text) ? Date.parse(text) : Number.NaN;
}
