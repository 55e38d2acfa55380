/** A process that holds as many owners as it may: those with nothing to send make room. */
import { afterAll, beforeAll, expect, test } from "vitest";
import * as messages from "../../services/bus/messages/webhooks.ts";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  Object.assign(SIGNER_LIMITS, { owners: 2 });
  world = await startSignerWorld();
});
afterAll(() => world.stop());

test("each owner is sent to, also beside one whose deliveries wait for a paused endpoint", async () => {
  for (const name of ["first", "second", "third", "fourth"]) {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, `/${name}`);
    await world.emitMany([fleet], 1);
    await waitFor(`the ${name} owner's`, () => world.receiver.at(`/${name}`).length === 1, 15_000);
    if (name !== "first") continue;
    await world.ask(messages.changeEndpoint, { caller: fleet.owner, endpointId, status: "paused" });
    await world.emitMany([fleet], 3);
  }
  expect(world.receiver.at("/first")).toHaveLength(1);
}, 60_000);
