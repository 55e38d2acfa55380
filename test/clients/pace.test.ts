/** A device stays within its request budget, keeps its heartbeats, and comes back calmly after failures. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type CheckIn, runDeviceLoop } from "../../clients/device/loop.ts";
import { createBackoff, createPace, pause } from "../../clients/device/pace.ts";
import { DeviceStopped, parseRetryAfter, ServiceError, ServiceUnreachable } from "../../clients/device/transport.ts";
import { clientLimits } from "../../clients/limits.ts";

const never = new AbortController().signal;

describe("the pace", () => {
  it("many requests at once: it lets no two through within the gap", async () => {
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

  it("heartbeats and polls together: they stay within one request per second", () => {
    const { heartbeatEveryMs, companionPollMs, displayPollMs, requestGapMs } = clientLimits;
    expect(requestGapMs).toBeGreaterThanOrEqual(1_000);
    for (const pollMs of [companionPollMs, displayPollMs])
      expect(1_000 / heartbeatEveryMs + 1_000 / pollMs).toBeLessThanOrEqual(1);
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

  it("a service that stays away: the wait stays at its bound", () => {
    const backoff = createBackoff({ firstMs: 1_000, maxMs: 30_000, random: () => 1 });
    const waits = Array.from({ length: 2_000 }, () => backoff.nextMs());
    expect(Math.max(...waits)).toBe(30_000);
    expect(waits.every((wait) => Number.isFinite(wait))).toBe(true);
  });
});

describe("waiting", () => {
  it("a device that is stopped: its wait ends at once", async () => {
    const stopping = new AbortController();
    const startMs = performance.now();
    const waiting = pause(60_000, stopping.signal);
    stopping.abort();
    await waiting;
    expect(performance.now() - startMs).toBeLessThan(1_000);
  });

  it("Retry-After: the device takes it in seconds, with a bound, and ignores anything else", () => {
    expect(parseRetryAfter("3")).toBe(3_000);
    expect(parseRetryAfter(" 0 ")).toBe(0);
    expect(parseRetryAfter("999999")).toBe(clientLimits.retryAfterMaxMs);
    for (const odd of [null, "", "soon", "-1", "1.5", "Fri, 20 Nov 2026 12:00:00 GMT"])
      expect(parseRetryAfter(odd)).toBeUndefined();
  });
});

describe("heartbeats of a virtual device", () => {
  const HEARTBEAT_MS = 50;
  /** So many come within a second at their interval, and within a minute at the back-off. */
  const HEARTBEATS = 8;
  const WAIT = { timeout: 10_000, interval: 5 };

  /** Ends the turns that still wait. */
  let over: AbortController;
  beforeEach(() => {
    over = new AbortController();
  });
  afterEach(() => over.abort());

  interface LoopOptions {
    readonly turn: () => Promise<number>;
    readonly once?: () => Promise<void>;
    readonly quietMs?: () => number;
  }
  /** Runs a loop, which counts its heartbeats. */
  function startLoop(options: LoopOptions) {
    const stopping = new AbortController();
    const counts = { heartbeats: 0, ready: 0 };
    const checkIn = {
      name: () => "Till",
      quietMs: options.quietMs ?? (() => 0),
      once: async () => {
        counts.heartbeats += 1;
        await options.once?.();
      },
    } as unknown as CheckIn;
    const ended = runDeviceLoop({
      checkIn,
      log: { info: () => undefined, warn: () => undefined },
      signal: stopping.signal,
      isLive: false,
      onReady: () => {
        counts.ready += 1;
      },
      turn: options.turn,
      heartbeatEveryMs: HEARTBEAT_MS,
    });
    const stop = async (): Promise<void> => {
      stopping.abort();
      over.abort();
      await ended;
    };
    return { counts, ended, stop };
  }

  const unreachable = (): Promise<never> => Promise.reject(new ServiceUnreachable("The service does not answer."));
  async function long(): Promise<number> {
    await pause(60_000, over.signal);
    return 0;
  }

  it.each<[string, LoopOptions, number]>([
    ["every other request fails: they come at their interval, not at the back-off", { turn: unreachable }, 1],
    ["one turn lasts long: they come at their interval", { turn: long }, 1],
    [
      "they get no answer: they are repeated after their interval at the latest",
      { turn: async () => 10, once: unreachable },
      0,
    ],
  ])("%s", async (_what, options, ready) => {
    const loop = startLoop(options);
    await vi.waitFor(() => expect(loop.counts.heartbeats).toBeGreaterThanOrEqual(HEARTBEATS), WAIT);
    expect(loop.counts.ready).toBe(ready);
    await loop.stop();
  });

  it("the device plays offline: none comes until that is over, and the next one at once", async () => {
    let isQuiet = true;
    const loop = startLoop({ turn: async () => 10, quietMs: () => (isQuiet ? HEARTBEAT_MS / 10 : 0) });
    await pause(4 * HEARTBEAT_MS, never);
    expect(loop.counts.heartbeats).toBe(0);
    isQuiet = false;
    await vi.waitFor(() => expect(loop.counts.heartbeats).toBe(1), { timeout: WAIT.timeout, interval: 1 });
    await loop.stop();
  });

  it("they are answered 401: the device stops and asks for a code, though its turn still waits", async () => {
    const error = new ServiceError({
      httpStatus: 401,
      code: "credential_invalid",
      detail: "Unknown.",
      intentStatus: undefined,
      reason: undefined,
      retryAfterMs: undefined,
    });
    const loop = startLoop({ turn: long, once: () => Promise.reject(error) });
    await expect(loop.ended).rejects.toThrow(DeviceStopped);
  });
});
