/** What a target receives, and what is recorded of it afterwards. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { redeliverWebhook } from "../../services/bus/messages/webhook-deliveries.ts";
import {
  changeWebhookEndpoint,
  getWebhookEndpoint,
  registerWebhookEndpoint,
} from "../../services/bus/messages/webhook-endpoints.ts";
import { expectedSignature, parseSignature } from "./receiver.ts";
import { refusalOf, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";
import { startSlowWay } from "./target/slow-way.ts";

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld();
  await world.addRelay();
});
afterAll(() => world.stop());

describe("a delivery", () => {
  test("is the envelope byte for byte, with the contract's header", async () => {
    const fleet = await world.openFleet();
    const { secret } = await world.addEndpoint(fleet, "/exact");
    await world.emit(fleet, { eventType: "serving_task.offered" });
    const [got] = await waitFor(
      "the request",
      () => world.receiver.at("/exact").length === 1 && world.receiver.at("/exact"),
    );
    const [delivery] = await world.untilStatus(fleet, "delivered");
    expect(got?.body).toBe(delivery?.body);
    // The first request opens the connection. Later requests use it again.
    const { attempts } = await world.ownDelivery(fleet, delivery?.deliveryId ?? 0);
    for (const ms of [attempts[0]?.connectMs, attempts[0]?.tlsMs]) expect(ms).toBeGreaterThan(0);
    const body = JSON.parse(got?.body ?? "") as Record<string, unknown>;
    expect(Object.keys(body)).toEqual(["delivery_id", "event_type", "created_at", "payload"]);
    expect(body["created_at"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Object.keys(body["payload"] as object)).toEqual([
      "task_id",
      "display_number",
      "leg",
      "status",
      "expires_at",
    ]);
    expect(got?.signature).toMatch(/^t=\d{10},v1=[0-9a-f]{64}$/);
    const { t, v1 } = parseSignature(got?.signature ?? "");
    expect(v1).toEqual([expectedSignature(secret, t, got?.body ?? "")]);
    expect(Math.abs(t * 1_000 - Date.now())).toBeLessThan(10_000);
  });

  test("records an attempt: the address, the time of each step and the answer", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/record");
    world.receiver.behave("/record", () => ({ status: 202, body: "thanks\u0000" }));
    await world.emit(fleet);
    const [delivery] = await world.untilStatus(fleet, "delivered");
    const { attempts } = await world.ownDelivery(fleet, delivery?.deliveryId ?? 0);
    expect(attempts).toHaveLength(1);
    expect(attempts[0]).toMatchObject({
      status: 202,
      error: null,
      responseBody: "thanks ",
      truncated: false,
      manual: false,
    });
    expect(attempts[0]?.address).toBe("127.0.0.1");
    for (const ms of [attempts[0]?.firstByteMs, attempts[0]?.totalMs]) expect(ms).toBeGreaterThan(0);
  });

  test("a failed delivery: sent again with the same id and bytes and a new `t`, until one attempt succeeds", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/again");
    world.receiver.behave("/again", () => (world.receiver.at("/again").length < 3 ? 500 : 204));
    await world.emit(fleet);
    const first = await waitFor("the first attempt", async () => {
      const [one] = await world.deliveries(fleet);
      return one?.attempts === 1 && one.nextAttemptAtMs !== null && one.nextAttemptAtMs > Date.now() + 1_000 && one;
    });
    // 5 s ± 20 %, counted from the write of the outcome.
    const waitMs = (first.nextAttemptAtMs ?? 0) - (world.receiver.at("/again")[0]?.atMs ?? 0);
    expect(waitMs).toBeGreaterThan(3_900);
    expect((first.nextAttemptAtMs ?? 0) - Date.now()).toBeLessThanOrEqual(6_000);
    await waitFor("the second second", () => Date.now() - (world.receiver.at("/again")[0]?.atMs ?? 0) > 1_100);
    await world.hurry(fleet);
    const second = await waitFor("the second attempt", async () => {
      const [one] = await world.deliveries(fleet);
      return (
        one?.attempts === 2 &&
        (one.nextAttemptAtMs ?? 0) > Date.now() + 20_000 &&
        (one.nextAttemptAtMs ?? 0) < Date.now() + 40_000 &&
        one
      );
    });
    expect(second.status).toBe("pending");
    await world.hurry(fleet);
    const [delivered] = await world.untilStatus(fleet, "delivered");
    expect(delivered?.attempts).toBe(3);
    const got = world.receiver.at("/again");
    expect(got).toHaveLength(3);
    expect(new Set(got.map((one) => one.body)).size).toBe(1);
    expect(parseSignature(got[1]?.signature ?? "").t).toBeGreaterThan(parseSignature(got[0]?.signature ?? "").t);
    const { attempts } = await world.ownDelivery(fleet, delivered?.deliveryId ?? 0);
    expect(attempts.map((one) => one.status)).toEqual([204, 500, 500]);
    expect(attempts.map((one) => one.error)).toEqual([null, "status_not_success", "status_not_success"]);
  });

  test("Retry-After: the next attempt waits that long, at most an hour", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/later");
    let retryAfter = "60";
    world.receiver.behave("/later", () => ({ status: 503, headers: { "Retry-After": retryAfter } }));
    await world.emit(fleet);
    const waiting = await waitFor("the first attempt", async () => {
      const [one] = await world.deliveries(fleet);
      return (one?.nextAttemptAtMs ?? 0) > Date.now() + 30_000 && one?.attempts === 1 && one;
    });
    expect(waiting.nextAttemptAtMs).toBeGreaterThan(Date.now() + 50_000);
    expect(waiting.nextAttemptAtMs).toBeLessThan(Date.now() + 61_000);
    retryAfter = "86400";
    await world.hurry(fleet);
    const longer = await waitFor("the second attempt", async () => {
      const [one] = await world.deliveries(fleet);
      return one?.attempts === 2 && (one.nextAttemptAtMs ?? 0) > Date.now() + 3_000_000 && one;
    });
    expect(longer.nextAttemptAtMs).toBeLessThan(Date.now() + 3_601_000);
  });

  test("fails permanently after the tenth attempt", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/never");
    world.receiver.behave("/never", () => 500);
    await world.emit(fleet);
    await waitFor("the first attempt", async () => {
      const [one] = await world.deliveries(fleet);
      return one?.attempts === 1 && one.nextAttemptAtMs !== null;
    });
    await world.database`
      update webhook_deliveries set attempts = 9, due_at = now() where consumer_id = ${fleet.consumerId}`;
    const [failed] = await world.untilStatus(fleet, "failed");
    expect(failed).toMatchObject({ attempts: 10, nextAttemptAtMs: null });
  });

  test("a success resets the recorded failures", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/recovers");
    world.receiver.behave("/recovers", () => (world.receiver.at("/recovers").length < 4 ? 500 : 200));
    await world.emitMany([fleet], 3);
    const request = { caller: fleet.owner, endpointId };
    await waitFor("three failures", async () => {
      const { endpoint } = await world.ask(getWebhookEndpoint, request);
      return endpoint.consecutiveFailures === 3 && endpoint.lastFailureAtMs !== null;
    });
    await world.hurry(fleet);
    await world.untilStatus(fleet, "delivered", 3);
    await waitFor("the reset", async () => {
      const { endpoint } = await world.ask(getWebhookEndpoint, request);
      return endpoint.consecutiveFailures === 0 && endpoint.lastSuccessAtMs !== null;
    });
  });
});

describe("an offer", () => {
  test("after its expiry: not sent, and lapsed", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/offers");
    const request = { caller: fleet.owner, endpointId };
    await world.ask(changeWebhookEndpoint, { ...request, status: "paused" });
    await world.emit(fleet, { eventType: "serving_task.offered", expiresInMs: 700 });
    await world.emit(fleet, { eventType: "serving_task.cancelled" });
    await world.untilStatus(fleet, "pending", 2);
    await waitFor("the expiry", async () => {
      const [row] = await world.database<[{ over: boolean }]>`
        select bool_or(lapses_at <= now()) as over from webhook_deliveries where consumer_id = ${fleet.consumerId}`;
      return row.over;
    });
    await world.ask(changeWebhookEndpoint, { ...request, status: "active" });
    await world.untilStatus(fleet, "delivered");
    await world.untilStatus(fleet, "lapsed");
    expect(world.receiver.at("/offers").map((one) => one.eventType)).toEqual(["serving_task.cancelled"]);
  });

  test("a next attempt after its expiry: the offer lapses at once", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/short");
    world.receiver.behave("/short", () => ({ status: 503, headers: { "Retry-After": "600" } }));
    await world.emit(fleet, { eventType: "serving_task.offered", expiresInMs: 60_000 });
    const [lapsed] = await world.untilStatus(fleet, "lapsed");
    expect(lapsed?.attempts).toBe(1);
    await world.database`update webhook_deliveries set lapses_at = now() where delivery_id = ${lapsed?.deliveryId ?? 0}`;
    const late = await refusalOf(
      world.ask(redeliverWebhook, { consumer: fleet.consumer, deliveryId: lapsed?.deliveryId ?? 0 }),
    );
    expect(late.code).toBe("delivery_lapsed");
  });

  test("a paused endpoint at its expiry: the offer lapses", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/asleep");
    await world.ask(changeWebhookEndpoint, { caller: fleet.owner, endpointId, status: "paused" });
    await world.emit(fleet, { eventType: "serving_task.offered", expiresInMs: 300 });
    await waitFor("the end", async () => (await world.deliveries(fleet))[0]?.status === "lapsed");
    expect(world.receiver.at("/asleep")).toEqual([]);
  });
});

describe("events", () => {
  test("events of a filial: go to each of its consumers, and a consumer without an endpoint can read them", async () => {
    const fleet = await world.openFleet();
    const other = await world.addConsumer(fleet);
    await world.addEndpoint(fleet, "/both/1");
    await world.addEndpoint(fleet, "/both/2");
    await world.emit(fleet, { eventType: "robotics.paused" });
    await world.untilStatus(fleet, "delivered", 2);
    const [unsent] = await world.untilStatus(other, "unsent");
    expect(unsent).toMatchObject({ endpointId: null, attempts: 0, eventType: "robotics.paused" });
    expect(JSON.parse(unsent?.body ?? "")).toMatchObject({ payload: { filial_id: fleet.filialId } });
  });

  test("an event that the bus repeats: taken once", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/once");
    const eventId = await world.emit(fleet);
    await world.untilStatus(fleet, "delivered");
    const [row] = await world.database<[{ payload: { event: object } }]>`
      select payload from outbox where outbox_id = ${eventId}`;
    const again = JSON.stringify({ eventId, event: row.payload.event });
    for (let at = 0; at < 5; at += 1) await world.bus.js.publish(`robotics.event.${fleet.filialId}`, again);
    await world.emit(fleet);
    await world.untilStatus(fleet, "delivered", 2);
    expect(await world.deliveries(fleet)).toHaveLength(2);
    expect(world.receiver.at("/once")).toHaveLength(2);
  });

  test("unreadable events: do not stop the others", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/unreadable");
    await world.bus.js.publish(`robotics.event.${fleet.filialId}`, "{}");
    await world.bus.js.publish(`robotics.event.${fleet.filialId}`, "no json");
    await world.emit(fleet);
    await world.untilStatus(fleet, "delivered");
  });
});

test("an offer that ends during a slow connection: no request, no attempt; an event without an end is delivered", async () => {
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
