/** How the gateway's bus handles a reply with a barrier. The service is scripted; the replicas are real. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createGatewayBus } from "../../gateway/gateway-bus.ts";
import type { GatewayBus } from "../../gateway/http/handler-context.ts";
import { LIMITS } from "../../gateway/limits.ts";
import type { Barrier, Caller } from "../../services/bus/messages/caller.ts";
import { logOut } from "../../services/bus/messages/sessions.ts";
import { type Serving, serve } from "../../services/bus/operation.ts";
import { stationCommandSubject } from "../../services/bus/subjects.ts";
import { type GatewayWorld, SILENT, startGatewayWorld } from "./gateway-world.ts";

const caller: Caller = { userId: 7, name: "Ana", organizationId: 1, role: "cashier", permissions: [] };
const SIGN_OUT = { caller, sessionId: 1 };

let world: GatewayWorld;
let gatewayBus: GatewayBus;
let service: Pick<Serving, "unsubscribe">;
let requestCount = 0;
beforeAll(async () => {
  world = await startGatewayWorld();
  const { replicas } = world.gateway;
  gatewayBus = createGatewayBus({ bus: world.bus, replicas, failures: { add: () => undefined } });
});
afterEach(() => {
  service.unsubscribe();
  requestCount = 0;
});
afterAll(() => world.stop());

async function answerWith(barrier: Barrier): Promise<void> {
  service = serve({ nc: world.bus.nc, log: SILENT, queue: "registry" }, logOut, async () => {
    requestCount += 1;
    return barrier;
  });
  await world.bus.nc.flush();
}

describe("the gateway's bus", () => {
  it("a change through a route without `awaitsEffect`: throws before the service receives a request", async () => {
    await answerWith({ positions: {} });
    await expect(gatewayBus.call(logOut, SIGN_OUT)).rejects.toThrow("awaitsEffect");
    expect(requestCount).toBe(0);
  });

  it("a change that the replicas have: effective", async () => {
    await world.session();
    await answerWith({ positions: { KV_SESSIONS: 1 } });
    const effect = { isEffective: true };
    await gatewayBus.noting(effect).call(logOut, SIGN_OUT);
    expect(effect.isEffective).toBe(true);
  });

  it("a change that the replicas do not have in time: not yet effective", async () => {
    await answerWith({ positions: { KV_SESSIONS: 1_000_000 } });
    const effect = { isEffective: true };
    const startedAtMs = performance.now();
    await gatewayBus.noting(effect).call(logOut, SIGN_OUT);
    expect(effect.isEffective).toBe(false);
    expect(performance.now() - startedAtMs).toBeGreaterThan(LIMITS.barrierVisibleMs * 0.9);
  });

  it("a change that the service reports as undelivered: not yet effective, without a further wait", async () => {
    await answerWith({ positions: {}, isUndelivered: true });
    const effect = { isEffective: true };
    const startedAtMs = performance.now();
    await gatewayBus.noting(effect).call(logOut, SIGN_OUT);
    expect(effect.isEffective).toBe(false);
    expect(performance.now() - startedAtMs).toBeLessThan(LIMITS.barrierVisibleMs);
  });

  it("a station that does not have the device of a report: 503, so that the device keeps the report", async () => {
    const { stationId } = await world.openStation(7);
    const response = { reply: { ok: false, code: "device_unknown" }, intent: null, sequence: 1 };
    service = world.bus.nc.subscribe(stationCommandSubject(stationId), {
      callback: (_error, message) => void message.respond(JSON.stringify(response)),
    });
    await world.bus.nc.flush();
    const report = { type: "intent_report", intentId: 1, outcome: "reported_success" } as const;
    const command = { ...report, providerReference: "RRN-1", providerCode: "00" };
    const asked = gatewayBus.command(stationId, { commandId: "report", actor: { kind: "device", id: 72 }, command });
    await expect(asked).rejects.toMatchObject({ code: "replica_stale" });
  });
});
