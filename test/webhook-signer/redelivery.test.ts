/** Requested attempts: redeliveries outside the schedule, after an attempt in progress, past the breaker; and owners' tests. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { redeliverWebhook } from "../../services/bus/messages/webhook-deliveries.ts";
import {
  getWebhookEndpoint,
  registerWebhookEndpoint,
  testWebhookEndpoint,
} from "../../services/bus/messages/webhook-endpoints.ts";
import { type Fleet, refusalOf, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld();
});
afterAll(() => world.stop());

const redeliver = (fleet: Fleet, deliveryId: number, idempotencyKey?: string) =>
  world.ask(redeliverWebhook, {
    consumer: fleet.consumer,
    deliveryId,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  });

/** Waits until the fleet's only delivery has this number of attempts, and returns it. */
const tried = (fleet: Fleet, attempts: number) =>
  waitFor(`${attempts} attempts`, async () => {
    const [one] = await world.deliveries(fleet);
    return one?.attempts === attempts && one;
  });

// Each test has its own fleet and path.
describe("a request during an attempt", () => {
  test.concurrent.each([
    ["succeeds", 200, "delivered"],
    ["fails permanently", 500, "failed"],
  ] as const)("is carried out after the attempt, although the attempt %s", async (name, status, end) => {
    const path = `/under-way-${status}`;
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, path);
    world.receiver.behave(path, () => (world.receiver.at(path).length === 1 ? 500 : { status, afterMs: 1_200 }));
    await world.emitMany([fleet], 1);
    const { deliveryId } = await tried(fleet, 1);
    await world.database`update webhook_deliveries set attempts = 9, due_at = now() where delivery_id = ${deliveryId}`;
    await waitFor("the tenth under way", () => world.receiver.at(path).length === 2);
    const answered = await redeliver(fleet, deliveryId, "once");
    expect(answered.delivery.status).toBe("pending");
    await redeliver(fleet, deliveryId, "once");
    await tried(fleet, 11);
    await delay(1_500);
    expect(world.receiver.at(path)).toHaveLength(3);
    const { delivery, attempts } = await world.ownDelivery(fleet, deliveryId);
    expect(delivery).toMatchObject({ status: end, attempts: 11, nextAttemptAtMs: null });
    expect(attempts.map((one) => one.manual)).toEqual([true, false, false]);
    expect(name).toBeDefined();
  });

  test.concurrent("during a requested attempt: one more attempt", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/twice");
    await world.emitMany([fleet], 1);
    const { deliveryId } = await tried(fleet, 1);
    world.receiver.behave("/twice", () => ({ status: 200, afterMs: 800 }));
    await redeliver(fleet, deliveryId, "a");
    await waitFor("the second under way", () => world.receiver.at("/twice").length === 2);
    await redeliver(fleet, deliveryId, "b");
    await tried(fleet, 3);
    await delay(1_200);
    expect(world.receiver.at("/twice")).toHaveLength(3);
    expect((await world.ownDelivery(fleet, deliveryId)).delivery.status).toBe("delivered");
  });
});

describe("a request for a delivery that waits for its next attempt", () => {
  test("keeps the schedule: its time and its count are as before", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/kept");
    world.receiver.behave("/kept", () => 500);
    await world.emitMany([fleet], 1);
    const first = await tried(fleet, 1);
    await world.database`
      update webhook_deliveries set due_at = due_at + interval '5 minutes' where delivery_id = ${first.deliveryId}`;
    const plannedAtMs = (first.nextAttemptAtMs ?? 0) + 300_000;
    for (let count = 2; count <= 12; count += 1) {
      await redeliver(fleet, first.deliveryId);
      const one = await tried(fleet, count);
      expect(one).toMatchObject({ status: "pending", nextAttemptAtMs: plannedAtMs });
      await world.database`
        update webhook_endpoints set open_until = null, consecutive_failures = 0, generation = generation + 1
        where endpoint_id = ${endpointId}`;
    }
    await world.hurry(fleet);
    const second = await tried(fleet, 13);
    // The second retry of the schedule: 30 s later.
    const waitMs = (second.nextAttemptAtMs ?? 0) - Date.now();
    expect(waitMs).toBeGreaterThan(22_000);
    expect(waitMs).toBeLessThan(37_000);
  });

  test("an offer: it does not lapse before its time", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/kept-offer");
    await world.addRelay();
    world.receiver.behave("/kept-offer", () => 500);
    await world.emit(fleet, { eventType: "serving_task.offered", expiresInMs: 60_000 });
    const { deliveryId } = await tried(fleet, 1);
    for (let count = 2; count <= 6; count += 1) {
      await redeliver(fleet, deliveryId);
      const one = await tried(fleet, count);
      expect(one.status).toBe("pending");
      await world.database`
        update webhook_endpoints set open_until = null, consecutive_failures = 0, generation = generation + 1
        where endpoint_id = ${endpointId}`;
    }
  });
});

