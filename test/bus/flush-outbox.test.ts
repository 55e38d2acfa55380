/** The barrier that a writer gets: when a relay answers, when none runs, and when one starts while the writer waits. */
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Bus } from "../../services/bus/connection.ts";
import { flushKeys } from "../../services/bus/flush-outbox.ts";
import type { Barrier } from "../../services/bus/messages/caller.ts";
import { flushOutbox } from "../../services/bus/messages/outbox.ts";
import { type Serving, serve } from "../../services/bus/operation.ts";
import { createLog } from "../../services/runtime/log.ts";
import { HANGS } from "../support/hangs.ts";
import { startBus } from "../support/start-bus.ts";

const TIMEOUT_MS = 600;
const log = createLog({ service: "test", level: "silent" });
let bus: Bus;
let relay: Serving | undefined;
beforeAll(async () => {
  const started = await startBus();
  bus = started.bus;
  return started.stop;
});
afterEach(() => relay?.unsubscribe());

async function startRelay(answer: (key: string) => Promise<Barrier>): Promise<void> {
  relay = serve({ nc: bus.nc, log, queue: "relay" }, flushOutbox, ({ key }) => answer(key));
  await bus.nc.flush();
}

async function flush(...keys: string[]): Promise<{ barrier: Barrier; tookMs: number }> {
  const startedAtMs = performance.now();
  const barrier = await flushKeys({ nc: bus.nc, log, timeoutMs: TIMEOUT_MS }, keys);
  return { barrier, tookMs: performance.now() - startedAtMs };
}

describe("flushing outbox keys", () => {
  it("several keys: the barrier has the highest sequence of each stream", async () => {
    const answers: Record<string, Barrier> = {
      "station.1": { positions: { STATION_LOG_0: 7, KV_CREDENTIALS: 2 } },
      "station.2": { positions: { STATION_LOG_0: 5, KV_SESSIONS: 3 } },
    };
    await startRelay(async (key) => answers[key] ?? { positions: {} });
    const { barrier } = await flush("station.1", "station.2");
    expect(barrier).toEqual({ positions: { STATION_LOG_0: 7, KV_CREDENTIALS: 2, KV_SESSIONS: 3 } });
  });

  it("no relay runs: the writer asks again until its timeout, and the barrier is undelivered", async () => {
    const { barrier, tookMs } = await flush("station.1");
    expect(barrier).toEqual({ positions: {}, isUndelivered: true });
    expect(tookMs).toBeGreaterThan(TIMEOUT_MS * 0.8);
  });

  it("a relay starts while the writer waits: the writer gets its answer", async () => {
    const flushed = flushKeys({ nc: bus.nc, log, timeoutMs: HANGS.timeout }, ["station.1"]);
    await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS / 4));
    await startRelay(async () => ({ positions: { STATION_LOG_0: 9 } }));
    expect(await flushed).toEqual({ positions: { STATION_LOG_0: 9 } });
  });

  it("a relay does not answer: the barrier is undelivered after the timeout", async () => {
    await startRelay(() => new Promise<never>(() => undefined));
    const { barrier, tookMs } = await flush("station.1");
    expect(barrier).toEqual({ positions: {}, isUndelivered: true });
    expect(tookMs).toBeLessThan(TIMEOUT_MS * 2);
  });

  it("the relay delivers one of two keys: the barrier is undelivered and has the other key's position", async () => {
    await startRelay(async (key) => {
      if (key === "station.1") return { positions: { STATION_LOG_0: 4 } };
      throw new Error("down");
    });
    const { barrier } = await flush("station.1", "credential.2");
    expect(barrier).toEqual({ positions: { STATION_LOG_0: 4 }, isUndelivered: true });
  });
});
