/**
 * Sends an answer while the handler produces it, for example an export of a million lines. Only one piece is in memory: the
 * handler makes the next piece when the client has read the one before.
 *
 *   first piece made ──► head ──► piece ──► taken ──► … ──► end
 *     └── error: an ordinary error answer       └── a failure, a client that reads nothing, or one whose session has ended:
 *                                                   the connection is closed, so that the client notices that the answer is
 *                                                   incomplete
 */
import { LIMITS } from "../limits.ts";
import type { ErrorCode } from "./errors.ts";
import type { Exchange } from "./exchange.ts";
import { ApiError } from "./handler-context.ts";
import type { Answer } from "./response.ts";

interface SendStreamDeps {
  /** Whether the caller may still read. Asked before the handler makes each further piece. */
  readonly isStillAdmitted: () => boolean;
  /** Returns the code of an error after which the answer breaks off, and logs a fault of the program. */
  readonly codeOf: (error: unknown) => ErrorCode;
}

/** Rejects only before anything is written. */
export async function sendStream(
  deps: SendStreamDeps,
  exchange: Exchange,
  answer: Answer,
  pieces: AsyncIterable<string>,
): Promise<void> {
  const iterator = pieces[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (exchange.facts.method === "HEAD") return exchange.answer(answer);
  try {
    await writeAll(exchange, answer, first, async () => {
      if (!deps.isStillAdmitted()) throw new ApiError("session_invalid");
      return await iterator.next();
    });
  } catch (error) {
    exchange.breakOff(deps.codeOf(error));
  } finally {
    await iterator.return?.();
  }
}

const nothing = (): void => undefined;

async function writeAll(
  exchange: Exchange,
  answer: Answer,
  first: IteratorResult<string>,
  next: () => Promise<IteratorResult<string>>,
): Promise<void> {
  let wake = nothing;
  if (!exchange.beginStream(answer, () => wake())) return;
  exchange.onGone = () => wake();
  exchange.onDeadline = () => exchange.breakOff(exchange.isStopping ? "unavailable" : "request_timeout");
  for (let piece = first; piece.done !== true; piece = await next()) {
    exchange.deadlineMs = performance.now() + LIMITS.requestTimeoutMs;
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    if (!exchange.writePiece(piece.value)) await promise;
    if (exchange.isOver) return;
  }
  exchange.endStream();
}
