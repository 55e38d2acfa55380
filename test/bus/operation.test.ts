/** The reply of `serve` when a handler refuses or calls another service, and the request id in calls. */
import { beforeAll, expect, it } from "vitest";
import { z } from "zod";
import type { Bus } from "../../services/bus/connection.ts";
import { call, repeatable, serve } from "../../services/bus/operation.ts";
import { type BusRefusal, RefusedError } from "../../services/bus/refusals.ts";
import { currentRequestId, forRequest } from "../../services/runtime/log.ts";
import { QUIET } from "../support/quiet-log.ts";
import { startBus } from "../support/start-bus.ts";

const inner = repeatable("test.inner", z.object({}), z.object({}));
const outer = repeatable("test.outer", z.object({}), z.object({}));
let bus: Bus;
let refusal: BusRefusal = { code: "busy", retryAfterMs: 5 };
let effects = 0;

beforeAll(async () => {
  const started = await startBus();
  bus = started.bus;
  const responder = { nc: bus.nc, log: QUIET, queue: "test" };
  serve(responder, inner, async () => {
    throw new RefusedError(refusal);
  });
  serve(responder, outer, async () => {
    effects += 1;
    return await call(bus.nc, inner, {});
  });
  await bus.nc.flush();
  return started.stop;
});

it("serve: a handler calls a busy service after an effect; the caller gets unavailable", async () => {
  refusal = { code: "busy", retryAfterMs: 5 };
  await expect(call(bus.nc, outer, {})).rejects.toMatchObject({ refusal: { code: "unavailable", retryAfterMs: 5 } });
  expect(effects).toBe(1);
});

it("serve: a handler refuses with busy; the caller gets busy", async () => {
  refusal = { code: "busy", retryAfterMs: 5 };
  await expect(call(bus.nc, inner, {})).rejects.toMatchObject({ refusal });
});

it("serve: a handler calls another service, which refuses with not_found; the caller gets not_found", async () => {
  refusal = { code: "not_found" };
  await expect(call(bus.nc, outer, {})).rejects.toMatchObject({ refusal });
});

it("call: each called service has the caller's request id, and a later call without one has none", async () => {
  const asked = repeatable("test.asked", z.object({}), z.object({ requestId: z.string().optional() }));
  const relayed = repeatable("test.relayed", z.object({}), asked.reply);
  const responder = { nc: bus.nc, log: QUIET, queue: "test" };
  serve(responder, asked, async () => ({ requestId: currentRequestId() }));
  serve(responder, relayed, async () => await call(bus.nc, asked, {}));
  await bus.nc.flush();
  expect(await forRequest("till-1", async () => await call(bus.nc, relayed, {}))).toEqual({ requestId: "till-1" });
  expect(await call(bus.nc, relayed, {})).toEqual({});
});
