/** Heartbeats of a virtual device go on at their interval, whatever its other requests do. */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type CheckIn, runDeviceLoop } from "../../clients/device/loop.ts";
import { DeviceStopped, ServiceRefusal, ServiceUnreachable } from "../../clients/device/transport.ts";

const HEARTBEAT_MS = 50;
const WATCHED_MS = 1_200;
const SNAPSHOT = { device_id: 1, name: "Till", server_time: "2026-01-01T00:00:00Z" };

/** Runs a loop for a while and counts its heartbeats. */
async function heartbeatsWhile(given: {
  turn: () => Promise<number>;
  once?: () => Promise<void>;
  quietMs?: () => number;
}) {
  const stopping = new AbortController();
  const atMs: number[] = [];
  const checkIn = {
    name: () => SNAPSHOT.name,
    quietMs: given.quietMs ?? (() => 0),
    once: async () => {
      atMs.push(performance.now());
      await given.once?.();
      return SNAPSHOT;
    },
  } as unknown as CheckIn;
  let ready = 0;
  const log = { info: () => undefined, warn: () => undefined };
  const loop = runDeviceLoop({
    checkIn,
    log,
    signal: stopping.signal,
    isLive: false,
    onReady: () => {
      ready += 1;
    },
    turn: given.turn,
    heartbeatEveryMs: HEARTBEAT_MS,
  });
  const timer = delay(WATCHED_MS).then(() => stopping.abort());
  await loop;
  await timer;
  return { count: atMs.length, ready };
}

const unreachable = (): Promise<never> => Promise.reject(new ServiceUnreachable("The service does not answer."));
const refusal = (httpStatus: number, code: string): ServiceRefusal =>
  new ServiceRefusal({ httpStatus, code, detail: code, intentStatus: undefined, retryAfterMs: undefined });

describe("virtual device: heartbeats", () => {
  it("while every other request fails: sent at their interval, not at the back-off", async () => {
    const { count, ready } = await heartbeatsWhile({ turn: unreachable });
    expect(count).toBeGreaterThan(WATCHED_MS / HEARTBEAT_MS / 3);
    expect(ready).toBe(1);
  });

  it("while one turn lasts, as that of a report that is repeated: sent at their interval", async () => {
    const { count } = await heartbeatsWhile({ turn: () => delay(WATCHED_MS, 0) });
    expect(count).toBeGreaterThan(WATCHED_MS / HEARTBEAT_MS / 3);
  });

  it("that get no answer: repeated after their interval at the latest", async () => {
    const { count, ready } = await heartbeatsWhile({ turn: async () => 10, once: unreachable });
    expect(count).toBeGreaterThan(WATCHED_MS / HEARTBEAT_MS / 3);
    expect(ready).toBe(0);
  });

  it("of a device that plays offline: none until that is over, and the next one at once", async () => {
    const backAtMs = performance.now() + WATCHED_MS - 4 * HEARTBEAT_MS;
    const quietMs = (): number => Math.max(0, backAtMs - performance.now());
    const { count } = await heartbeatsWhile({ turn: async () => 10, quietMs });
    expect(count).toBeGreaterThan(0);
    expect(count).toBeLessThanOrEqual(5);
  });

  it("that are answered 401: the device stops and asks for a code, though its turn still waits", async () => {
    const once = () => Promise.reject(refusal(401, "credential_invalid"));
    await expect(heartbeatsWhile({ turn: () => delay(60_000, 0, { ref: false }), once })).rejects.toThrow(
      DeviceStopped,
    );
  });
});
