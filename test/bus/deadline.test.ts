/** A service drops a request that its caller has abandoned. Once, an enrollment that got a 503 used its code later. */
import { setTimeout as delay } from "node:timers/promises";
import type { Msg } from "nats";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { addLateCount, deadlineHeaders, lateByMs } from "../../services/bus/deadline.ts";
import { call, repeatable, serve } from "../../services/bus/operation.ts";
import { UnavailableError } from "../../services/bus/refusals.ts";
import { QUIET } from "../support/quiet-log.ts";
import { startNats, type TestServer } from "../support/servers.ts";

const count = repeatable("test.count", z.object({}), z.object({ count: z.number() }));
let nats: TestServer;
let caller: Bus;
let server: Bus;

beforeAll(async () => {
  nats = await startNats();
  caller = await connectBus({ url: nats.url, name: "caller", log: QUIET });
  server = await connectBus({ url: nats.url, name: "server", log: QUIET });
});

afterAll(async () => {
  await caller.close();
  await server.close();
  await nats.stop();
});

it("a request that the service reads after its deadline: dropped, counted and logged; one in time is answered", async () => {
  let done = 0;
  const lines: object[] = [];
  const log = { ...QUIET, warn: (fields: object, message: string) => void lines.push({ ...fields, message }) };
  const metrics = new Registry();
  addLateCount(metrics, server.nc);
  serve({ nc: server.nc, log, queue: "test" }, count, async () => {
    done += 1;
    return { count: done };
  });
  await server.nc.flush();
  // This is like a request that waited in a socket while the service was stalled.
  const late = caller.nc.request(count.subject, "{}", { timeout: 200, headers: deadlineHeaders(caller.nc, -50) });
  await expect(late).rejects.toThrow();
  expect(done).toBe(0);
  expect(lines).toEqual([
    {
      operation: "test.count",
      lateMs: expect.any(Number) as number,
      message: "a request came after its deadline and was dropped",
    },
  ]);
  expect(await call(caller.nc, count, {})).toEqual({ count: 1 });
  expect(await metrics.metrics()).toContain('device_payments_bus_requests_late_total{operation="test.count"} 1');
});

it("a call: its message has the deadline until which the caller waits", async () => {
  const received = new Promise<Msg>((resolve) => {
    server.nc.subscribe("test.received", { callback: (_error, message) => resolve(message) });
  });
  await server.nc.flush();
  const sentAtMs = Date.now();
  const asked = call(caller.nc, repeatable("test.received", z.object({}), z.object({})), {}, 100);
  const message = await received;
  expect(lateByMs(server.nc, message)).toBe(0);
  expect(Number(message.headers?.get("Deadline-Ms"))).toBeGreaterThanOrEqual(sentAtMs + 100);
  await expect(asked).rejects.toBeInstanceOf(UnavailableError);
  await delay(5);
  expect(lateByMs(server.nc, message)).toBeGreaterThan(0);
});
