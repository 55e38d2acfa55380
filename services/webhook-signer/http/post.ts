/** One request on an open connection, and as much of the answer as a record needs. */
import { errors } from "undici";
import { TARGET_LIMITS } from "../limits.ts";
import { AttemptFailure } from "./attempt-failure.ts";
import type { Connection } from "./connection.ts";

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
