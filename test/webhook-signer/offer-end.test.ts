/** An offer whose target is so slow that the offer has ended before the request could begin. */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { registerWebhookEndpoint } from "../../services/bus/messages/webhook-endpoints.ts";
import { type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";
import { startSlowWay } from "./target/slow-way.ts";

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld();
  // An offer's end does not depend on this: events reach the signer by the relay.
  await world.addRelay();
});
afterAll(() => world.stop());

test("an offer that ends: no request, lapsed, without an attempt; an unending event is delivered by the same way", async () => {
  const fleet = await world.openFleet();
  const way = await startSlowWay(Number(new URL(world.receiver.url("/")).port), 1_500);
  onTestFinished(() => way.close());
  const url = `https://localhost:${way.port}/late`;
  await world.ask(registerWebhookEndpoint, { caller: fleet.owner, consumerId: fleet.consumerId, url });
  await world.emit(fleet, { eventType: "serving_task.offered", expiresInMs: 1_000 });
  const lapsed = await waitFor("the end", async () =>
    (await world.deliveries(fleet)).find((one) => one.status === "lapsed"),
  );
  expect(lapsed.attempts).toBe(0);
  expect((await world.ownDelivery(fleet, lapsed.deliveryId)).attempts).toEqual([]);
  await world.emit(fleet);
  await waitFor("the other one", () => world.receiver.at("/late").length > 0);
  expect(world.receiver.at("/late").map((one) => one.eventType)).toEqual(["serving_task.cancelled"]);
  expect((await world.deliveries(fleet)).map((one) => [one.status, one.attempts])).toContainEqual(["lapsed", 0]);
});
