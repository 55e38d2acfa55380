/** What the gateway reports about a service that does not answer. */
import { beforeAll, describe, expect, it } from "vitest";
import { LIMITS } from "../../gateway/limits.ts";
import { ServicesHealth } from "../../gateway/service-health.ts";
import type { Bus } from "../../services/bus/connection.ts";
import { registryHealth, relayHealth, type ServiceHealth } from "../../services/bus/messages/health.ts";
import { serve } from "../../services/bus/operation.ts";
import { startBus } from "../support/start-bus.ts";
import { SILENT } from "./gateway-world.ts";

let bus: Bus;
let doesHang = false;

beforeAll(async () => {
  const started = await startBus();
  bus = started.bus;
  const answer = async (health: ServiceHealth): Promise<ServiceHealth> => {
    if (doesHang) await new Promise((resolve) => setTimeout(resolve, LIMITS.healthAnswerMs));
    return health;
  };
  const responder = { nc: bus.nc, log: SILENT, queue: "test" };
  serve(responder, relayHealth, async () => await answer({ databaseReady: true, fault: "delivery_late" }));
  serve(responder, registryHealth, async () => await answer({ databaseReady: false, fault: "database_unreachable" }));
  await bus.nc.flush();
  return started.stop;
});

describe("the gateway's check of the services", () => {
  it("a service that hangs: its report of a ready database is dropped, that of an unreachable one stays", async () => {
    const health = new ServicesHealth(bus.nc);
    const before = await health.check();
    expect(before.relay.health).toEqual({ databaseReady: true, fault: "delivery_late" });
    expect(before.registry.health?.databaseReady).toBe(false);
    doesHang = true;
    await new Promise((resolve) => setTimeout(resolve, LIMITS.healthCachedMs));
    const after = await health.check();
    expect(after.relay.health).toBeUndefined();
    expect(after.relay.answeredAtMs).toBe(before.relay.answeredAtMs);
    expect(after.registry.health?.databaseReady).toBe(false);
  });
});
