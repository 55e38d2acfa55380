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
import type { Exchange } from "./exchange.ts";
import type { Answer } from "./response.ts";

/** Rejects only before anything is written. Asks `isStillAdmitted` before the handler makes each further piece. */
export async function sendStream(
  exchange: Exchange,
  answer: Answer,
  pieces: AsyncIterable<string>,
  isStillAdmitted: () => boolean,
): Promise<void> {
  const iterator = pieces[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (exchange.facts.method === "HEAD") return exchange.answer(answer);
  try {
    await writeAll(exchange, answer, first, async () => {
      if (!isStillAdmitted()) throw new Error("The session has ended.");
      return await iterator.next();
    });
  } catch {
    exchange.breakOff();
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
  exchange.onDeadline = () => exchange.breakOff();
  for (let piece = first; piece.done !== true; piece = await next()) {
    exchange.deadlineMs = performance.now() + LIMITS.requestTimeoutMs;
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    if (!exchange.writePiece(piece.value)) await promise;
    if (exchange.isOver) return;
  }
  exchange.endStream();
}