test("a request while the breaker is open: the attempt is its probe, at once and before all waiting deliveries", async () => {
  const fleet = await world.openFleet();
  const { endpointId } = await world.addEndpoint(fleet, "/probe");
  world.receiver.behave("/probe", () => 500);
  await world.emitMany([fleet], 8);
  const request = { caller: fleet.owner, endpointId };
  await waitFor("the open breaker", async () => {
    const { endpoint } = await world.ask(getWebhookEndpoint, request);
    return endpoint.openUntilMs !== null && endpoint.consecutiveFailures >= 5;
  });
  const all = await waitFor("what was under way", async () => {
    const deliveries = await world.deliveries(fleet);
    const tries = deliveries.reduce((sum, one) => sum + one.attempts, 0);
    return deliveries.length === 8 && tries === world.receiver.at("/probe").length && deliveries;
  });
  const before = world.receiver.at("/probe").length;
  const last = all.at(-1)?.deliveryId ?? 0;
  await redeliver(fleet, last);
  await waitFor("the probe", () => world.receiver.at("/probe").length > before, 20_000);
  await delay(700);
  expect(
    world.receiver
      .at("/probe")
      .slice(before)
      .map((one) => one.deliveryId),
  ).toEqual([last]);
  const { endpoint } = await world.ask(getWebhookEndpoint, request);
  // Twice as long as the first time, as after each failed probe.
  expect((endpoint.openUntilMs ?? 0) - Date.now()).toBeGreaterThan(45_000);
  world.receiver.behave("/probe", () => 200);
  await redeliver(fleet, last);
  await waitFor("all of them", async () => {
    await world.hurry(fleet);
    return (await world.deliveries(fleet)).every((one) => one.status === "delivered");
  });
});

test("a redelivery of an owner's test: refused, and nothing is sent", async () => {
  const fleet = await world.openFleet();
  const { endpointId } = await world.addEndpoint(fleet, "/test-again");
  world.receiver.behave("/test-again", () => 500);
  const { delivery } = await world.ask(testWebhookEndpoint, { caller: fleet.owner, endpointId });
  const refused = await refusalOf(redeliver(fleet, delivery.deliveryId));
  expect(refused).toMatchObject({ code: "conflict", detail: expect.stringMatching(/test/) as string });
  expect(world.receiver.at("/test-again")).toHaveLength(1);
});

test("a delivery is read with its attempts as of one moment", async () => {
  const fleet = await world.openFleet();
  await world.addEndpoint(fleet, "/whole");
  await world.emitMany([fleet], 1);
  const { deliveryId } = await tried(fleet, 1);
  const torn: string[] = [];
  for (let turn = 2; turn <= 25; turn += 1) {
    await redeliver(fleet, deliveryId);
    for (let isOver = false; !isOver; ) {
      const reads = await Promise.all(Array.from({ length: 6 }, () => world.ownDelivery(fleet, deliveryId)));
      for (const { delivery, attempts } of reads) {
        if (delivery.attempts !== attempts.length) torn.push(`${delivery.attempts} with ${attempts.length}`);
        isOver ||= delivery.attempts === turn;
      }
    }
  }
  expect(torn).toEqual([]);
});

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
  // A failure now counts as the first one.
  world.receiver.behave("/fixed", () => 500);
  await world.emitMany([fleet], 1);
  await waitFor(
    "the failure",
    async () => (await world.ask(getWebhookEndpoint, request)).endpoint.consecutiveFailures === 1,
  );
  expect((await world.ask(getWebhookEndpoint, request)).endpoint.status).toBe("active");
});

test("tests at once: one per endpoint and four per owner run, and another owner's test is not delayed", async () => {
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

test("a test of a suspended consumer's endpoint: refused, and nothing is sent", async () => {
  const fleet = await world.openFleet();
  const { endpointId } = await world.addEndpoint(fleet, "/suspended-test");
  await world.database`update robotics_consumers set status = 'suspended' where consumer_id = ${fleet.consumerId}`;
  const refused = await refusalOf(world.ask(testWebhookEndpoint, { caller: fleet.owner, endpointId }));
  expect(refused).toMatchObject({ code: "conflict", detail: expect.stringMatching(/suspended/) as string });
  expect(world.receiver.at("/suspended-test")).toEqual([]);
});

test("a test that gets no connection: reports the error and the address", async () => {
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
