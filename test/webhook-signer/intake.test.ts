/** How the signer follows the events of robotics, at one NATS server. */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLog } from "../../services/runtime/log.ts";
import { followEvents } from "../../services/webhook-signer/intake.ts";
import { startPreparedBus, type TestBus } from "../support/start-bus.ts";

const log = createLog({ service: "test", level: "silent" });
let started: TestBus;
beforeAll(async () => {
  started = await startPreparedBus();
});
afterAll(() => started.stop());

test("a follower that is stopped while the server creates its consumer: it ends", async () => {
  const { bus } = started;
  const request = bus.nc.subscribe("$JS.API.CONSUMER.>", { max: 1 });
  await bus.nc.flush();
  const follower = followEvents({ bus, log, take: async () => undefined });
  for await (const _ of request) break;
  expect(await Promise.race([follower.stop().then(() => "ended"), pause(10_000, "hangs")])).toBe("ended");
});
