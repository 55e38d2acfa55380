/** Owners' tests: the effect of their success, and how many there are at once. */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  getWebhookEndpoint,
  registerWebhookEndpoint,
  testWebhookEndpoint,
} from "../../services/bus/messages/webhook-endpoints.ts";
import { refusalOf, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld();
});
afterAll(() => world.stop());

test("a success: earlier failures no longer count, and deliveries that waited for the breaker are sent", async () => {
  const fleet = await world.openFleet();
  const { endpointId } = await world.addEndpoint(fleet, "/fixed");
  world.receiver.behave("/fixed", () => 500);
  await world.emitMany([fleet], 6);
  const request = { caller: fleet.owner, endpointId };
  await waitFor("the open breaker", async () => {
    const { endpoint } = await world.ask(getWebhookEndpoint, request);
    return endpoint.openUntilMs !== null && endpoint.consecutiveFailures >= 5;
  });
  await world.database`
    update webhook_endpoints set failing_since = now() - interval '6 days', failures_since_success = 30
    where endpoint_id = ${endpointId}`;
  world.receiver.behave("/fixed", () => 200);
  const { attempt } = await world.ask(testWebhookEndpoint, request);
  expect(attempt.status).toBe(200);
  const [row] = await world.database`
    select status, consecutive_failures, times_opened, open_until, failing_since, failures_since_success,
      last_success_at > now() - interval '10 seconds' as is_fresh
    from webhook_endpoints where endpoint_id = ${endpointId}`;
  expect(row).toEqual({
    status: "active",
    consecutive_failures: 0,
    times_opened: 0,
    open_until: null,
    failing_since: null,
    failures_since_success: 0,
    is_fresh: true,
  });
  await world.hurry(fleet);
  await waitFor("what had waited", async () =>
    (await world.deliveries(fleet)).every((one) => one.status === "delivered"),
  );
  // A failure now is the first one.
  world.receiver.behave("/fixed", () => 500);
  await world.emitMany([fleet], 1);
  await waitFor(
    "the failure",
    async () => (await world.ask(getWebhookEndpoint, request)).endpoint.consecutiveFailures === 1,
  );
  expect((await world.ask(getWebhookEndpoint, request)).endpoint.status).toBe("active");
});

test("one test at a time of an endpoint, four of an owner, and another owner's test is not delayed", async () => {
  const fleet = await world.openFleet();
  const fleets = [fleet, await world.addConsumer(fleet)];
  const ids: number[] = [];
  let answers = Promise.withResolvers<void>();
  for (const [at, one] of fleets.entries()) {
    for (let endpoint = 0; endpoint < 5; endpoint += 1) {
      const path = `/tests/${at}-${endpoint}`;
      ids.push((await world.addEndpoint(one, path)).endpointId);
      world.receiver.behave(path, () => ({ status: 200, after: answers.promise }));
    }
  }
  const other = await world.openFleet();
  const { endpointId } = await world.addEndpoint(other, "/other-test");
  let refused = 0;
  const ask = async (id: number): Promise<void> => {
    const asked = world.ask(testWebhookEndpoint, { caller: fleet.owner, endpointId: id });
    asked.catch(() => (refused += 1));
    await asked;
  };
  const [first = 0] = ids;
  const same = Promise.allSettled(Array.from({ length: 6 }, () => ask(first)));
  await waitFor("the first", () => world.receiver.at("/tests/0-0").length > 0);
  const others = Promise.allSettled(ids.slice(1).map(ask));
  const underWay = () => world.receiver.received.filter((one) => one.path.startsWith("/tests/")).length;
  await waitFor("the owner's, and the refusals", () => underWay() >= 4 && refused === ids.length + 5 - 4);
  const foreign = await world.ask(testWebhookEndpoint, { caller: other.owner, endpointId });
  expect(foreign.attempt.status).toBe(200);
  answers.resolve();
  const results = [...(await same), ...(await others)];
  expect(results.filter((result) => result.status === "fulfilled")).toHaveLength(4);
  expect(world.receiver.mostAtOnce("/tests/")).toBe(4);
  expect(world.receiver.mostAtOnce("/tests/0-0")).toBe(1);
  answers = Promise.withResolvers();
  const sent = underWay();
  const again = ask(first);
  await waitFor("its request", () => underWay() > sent);
  expect((await refusalOf(ask(first))).code).toBe("busy");
  answers.resolve();
  await again;
});

test("a suspended consumer's endpoint: refused, and nothing is sent", async () => {
  const fleet = await world.openFleet();
  const { endpointId } = await world.addEndpoint(fleet, "/suspended-test");
  await world.database`update robotics_consumers set status = 'suspended' where consumer_id = ${fleet.consumerId}`;
  const refused = await refusalOf(world.ask(testWebhookEndpoint, { caller: fleet.owner, endpointId }));
  expect(refused).toMatchObject({ code: "conflict", detail: expect.stringMatching(/suspended/) as string });
  expect(world.receiver.at("/suspended-test")).toEqual([]);
});

test("a test without a connection: reports the address, and how long its look-up took", async () => {
  const fleet = await world.openFleet();
  const url = "http://127.0.0.1:9/";
  const { endpoint } = await world.ask(registerWebhookEndpoint, {
    caller: fleet.owner,
    consumerId: fleet.consumerId,
    url,
  });
  const { attempt } = await world.ask(testWebhookEndpoint, { caller: fleet.owner, endpointId: endpoint.endpointId });
  expect(attempt).toMatchObject({ error: "connect_failed", address: "127.0.0.1", dnsMs: null, connectMs: null });
});
