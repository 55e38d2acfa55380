/** The time of the bus when the machine's clock is set ahead or back. */
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { reportClock } from "../../services/bus/bus-clock.ts";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { deadlineHeaders, lateByMs } from "../../services/bus/deadline.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { QUIET } from "../support/quiet-log.ts";
import { startNats, type TestServer } from "../support/servers.ts";
import { eventually } from "../support/wait-for.ts";

/** The largest error of a measurement on a busy machine. */
const ERROR_MS = 250;
const rightMs = Date.now.bind(Date);
let nats: TestServer;
let bus: Bus;

beforeAll(async () => {
  nats = await startNats();
  const first = await connectBus({ url: nats.url, name: "first", log: QUIET });
  expect(first.clock.aheadMs()).toBeUndefined();
  expect(Math.abs(first.clock.nowMs() - rightMs())).toBeLessThan(ERROR_MS);
  await ensureStreams(first, { replicas: 1, logs: 1 });
  await first.close();
  bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await bus.clock.measure();
});
afterAll(async () => {
  await bus.close();
  await nats.stop();
});

const setClockBy = (ms: number): void => void vi.spyOn(Date, "now").mockImplementation(() => rightMs() + ms);
const errorMs = (timeMs: number): number => Math.abs(timeMs - rightMs());

it.each([10_000, -10_000])(
  "bus clock: the machine's clock is set by %i ms; the time of the bus stays correct",
  async (ms) => {
    expect(errorMs(bus.clock.nowMs())).toBeLessThan(ERROR_MS);
    setClockBy(ms);
    expect(errorMs(bus.clock.nowMs())).toBeLessThan(ERROR_MS);
    expect(bus.clock.isWrong()).toBe(true);
    // The next check measures without a call of `measure`.
    await eventually(() => errorMs(bus.clock.latestMs()) < ERROR_MS);
    expect(errorMs(bus.clock.nowMs())).toBeLessThan(ERROR_MS);
    expect(Math.abs((bus.clock.aheadMs() ?? 0) - ms)).toBeLessThan(ERROR_MS);
  },
);

it("bus clock: after a possible sleep of the machine, requests count as late until the next measurement", async () => {
  const message = { headers: deadlineHeaders(bus.nc, 5_000) };
  expect(lateByMs(bus.nc, message)).toBe(0);
  // After a sleep, the wall clock has continued and the monotonic clock has not. A clock that is set ahead has the same effect.
  setClockBy(60_000);
  expect(lateByMs(bus.nc, message)).toBeGreaterThan(50_000);
  await bus.clock.measure();
  expect(lateByMs(bus.nc, message)).toBe(0);
});

it("bus clock: the machine's clock becomes wrong and correct again: one line each, and a metric", async () => {
  const lines: string[] = [];
  const log = {
    info: (_: object, text: string) => void lines.push(text),
    warn: (_: object, text: string) => void lines.push(text),
  };
  const metrics = new Registry();
  reportClock({ clock: bus.clock, log, metrics });
  setClockBy(-10_000);
  for (let count = 0; count < 3; count += 1) await bus.clock.measure();
  expect(lines).toEqual(["the clock of this machine is wrong: the time of the bus counts; correct the clock"]);
  expect(await metrics.metrics()).toMatch(/clock_ahead_seconds -(?:9\.[789]|10)/);
  vi.restoreAllMocks();
  for (let count = 0; count < 3; count += 1) await bus.clock.measure();
  expect(lines.slice(1)).toEqual(["the clock of this machine is right again"]);
});
