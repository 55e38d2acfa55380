/** A device stays within its request budget and comes back calmly after failures. */
import { describe, expect, it } from "vitest";
import { createBackoff, createPace, pause } from "../../clients/device/pace.ts";
import { parseRetryAfter } from "../../clients/device/transport.ts";
import { clientLimits } from "../../clients/limits.ts";

const never = new AbortController().signal;

describe("the pace", () => {
  it("lets no two requests through within the gap, however many ask at once", async () => {
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

  it("leaves heartbeat and polls together within one request per second", () => {
    const { heartbeatEveryMs, companionPollMs, displayPollMs, requestGapMs } = clientLimits;
    expect(requestGapMs).toBeGreaterThanOrEqual(1_000);
    for (const pollMs of [companionPollMs, displayPollMs])
      expect(1_000 / heartbeatEveryMs + 1_000 / pollMs).toBeLessThanOrEqual(1);
  });
});

describe("the back-off", () => {
  it("doubles to its bound, jitters by half at most, and starts over after a success", () => {
    const calm = createBackoff({ firstMs: 1_000, maxMs: 30_000, random: () => 1 });
    expect(Array.from({ length: 7 }, () => calm.nextMs())).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]);
    calm.reset();
    expect(calm.nextMs()).toBe(1_000);
    expect(createBackoff({ firstMs: 1_000, maxMs: 30_000, random: () => 0 }).nextMs()).toBe(500);
  });

  it("stays at its bound for as long as the service is away", () => {
    const calm = createBackoff({ firstMs: 1_000, maxMs: 30_000, random: () => 1 });
    const waits = Array.from({ length: 2_000 }, () => calm.nextMs());
    expect(Math.max(...waits)).toBe(30_000);
    expect(waits.every((wait) => Number.isFinite(wait))).toBe(true);
  });
});

describe("waiting", () => {
  it("ends at once when the device is stopped", async () => {
    const stopping = new AbortController();
    const startMs = performance.now();
    const waiting = pause(60_000, stopping.signal);
    stopping.abort();
    await waiting;
    expect(performance.now() - startMs).toBeLessThan(1_000);
  });

  it("takes Retry-After in seconds, bounded, and ignores anything else", () => {
    expect(parseRetryAfter("3")).toBe(3_000);
    expect(parseRetryAfter(" 0 ")).toBe(0);
    expect(parseRetryAfter("999999")).toBe(clientLimits.retryAfterMaxMs);
    for (const odd of [null, "", "soon", "-1", "1.5", "Fri, 20 Nov 2026 12:00:00 GMT"])
      expect(parseRetryAfter(odd)).toBeUndefined();
  });
});
