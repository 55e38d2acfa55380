/** The pace of an upload: a service on the same machine refuses a file that arrives faster than it can store it. */
import { setTimeout as delay } from "node:timers/promises";
import { clientLimits } from "../limits.ts";

/**
 * Yields the pieces no faster than the service accepts them. It does not catch up after a pause: after a service was busy for
 * seconds, the pieces of these seconds would otherwise arrive all at once.
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
