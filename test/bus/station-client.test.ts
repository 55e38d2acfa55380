import { execFileSync } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import type { Msg, Subscription } from "nats";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { Bus } from "../../services/bus/connection.ts";
import { BUS_LIMITS } from "../../services/bus/limits.ts";
import type { StationFailure, StationRequest, StationResponse } from "../../services/bus/messages/station-commands.ts";
import { RefusedError, UnavailableError } from "../../services/bus/refusals.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { stationCommandSubject } from "../../services/bus/subjects.ts";
import { startBus } from "../support/start-bus.ts";

const REQUEST: StationRequest = {
  commandId: "test:1",
  actor: { kind: "cashier", id: 7, name: "Ana" },
  command: { type: "lease_acquire" },
};
const DONE: StationResponse = { reply: { ok: true, type: "accepted" }, intent: null, sequence: 5 };

describe("asking a station", () => {
  let bus: Bus;
  let owner: Subscription | undefined;
  beforeAll(async () => {
    const started = await startBus();
    bus = started.bus;
    return started.stop;
  });
  afterEach(() => owner?.unsubscribe());

  /** Acts as the owner of the partition, and sends these answers in order. For `undefined`, it sends no answer. */
  const answering = (answers: readonly (StationResponse | StationFailure | undefined)[]): string[] => {
    const asked: string[] = [];
    owner = bus.nc.subscribe(stationCommandSubject(1), {
      callback: (_error, message: Msg) => {
        const answer = answers[Math.min(asked.length, answers.length - 1)];
        asked.push(message.json<StationRequest>().commandId);
        if (answer !== undefined) message.respond(JSON.stringify(answer));
      },
    });
    return asked;
  };

  /** Acts as an owner that receives one command and then ends. */
  const receivingOne = (): Promise<Msg> => {
    const { promise, resolve } = Promise.withResolvers<Msg>();
    const callback = (_error: unknown, message: Msg): void => resolve(message);
    owner = bus.nc.subscribe(stationCommandSubject(1), { max: 1, callback });
    return promise;
  };

  it("no host has the partition: the client waits for an owner", async () => {
    const asked = askStation(bus.nc, 1, REQUEST);
    await pause(300);
    answering([DONE]);
    expect(await asked).toEqual(DONE);
  });

  it("the owner cannot answer, or its answer is lost: the client asks again with the same id", async () => {
    const asked = answering([{ failure: "unavailable", retryAfterMs: 1 }, undefined, DONE]);
    expect(await askStation(bus.nc, 1, REQUEST)).toEqual(DONE);
    expect(asked).toEqual(["test:1", "test:1", "test:1"]);
  });

  it("an answer is lost, as when a server stops or a host stalls: the client asks again within 900 ms", async () => {
    const asked = answering([undefined, DONE]);
    const startedAt = performance.now();
    expect(await askStation(bus.nc, 1, REQUEST)).toEqual(DONE);
    expect(performance.now() - startedAt).toBeLessThan(900);
    expect(asked).toHaveLength(2);
  });

  it("an answer comes after the next attempt, as over slow links: the client accepts it", async () => {
    owner = bus.nc.subscribe(stationCommandSubject(1), {
      callback: (_error, message: Msg) => void pause(1_000).then(() => message.respond(JSON.stringify(DONE))),
    });
    const startedAt = performance.now();
    expect(await askStation(bus.nc, 1, REQUEST)).toEqual(DONE);
    expect(performance.now() - startedAt).toBeLessThan(1_400);
  });

  it("an answer comes while no host has the partition, and the client pauses: the client accepts it", async () => {
    const first = receivingOne();
    const asked = askStation(bus.nc, 1, REQUEST);
    const message = await first;
    // Now the client is in a pause nearly all the time, because the bus reports at once that no process answers.
    await pause(BUS_LIMITS.askAgainMs + 3 * BUS_LIMITS.askLongestPauseMs);
    message.respond(JSON.stringify(DONE));
    expect(await asked).toEqual(DONE);
  });

  it("an answer comes together with the report that no host has the partition: the client accepts it", async () => {
    const first = receivingOne();
    const asked = askStation(bus.nc, 1, REQUEST);
    const message = await first;
    const request = bus.nc.request.bind(bus.nc);
    const spy = vi.spyOn(bus.nc, "request").mockImplementationOnce((...again) => {
      const report = request(...again);
      message.respond(JSON.stringify(DONE));
      // Both messages arrive meanwhile, so that the client receives them at once.
      setImmediate(() => void execFileSync("sleep", ["0.1"]));
      return report;
    });
    expect(await asked).toEqual(DONE);
    spy.mockRestore();
  });

  it("the station refuses: the client returns the refusal as an answer", async () => {
    const refusal: StationResponse = { reply: { ok: false, code: "lease_required" }, intent: null, sequence: 5 };
    answering([refusal]);
    expect(await askStation(bus.nc, 1, REQUEST)).toEqual(refusal);
  });

  it("the station has too much to do: busy at once", async () => {
    const asked = answering([{ failure: "busy", retryAfterMs: 200 }]);
    const failure = await askStation(bus.nc, 1, REQUEST).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RefusedError);
    expect(failure).toMatchObject({ refusal: { code: "busy", retryAfterMs: 200 } });
    expect(asked).toHaveLength(1);
  });

  const BUSY: StationFailure = { failure: "busy", retryAfterMs: 200 };

  it.each([
    ["the host reports an unknown outcome", { failure: "unavailable", retryAfterMs: 1 } as const, 300],
    ["no answer comes", undefined, BUS_LIMITS.askAgainMs + 300],
  ])("an attempt with unknown outcome (%s), then a busy host: unavailable", async (_, first, timeoutMs) => {
    const asked = answering([first, BUSY]);
    const failure = await askStation(bus.nc, 1, REQUEST, { timeoutMs }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UnavailableError);
    expect(asked.length).toBeGreaterThan(1);
  });

  it("an attempt with unknown outcome, a busy host, then an answer: the answer", async () => {
    answering([{ failure: "unavailable", retryAfterMs: 1 }, BUSY, DONE]);
    expect(await askStation(bus.nc, 1, REQUEST)).toEqual(DONE);
  });

  it("an attempt with unknown outcome, then a host that does not understand the command: unavailable", async () => {
    answering([
      { failure: "unavailable", retryAfterMs: 1 },
      { failure: "invalid_request", errors: [] },
    ]);
    await expect(askStation(bus.nc, 1, REQUEST, { timeoutMs: 200 })).rejects.toBeInstanceOf(UnavailableError);
  });

  it("an attempt that no host received, then a busy host: busy", async () => {
    const asked = askStation(bus.nc, 1, REQUEST).catch((error: unknown) => error);
    await pause(100);
    answering([BUSY]);
    expect(await asked).toMatchObject({ refusal: { code: "busy" } });
  });

  it("the owner does not understand the command: refused at once, without a second attempt", async () => {
    const errors = [{ pointer: "/command/type", code: "invalid" as const, detail: "Invalid input" }];
    const asked = answering([{ failure: "invalid_request", errors }]);
    const failure = await askStation(bus.nc, 1, REQUEST).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RefusedError);
    expect(failure).toMatchObject({ refusal: { code: "invalid_request", errors } });
    expect(asked).toHaveLength(1);
  });

  it("no answer until the timeout: `unavailable` soon after it", async () => {
    const startedAt = performance.now();
    await expect(askStation(bus.nc, 1, REQUEST, { timeoutMs: 400 })).rejects.toBeInstanceOf(UnavailableError);
    expect(performance.now() - startedAt).toBeLessThan(600);
  });
});
