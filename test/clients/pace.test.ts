/** A client stays within its limit of requests, and waits longer after each failure. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createBackoff, createPace, pause } from "../../clients/http/pace.ts";
import { parseRetryAfter } from "../../clients/http/transport.ts";
import { clientLimits } from "../../clients/limits.ts";
import { paced } from "../../clients/reconciliation/paced.ts";

const never = new AbortController().signal;

describe("the pace of requests", () => {
  it("many requests at once: the gap is between all of them", async () => {
    const pace = createPace(40);
    const times: number[] = [];
    const startMs = performance.now();
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        await pace(never);
        times.push(performance.now() - startMs);
      }),
    );
    expect(times[0]).toBeLessThan(30);
    times.forEach((time, index) => expect(time).toBeGreaterThanOrEqual(index * 40 - 2));
  });
});

describe("the waits after failures", () => {
  it("failures in a row: the wait doubles up to its limit, half of it random; a success resets it", () => {
    const backoff = createBackoff({ firstMs: 1_000, maxMs: 30_000, random: () => 1 });
    expect(Array.from({ length: 7 }, () => backoff.nextMs())).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]);
    backoff.reset();
    expect(backoff.nextMs()).toBe(1_000);
    expect(createBackoff({ firstMs: 1_000, maxMs: 30_000, random: () => 0 }).nextMs()).toBe(500);
  });

  it("a service that does not answer for a long time: the wait stays at its limit", () => {
    const backoff = createBackoff({ firstMs: 1_000, maxMs: 30_000, random: () => 1 });
    const waits = Array.from({ length: 2_000 }, () => backoff.nextMs());
    expect(Math.max(...waits)).toBe(30_000);
    expect(waits.every((wait) => Number.isFinite(wait))).toBe(true);
  });
});

describe("a wait of a client", () => {
  it("a client that is stopped: the wait ends at once", async () => {
    const stopping = new AbortController();
    const startMs = performance.now();
    const waiting = pause(60_000, stopping.signal);
    stopping.abort();
    await waiting;
    expect(performance.now() - startMs).toBeLessThan(1_000);
  });

  it("Retry-After: read in seconds up to a limit; other values are ignored", () => {
    expect(parseRetryAfter("3")).toBe(3_000);
    expect(parseRetryAfter(" 0 ")).toBe(0);
    expect(parseRetryAfter("999999")).toBe(clientLimits.retryAfterMaxMs);
    for (const odd of [null, "", "soon", "-1", "1.5", "Fri, 20 Nov 2026 12:00:00 GMT"])
      expect(parseRetryAfter(odd)).toBeUndefined();
  });
});

const PIECE = Buffer.alloc(1_000_000);
const PIECES = 50;
const STALL_MS = 1_500;

describe("the pace of an upload", () => {
  it("after a stall of the service: the upload continues at its pace, and does not catch up", async () => {
    const pieces = paced(Array.from({ length: PIECES }, () => PIECE))[Symbol.asyncIterator]();
    await pieces.next();
    await delay(STALL_MS);
    const goesOnAtMs = performance.now();
    while ((await pieces.next()).done !== true) {
      // This loop only reads all pieces.
    }
    const { uploadBytesPerSecond, uploadBurstMs } = clientLimits;
    const leastMs = ((PIECES * PIECE.length) / uploadBytesPerSecond) * 1_000 - uploadBurstMs;
    // Timers may fire a millisecond early.
    expect(performance.now() - goesOnAtMs).toBeGreaterThan(leastMs - PIECES);
  });
});
