/** The pace of uploads by command. */
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { clientLimits } from "../../clients/limits.ts";
import { paced } from "../../clients/reconciliation/paced.ts";

const PIECE = Buffer.alloc(1_000_000);
const PIECES = 50;
const STALL_MS = 1_500;

test("an upload after a stall of the service: it goes on at its pace, and does not catch up", async () => {
  const pieces = paced(Array.from({ length: PIECES }, () => PIECE))[Symbol.asyncIterator]();
  await pieces.next();
  await delay(STALL_MS);
  const goesOnAtMs = performance.now();
  while ((await pieces.next()).done !== true) {
    // To the end.
  }
  const { uploadBytesPerSecond, uploadBurstMs } = clientLimits;
  const leastMs = ((PIECES * PIECE.length) / uploadBytesPerSecond) * 1_000 - uploadBurstMs;
  // Timers may fire a millisecond early.
  expect(performance.now() - goesOnAtMs).toBeGreaterThan(leastMs - PIECES);
});
