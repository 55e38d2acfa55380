/** Stations that the gateway's replica does not have: the gateway limits its requests to the registry about them. */

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { LIMITS } from "../../gateway/limits.ts";
import { ensureStreams } from "../../services/bus/ensure-streams.ts";
import { getStation } from "../../services/bus/messages/stations.ts";
import { serve } from "../../services/bus/operation.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { type Refused, send } from "../support/http.ts";
import { bearer, openLive } from "../support/live-socket.ts";
import { STATION_LOG } from "../support/one-log.ts";
import { type GatewayWorld, SILENT, startGatewayWorld } from "./gateway-world.ts";

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterAll(() => world.stop());

describe("a station that the gateway's replica does not have", () => {
  it("one request to the registry for all clients of a station, a few at once in all, none about a known station", async () => {
    await world.openStation(1);
    const token = await world.session();
    const codeOf = async (stationId: number): Promise<string | undefined> => {
      const path = `/api/cashier/v1/stations/${stationId}/lease/`;
      return (await send<Refused>(world.baseUrl, "GET", path, { token })).body.code;
    };
    const each = <T>(count: number, make: (index: number) => T): T[] =>
      Array.from({ length: count }, (_, at) => make(at));
    const requested: number[] = [];
    let isUnanswered = true;
    const registry = serve({ nc: world.bus.nc, log: SILENT, queue: "registry" }, getStation, async ({ stationId }) => {
      requested.push(stationId);
      if (isUnanswered) return await new Promise<never>(() => undefined);
      throw new RefusedError({ code: "not_found" });
    });
    await world.bus.nc.flush();
    try {
      const startedAtMs = performance.now();
      const same = each(10, () => codeOf(1_000));
      const others = each(6 * LIMITS.missingStationsAsked, (at) => codeOf(2_000 + at));
      expect(await codeOf(1)).toBeUndefined();
      expect(new Set(await Promise.all([...same, ...others]))).toEqual(new Set(["replica_stale"]));
      // The gateway may send another request after the timeout of the one before it.
      const rounds = 1 + Math.floor((performance.now() - startedAtMs) / LIMITS.missingStationMs);
      expect(requested.filter((stationId) => stationId === 1_000).length).toBeLessThanOrEqual(rounds);
      expect(requested.length).toBeLessThanOrEqual(rounds * LIMITS.missingStationsAsked);
      isUnanswered = false;
      // One request of the last round may still wait for its answer.
      await vi.waitFor(async () => expect(await codeOf(1_000)).toBe("not_found"), { timeout: 10_000 });
      expect(requested).not.toContain(1);
    } finally {
      registry.unsubscribe();
    }
  });

  it("its open live socket: ends with 4404 once the registry has answered, and not before", async () => {
    await world.openStation(3);
    const live = await openLive(world.baseUrl, 3, bearer(await world.session()));
    await live.until(({ type }) => type === "state");
    await world.bus.jsm.streams.delete(STATION_LOG.name);
    await ensureStreams(world.bus, { replicas: 1, logs: 1 });
    await live.until(({ type }) => type === "stale", 10_000);
    // No registry runs yet, so nothing answers.
    const early = await Promise.race([live.closed, new Promise((resolve) => setTimeout(resolve, 500, "open"))]);
    expect(early).toBe("open");
    const registry = serve({ nc: world.bus.nc, log: SILENT, queue: "registry" }, getStation, async () => {
      throw new RefusedError({ code: "not_found" });
    });
    try {
      expect(await live.closed).toMatchObject({ code: 4404, reason: "not_found" });
    } finally {
      registry.unsubscribe();
    }
  });
});
