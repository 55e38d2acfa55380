/** Deliveries wait while the disk is short of space, and are sent when it has space again. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { setDisk } from "../../services/bus/disk-gate.ts";
import type { DiskTier } from "../../services/runtime/disk-watch.ts";
import { type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
let tier: DiskTier = "ok";
beforeAll(async () => {
  world = await startSignerWorld();
  setDisk(world.bus.nc, { tier: () => tier, freeBytes: () => 0 });
  await world.addRelay();
});
afterAll(() => world.stop());

describe("a due delivery", () => {
  test("free space below the reserve: kept and not sent; enough space again: sent once", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/paused");
    await world.emit(fleet);
    await waitFor("the first delivery", () => world.receiver.at("/paused").length === 1);

    tier = "reserve";
    await world.emit(fleet);
    await waitFor("a second delivery on record", async () => (await world.deliveries(fleet)).length === 2);
    // Longer than a due delivery waits with space.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(world.receiver.at("/paused")).toHaveLength(1);
    expect((await world.deliveries(fleet)).map(({ status }) => status).toSorted()).toEqual(["delivered", "pending"]);

    tier = "low";
    await waitFor("the second delivery", () => world.receiver.at("/paused").length === 2);
    await waitFor("its outcome", async () =>
      (await world.deliveries(fleet)).every(({ status }) => status === "delivered"),
    );
    expect(world.receiver.at("/paused")).toHaveLength(2);
  });
});
