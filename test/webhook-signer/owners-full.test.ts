/** A process that holds its maximum of owners: it releases owners without deliveries for others. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { changeWebhookEndpoint, registerWebhookEndpoint } from "../../services/bus/messages/webhook-endpoints.ts";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

// `afterAll` restores the limits, because the worker's next file uses the same object.
const originalLimits = { ...SIGNER_LIMITS };
let world: SignerWorld;
beforeAll(async () => {
  Object.assign(SIGNER_LIMITS, { owners: 2 });
  world = await startSignerWorld();
});
afterAll(async () => {
  await world.stop();
  Object.assign(SIGNER_LIMITS, originalLimits);
});

test("an owner whose deliveries wait for a paused endpoint: each other owner's deliveries are sent", async () => {
  for (const name of ["first", "second", "third", "fourth"]) {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, `/${name}`);
    await world.emitMany([fleet], 1);
    await waitFor(`the ${name} owner's`, () => world.receiver.at(`/${name}`).length === 1);
    if (name !== "first") continue;
    await world.ask(changeWebhookEndpoint, { caller: fleet.owner, endpointId, status: "paused" });
    await world.emitMany([fleet], 3);
  }
  expect(world.receiver.at("/first")).toHaveLength(1);
});

test("owners with open breakers: another owner's deliveries are sent", async () => {
  for (let owner = 0; owner < 3; owner += 1) {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/broken");
    // The state after enough failures.
    await world.database`
      update webhook_endpoints set consecutive_failures = 9, times_opened = 5, failing_since = now(),
        failures_since_success = 9, open_until = now() + interval '15 minutes', generation = generation + 1
      where endpoint_id = ${endpointId}`;
    await world.emitMany([fleet], 3);
  }
  const good = await world.openFleet();
  await world.addEndpoint(good, "/beside-broken");
  await world.emitMany([good], 1);
  await waitFor("the other owner's", () => world.receiver.at("/beside-broken").length === 1);
  expect(world.receiver.at("/broken")).toEqual([]);
});

test("more owners that are always due than it may hold: the owner with the largest id has its deliveries sent", async () => {
  // An outcome that cannot be stored leaves its delivery due, and the process has nothing to do for it.
  await world.database`alter table webhook_attempts add constraint probe check (response_body <> 'poison')`;
  world.receiver.behave("/always-due", () => ({ status: 200, body: "poison" }));
  for (let owner = 0; owner < 20; owner += 1) {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/always-due");
    await world.emitMany([fleet], 1);
  }
  await waitFor("their turns", () => new Set(world.receiver.at("/always-due").map((one) => one.deliveryId)).size >= 2);
  const last = await world.openFleet();
  await world.addEndpoint(last, "/last");
  await world.emitMany([last], 1);
  await waitFor("the last owner's", () => world.receiver.at("/last").length === 1);
  await world.database`alter table webhook_attempts drop constraint probe`;
});

test("a start with more owners than it may hold: all due deliveries are sent within half a minute", async () => {
  const OWNERS = 60;
  const url = world.receiver.url("/many");
  const fleets = await Promise.all(Array.from({ length: OWNERS }, () => world.openFleet()));
  for (const fleet of fleets) {
    await world.ask(registerWebhookEndpoint, {
      caller: fleet.owner,
      consumerId: fleet.consumerId,
      url,
    });
  }
  await world.database`
    insert into webhook_deliveries (organization_id, consumer_id, endpoint_id, event_type, body, status, due_at)
    select organization_id, consumer_id, endpoint_id, 'robotics.paused',
      json_build_object('delivery_id', endpoint_id, 'event_type', 'robotics.paused'), 'pending', now()
    from webhook_endpoints where url = ${url}`;
  await waitFor("all of them", () => world.receiver.at("/many").length === OWNERS, 30_000);
});
