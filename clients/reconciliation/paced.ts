/** The pace of an upload: a service on the same machine refuses a file that comes faster than it can be stored. */
import { setTimeout as delay } from "node:timers/promises";
import { clientLimits } from "../limits.ts";

/**
 * The pieces, no faster than the service takes them. What a pause has delayed is not made up for: after a service that was
 * busy for seconds, the pieces of these seconds would come all at once.
 */
export async function* paced(pieces: Iterable<Buffer> | AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const { uploadBytesPerSecond, uploadBurstMs } = clientLimits;
  let dueMs = performance.now();
  for await (const piece of pieces) {
    yield piece;
    dueMs = Math.max(dueMs, performance.now() - uploadBurstMs) + (piece.length / uploadBytesPerSecond) * 1_000;
    if (dueMs > performance.now()) await delay(dueMs - performance.now());
  }
}
