/** A client stays within its request limit, and waits longer after each failure. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createBackoff, createPace, pause } from "../../clients/http/pace.ts";
import { parseRetryAfter } from "../../clients/http/transport.ts";
import { clientLimits } from "../../clients/limits.ts";
import { paced } from "../../clients/reconciliation/paced.ts";

const never = new AbortController().signal;

describe("the pace", () => {
  it("many requests at once: no two are sent within the gap", async () => {
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

describe("the back-off", () => {
  it("failures in a row: the wait doubles up to its bound, with a jitter of half, and a success resets it", () => {
    const backoff = createBackoff({ firstMs: 1_000, maxMs: 30_000, random: () => 1 });
    expect(Array.from({ length: 7 }, () => backoff.nextMs())).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]);
    backoff.reset();
    expect(backoff.nextMs()).toBe(1_000);
    expect(createBackoff({ firstMs: 1_000, maxMs: 30_000, random: () => 0 }).nextMs()).toBe(500);
  });

  it("a service that stays unreachable: the wait stays at its bound", () => {
    const backoff = createBackoff({ firstMs: 1_000, maxMs: 30_000, random: () => 1 });
    const waits = Array.from({ length: 2_000 }, () => backoff.nextMs());
    expect(Math.max(...waits)).toBe(30_000);
    expect(waits.every((wait) => Number.isFinite(wait))).toBe(true);
  });
});

describe("waiting", () => {
  it("a client that is stopped: its wait ends at once", async () => {
    const stopping = new AbortController();
    const startMs = performance.now();
    const waiting = pause(60_000, stopping.signal);
    stopping.abort();
    await waiting;
    expect(performance.now() - startMs).toBeLessThan(1_000);
  });

  it("Retry-After: the client takes it in seconds, with a bound, and ignores anything else", () => {
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

describe("uploads by command", () => {
  it("an upload after a stall of the service: it goes on at its pace, and does not catch up", async () => {
    const pieces = paced(Array.from({ length: PIECES }, () => PIECE))[Symbol.asyncIterator]();
    await pieces.next();
    await delay(STALL_MS);
    const goesOnAtMs = performance.now();
    while ((await pieces.next()).done !== true) {
      // Reads all pieces.
    }
    const { uploadBytesPerSecond, uploadBurstMs } = clientLimits;
    const leastMs = ((PIECES * PIECE.length) / uploadBytesPerSecond) * 1_000 - uploadBurstMs;
    // Timers may fire a millisecond early.
    expect(performance.now() - goesOnAtMs).toBeGreaterThan(leastMs - PIECES);
  });
});
