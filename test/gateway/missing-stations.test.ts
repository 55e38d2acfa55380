/** A station that the gateway does not have: the registry is asked whether there is one, a bounded number of times at once. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { LIMITS } from "../../gateway/limits.ts";
import { getStation } from "../../services/bus/messages/registry.ts";
import { serve } from "../../services/bus/operation.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { type Refused, send } from "../support/http.ts";
import { type GatewayWorld, SILENT, startGatewayWorld } from "./gateway-world.ts";

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterAll(() => world.stop());

it("asks once for all who ask about the same one, about few at once, and about none that it has", async () => {
  await world.openStation(1);
  const token = await world.session();
  const codeOf = async (stationId: number): Promise<string | undefined> => {
    const path = `/api/cashier/v1/stations/${stationId}/lease/`;
    return (await send<Refused>(world.baseUrl, "GET", path, { token })).body.code;
  };
  const each = <T>(count: number, make: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, at) => make(at));
  const asked: number[] = [];
  let isSilent = true;
  const registry = serve({ nc: world.bus.nc, log: SILENT, queue: "registry" }, getStation, async ({ stationId }) => {
    asked.push(stationId);
    if (isSilent) return await new Promise<never>(() => undefined);
    throw new RefusedError({ code: "not_found" });
  });
  await world.bus.nc.flush();
  try {
    const startedAtMs = performance.now();
    const same = each(10, () => codeOf(1_000));
    const others = each(6 * LIMITS.missingStationsAsked, (at) => codeOf(2_000 + at));
    expect(await codeOf(1)).toBeUndefined();
    expect(new Set(await Promise.all([...same, ...others]))).toEqual(new Set(["replica_stale"]));
    // A question that nobody has answered in time makes room for another one.
    const rounds = 1 + Math.floor((performance.now() - startedAtMs) / LIMITS.missingStationMs);
    expect(asked.filter((stationId) => stationId === 1_000).length).toBeLessThanOrEqual(rounds);
    expect(asked.length).toBeLessThanOrEqual(rounds * LIMITS.missingStationsAsked);
    isSilent = false;
    expect(await codeOf(1_000)).toBe("not_found");
    expect(asked).not.toContain(1);
  } finally {
    registry.unsubscribe();
  }
});
