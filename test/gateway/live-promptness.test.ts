/** How soon the cashier's live socket reports a change. `live.test.ts` checks which changes it reports. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bearer, openLive, type TestLiveSocket } from "../support/live-socket.ts";
import { type GatewayWorld, startGatewayWorld, type TestStation } from "./gateway-world.ts";

let world: GatewayWorld;
beforeAll(async () => {
  world = await startGatewayWorld();
});
afterAll(() => world.stop());

async function follow(stationId: number): Promise<{ station: TestStation; live: TestLiveSocket }> {
  const station = await world.openStation(stationId);
  const live = await openLive(world.baseUrl, stationId, bearer(await world.session()));
  await live.until(() => true);
  return { station, live };
}

describe("a change on the cashier's live socket", () => {
  it("a withdrawn route: reported within 100 ms of the commit", async () => {
    const { station, live } = await follow(1);
    const atMs = Date.now();
    await station.run({ type: "device_silent", deviceId: station.companionId, lastSeenAtMs: atMs }, { atMs });
    const shown = await live.until(
      (message) => message.type === "state" && message.companions[0]?.readiness === "offline",
    );
    expect(shown.atMs - atMs).toBeLessThan(100);
    await live.close();
  });

  it("a deadline that passes without a commit: reported within 500 ms", async () => {
    const { station, live } = await follow(2);
    const atMs = Date.now() - 178_000;
    await station.handOver({ atMs, lifetimeMs: 180_000 });
    const lapsed = await live.until(
      (message) => message.type === "state" && message.active_intent?.cancel_offered === false,
    );
    expect(lapsed.atMs - (atMs + 180_000)).toBeLessThan(500);
    await live.close();
  });
});
