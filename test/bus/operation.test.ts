/** What `serve` answers when a handler asks another service. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { type Bus, connectBus } from "../../services/bus/connection.ts";
import { call, defineOperation, serve } from "../../services/bus/operation.ts";
import { type BusRefusal, RefusedError } from "../../services/bus/refusals.ts";
import { currentRequestId, forRequest } from "../../services/runtime/log.ts";
import { startNats, type TestServer } from "../support/servers.ts";

const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };
const inner = defineOperation("test.inner", "repeatable", z.object({}), z.object({}));
const outer = defineOperation("test.outer", "repeatable", z.object({}), z.object({}));
let nats: TestServer;
let bus: Bus;
let refusal: BusRefusal = { code: "busy", retryAfterMs: 5 };
let effects = 0;

beforeAll(async () => {
  nats = await startNats();
  bus = await connectBus({ url: nats.url, name: "test", log: QUIET });
  const responder = { nc: bus.nc, log: QUIET, queue: "test" };
  serve(responder, inner, async () => {
    throw new RefusedError(refusal);
  });
  serve(responder, outer, async () => {
    effects += 1;
    return await call(bus.nc, inner, {});
  });
  await bus.nc.flush();
});
afterAll(async () => {
  await bus.close();
  await nats.stop();
});

it("serve: a handler has an effect and then asks a busy service, the caller gets unavailable", async () => {
  refusal = { code: "busy", retryAfterMs: 5 };
  await expect(call(bus.nc, outer, {})).rejects.toMatchObject({ refusal: { code: "unavailable", retryAfterMs: 5 } });
  expect(effects).toBe(1);
});

it("serve: a handler refuses as busy itself, the caller gets busy", async () => {
  refusal = { code: "busy", retryAfterMs: 5 };
  await expect(call(bus.nc, inner, {})).rejects.toMatchObject({ refusal });
});

it("serve: another service refuses for good, the caller gets that refusal", async () => {
  refusal = { code: "not_found" };
  await expect(call(bus.nc, outer, {})).rejects.toMatchObject({ refusal });
});

it("call for a request: the service that answers works for the same one, and for none afterwards", async () => {
  const asked = defineOperation(
    "test.asked",
    "repeatable",
    z.object({}),
    z.object({ requestId: z.string().optional() }),
  );
  const relayed = defineOperation("test.relayed", "repeatable", z.object({}), asked.reply);
  const responder = { nc: bus.nc, log: QUIET, queue: "test" };
  serve(responder, asked, async () => ({ requestId: currentRequestId() }));
  serve(responder, relayed, async () => await call(bus.nc, asked, {}));
  await bus.nc.flush();
  expect(await forRequest("till-1", async () => await call(bus.nc, relayed, {}))).toEqual({ requestId: "till-1" });
  expect(await call(bus.nc, relayed, {})).toEqual({});
});
