/** What owners do with endpoints, what the service changes automatically, and which secrets stay hidden. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  getWebhookDelivery,
  listConsumerWebhookDeliveries,
  listWebhookDeliveries,
  redeliverWebhook,
} from "../../services/bus/messages/webhook-deliveries.ts";
import {
  changeWebhookEndpoint,
  deleteWebhookEndpoint,
  getWebhookEndpoint,
  listWebhookEndpoints,
  registerWebhookEndpoint,
  rotateWebhookSecret,
  testWebhookEndpoint,
  type WebhookEndpoint,
} from "../../services/bus/messages/webhook-endpoints.ts";
import { SIGNER_LIMITS } from "../../services/webhook-signer/limits.ts";
import { deleteOldDeliveries } from "../../services/webhook-signer/sql/deliveries.ts";
import { expectedSignature, parseSignature } from "./receiver.ts";
import { type Fleet, refusalOf, type SignerWorld, startSignerWorld, waitFor } from "./signer-world.ts";

let world: SignerWorld;
beforeAll(async () => {
  world = await startSignerWorld();
});
afterAll(() => world.stop());

const DAY_MS = 86_400_000;

const endpointOf = async ({ owner: caller }: Fleet, endpointId: number): Promise<WebhookEndpoint> =>
  (await world.ask(getWebhookEndpoint, { caller, endpointId })).endpoint;

const trailOf = ({ organizationId }: Fleet) =>
  world.database<{ action: string; actor_kind: string; data: object }[]>`
    select action, actor_kind, data from robotics_trail where organization_id = ${organizationId} order by event_id`;

describe("registration", () => {
  test("shows the secret once, of 32 random bytes, and applies the address rule", async () => {
    const { owner: caller, consumerId, ...fleet } = await world.openFleet();
    const { endpoint, secret } = await world.ask(registerWebhookEndpoint, {
      caller,
      consumerId,
      url: world.receiver.url("/registered"),
    });
    expect(secret).toMatch(/^whsec_[\w-]{43}$/);
    expect(endpoint).toMatchObject({ status: "active", consumerId, filialId: fleet.filialId, disabledReason: null });
    const { endpoint: read } = await world.ask(getWebhookEndpoint, { caller, endpointId: endpoint.endpointId });
    expect(JSON.stringify(read)).not.toContain(secret);
    expect(read.secrets).toHaveLength(1);
  });

  test.each([
    ["http://example.com/", "not_https"],
    ["https://10.0.0.1/", "host_not_public"],
    ["https://user:p@example.com/", "credentials_in_url"],
  ])("%s: refused", async (url, reason) => {
    const { owner: caller, consumerId } = await world.openFleet();
    const refusal = await refusalOf(world.ask(registerWebhookEndpoint, { caller, consumerId, url }));
    expect(refusal).toMatchObject({ code: "webhook_target_refused", reason });
  });

  test("this machine as target: for test consumers only", async () => {
    const { owner: caller, consumerId } = await world.openFleet({ mode: "live" });
    const refusal = await refusalOf(
      world.ask(registerWebhookEndpoint, { caller, consumerId, url: world.receiver.url("/live") }),
    );
    expect(refusal.code).toBe("webhook_target_refused");
  });

  test("repeated when the address is refused by now: the endpoint is already created, and stays active", async () => {
    const { owner: caller, consumerId } = await world.openFleet();
    const creation = { id: "the lost answer", digest: "1" };
    const register = { caller, consumerId, url: world.receiver.url("/twice"), creation };
    const { endpoint } = await world.ask(registerWebhookEndpoint, register);
    // This machine is no target of a live consumer.
    await world.database`update robotics_consumers set mode = 'live' where consumer_id = ${consumerId}`;
    expect((await refusalOf(world.ask(registerWebhookEndpoint, register))).code).toBe("already_created");
    const change = { caller, endpointId: endpoint.endpointId };
    const same = await world.ask(changeWebhookEndpoint, { ...change, status: "active" });
    expect(same.endpoint.status).toBe("active");
    await world.ask(changeWebhookEndpoint, { ...change, status: "paused" });
    const activation = world.ask(changeWebhookEndpoint, { ...change, status: "active" });
    expect((await refusalOf(activation)).code).toBe("webhook_target_refused");
  });

  test("more than the consumer's maximum: refused, also ten at once", async () => {
    const fleet = await world.openFleet();
    const asked = Array.from({ length: 10 }, (_, at) => world.addEndpoint(fleet, `/many/${at}`));
    const results = await Promise.allSettled(asked);
    expect(results.filter((one) => one.status === "fulfilled")).toHaveLength(SIGNER_LIMITS.endpointsPerConsumer);
  });
});

describe("a target that answers 410", () => {
  test("is disabled at once, with the reason for its owner; waiting deliveries have failed and nothing new is sent", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/gone");
    world.receiver.behave("/gone", () => 410);
    await world.emitMany([fleet], 6);
    await waitFor("the end", async () => (await endpointOf(fleet, endpointId)).status === "disabled");
    expect((await endpointOf(fleet, endpointId)).disabledReason).toBe("gone");
    await world.untilStatus(fleet, "failed", 6);
    expect((await trailOf(fleet)).at(-1)).toMatchObject({
      action: "webhook_endpoint_disabled",
      actor_kind: "system",
      data: { reason: "gone" },
    });
    await world.emitMany([fleet], 1);
    const [unsent] = await world.untilStatus(fleet, "unsent");
    expect(unsent?.endpointId).toBe(endpointId);
    const again = { consumer: fleet.consumer, deliveryId: unsent?.deliveryId ?? 0 };
    expect((await refusalOf(world.ask(redeliverWebhook, again))).code).toBe("endpoint_unavailable");
    world.receiver.behave("/gone", () => 200);
    await world.ask(changeWebhookEndpoint, { caller: fleet.owner, endpointId, status: "active" });
    expect(await endpointOf(fleet, endpointId)).toMatchObject({ status: "active", disabledReason: null });
    await world.emitMany([fleet], 1);
    const [delivered] = await world.untilStatus(fleet, "delivered");
    // Of the first six, those in progress at the first 410 arrive as well, each once.
    const sent = world.receiver.at("/gone").map(({ deliveryId }) => deliveryId);
    expect(new Set(sent).size).toBe(sent.length);
    expect(sent).not.toContain(unsent?.deliveryId);
    expect(sent).toContain(delivered?.deliveryId);
  });
});

describe("a target that fails repeatedly", () => {
  test("is paused after five failures, uses up no attempts meanwhile, and starts again when its owner activates it", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/failing");
    world.receiver.behave("/failing", () => 500);
    await world.emitMany([fleet], 30);
    const open = await waitFor("the open breaker", async () => {
      const endpoint = await endpointOf(fleet, endpointId);
      return endpoint.openUntilMs !== null && endpoint;
    });
    expect(open.openUntilMs).toBeGreaterThan(Date.now() + 25_000);
    expect(open.openUntilMs).toBeLessThan(Date.now() + 31_000);
    await waitFor("what was under way", async () => {
      const deliveries = await world.deliveries(fleet);
      return deliveries.length === 30 && deliveries.reduce((sum, one) => sum + one.attempts, 0) === 5;
    });
    await world.hurry(fleet);
    await waitFor("a few polls", () => Date.now() - (world.receiver.at("/failing").at(-1)?.atMs ?? 0) > 2_500);
    expect(world.receiver.at("/failing")).toHaveLength(5);
    const attempts = (await world.deliveries(fleet)).reduce((sum, one) => sum + one.attempts, 0);
    expect(attempts).toBe(5);
    world.receiver.behave("/failing", () => 200);
    const request = { caller: fleet.owner, endpointId };
    await world.ask(changeWebhookEndpoint, { ...request, status: "paused" });
    await world.ask(changeWebhookEndpoint, { ...request, status: "active" });
    await world.untilStatus(fleet, "delivered", 30);
  });

  test("is disabled after five days and twenty failures, and its owner sees the reason", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/dead");
    world.receiver.behave("/dead", () => 500);
    await world.database`
      update webhook_endpoints set failures_since_success = 19, failing_since = now() - interval '6 days'
      where endpoint_id = ${endpointId}`;
    await world.emitMany([fleet], 1);
    await waitFor("the end", async () => (await endpointOf(fleet, endpointId)).disabledReason === "failing");
    await world.untilStatus(fleet, "failed");
  });
});

describe("a paused endpoint", () => {
  test("receives nothing, loses nothing, and receives all when it is active again", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/paused");
    world.receiver.behave("/paused", () => ({ status: 200, afterMs: 50 }));
    await world.emitMany([fleet], 200);
    await waitFor("some", () => world.receiver.at("/paused").length > 5);
    const request = { caller: fleet.owner, endpointId };
    await world.ask(changeWebhookEndpoint, { ...request, status: "paused" });
    const sentBefore = world.receiver.at("/paused").length;
    // A request in progress arrives; deliveries read ahead are dropped.
    await waitFor("the last one", () => Date.now() - (world.receiver.at("/paused").at(-1)?.atMs ?? 0) > 1_000);
    const sent = world.receiver.at("/paused").length;
    expect(sent - sentBefore).toBeLessThan(20);
    expect((await world.deliveries(fleet)).filter((one) => one.status === "pending")).toHaveLength(200 - sent);
    await world.emitMany([fleet], 1);
    world.receiver.behave("/paused", () => 200);
    await world.ask(changeWebhookEndpoint, { ...request, status: "active" });
    await world.untilStatus(fleet, "delivered", 201);
    expect(world.receiver.at("/paused")).toHaveLength(201);
  });
});

describe("a deleted endpoint", () => {
  test("receives no claimed delivery any more, its deliveries stay readable, and its secret is deleted", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/deleted");
    const received = () => world.receiver.at("/deleted").length;
    await world.emitMany([fleet], 300);
    // While the target answers fast, the signer claims many deliveries ahead. Afterwards each request takes long.
    await waitFor("a wide window", () => received() > 100);
    world.receiver.behave("/deleted", () => ({ status: 200, afterMs: 1_500 }));
    const quick = received();
    await waitFor("those that are slow", () => received() >= quick + SIGNER_LIMITS.inFlightPerEndpoint);
    await world.ask(deleteWebhookEndpoint, { caller: fleet.owner, endpointId });
    const sent = received();
    expect(sent).toBeLessThan(200);
    // Longer than the requests in progress take, and than those would take that begin after them.
    await waitFor("the last one", () => Date.now() - (world.receiver.at("/deleted").at(-1)?.atMs ?? 0) > 2_500);
    expect(received()).toBe(sent);
    const deliveries = await world.deliveries(fleet);
    const delivered = deliveries.filter((one) => one.status === "delivered");
    expect(deliveries).toHaveLength(300);
    expect(delivered).toHaveLength(sent);
    expect(deliveries.filter((one) => one.status === "failed")).toHaveLength(300 - sent);
    const [row] = await world.database<[{ count: number }]>`
      select count(*)::int as count from webhook_secrets where endpoint_id = ${endpointId}`;
    expect(row.count).toBe(0);
    const again = { consumer: fleet.consumer, deliveryId: delivered[0]?.deliveryId ?? 0 };
    expect((await refusalOf(world.ask(redeliverWebhook, again))).code).toBe("endpoint_unavailable");
  });
});

describe("redelivery", () => {
  test("ten requests at once with one key: one more attempt, with the same id and bytes", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/resent");
    await world.emitMany([fleet], 1);
    const [delivery] = await world.untilStatus(fleet, "delivered");
    const deliveryId = delivery?.deliveryId ?? 0;
    const request = { consumer: fleet.consumer, deliveryId, idempotencyKey: "once" };
    await Promise.all(Array.from({ length: 10 }, () => world.ask(redeliverWebhook, request)));
    await waitFor("the second one", () => world.receiver.at("/resent").length === 2);
    await waitFor(
      "its record",
      async () => (await world.ownDelivery(fleet, deliveryId)).delivery.status === "delivered",
    );
    await world.ask(redeliverWebhook, request);
    await waitFor("a while", () => Date.now() - (world.receiver.at("/resent").at(-1)?.atMs ?? 0) > 1_500);
    const got = world.receiver.at("/resent");
    expect(got).toHaveLength(2);
    expect(new Set(got.map((one) => one.body)).size).toBe(1);
    const { attempts } = await world.ownDelivery(fleet, deliveryId);
    expect(attempts.map((one) => one.manual)).toEqual([true, false]);
    await world.ask(redeliverWebhook, { ...request, idempotencyKey: "twice" });
    await waitFor("the third one", () => world.receiver.at("/resent").length === 3);
  });

  test("a failure: the delivery stays as it was", async () => {
    const fleet = await world.openFleet();
    await world.addEndpoint(fleet, "/resent-badly");
    await world.emitMany([fleet], 1);
    const [delivery] = await world.untilStatus(fleet, "delivered");
    const deliveryId = delivery?.deliveryId ?? 0;
    world.receiver.behave("/resent-badly", () => 500);
    await world.ask(redeliverWebhook, { consumer: fleet.consumer, deliveryId });
    const after = await waitFor("its record", async () => {
      const read = await world.ownDelivery(fleet, deliveryId);
      return read.attempts.length === 2 && read;
    });
    expect(after.delivery).toMatchObject({
      status: "delivered",
      deliveredAtMs: delivery?.deliveredAtMs,
      nextAttemptAtMs: null,
    });
    expect(after.attempts[0]).toMatchObject({ manual: true, error: "status_not_success" });
  });
});

describe("a rotation", () => {
  test("signs with both secrets during the overlap, the new one first; a third must wait, or end the old ones or the lost one", async () => {
    const fleet = await world.openFleet();
    const { endpointId, secret: first } = await world.addEndpoint(fleet, "/rotated");
    const request = { caller: fleet.owner, endpointId };
    const rotated = await world.ask(rotateWebhookSecret, { ...request, overlapMs: DAY_MS });
    expect(rotated.endpoint.secrets).toHaveLength(2);
    await world.emitMany([fleet], 1);
    await world.untilStatus(fleet, "delivered");
    const got = world.receiver.at("/rotated")[0];
    const { t, v1 } = parseSignature(got?.signature ?? "");
    const body = got?.body ?? "";
    expect(v1).toEqual([expectedSignature(rotated.secret, t, body), expectedSignature(first, t, body)]);
    const third = world.ask(rotateWebhookSecret, { ...request, overlapMs: DAY_MS });
    expect((await refusalOf(third)).code).toBe("conflict");
    // The answer with the second secret was lost. The consumer still has the first one.
    const replaced = await world.ask(rotateWebhookSecret, { ...request, overlapMs: DAY_MS, replacesLost: true });
    expect(replaced.endpoint.secrets).toEqual([
      expect.objectContaining({ expiresAtMs: null }),
      rotated.endpoint.secrets[1],
    ]);
    await world.emitMany([fleet], 1);
    await world.untilStatus(fleet, "delivered", 2);
    const next = world.receiver.at("/rotated")[1];
    const both = parseSignature(next?.signature ?? "");
    expect(both.v1).toEqual(
      [replaced.secret, first].map((known) => expectedSignature(known, both.t, next?.body ?? "")),
    );
    const leaked = await world.ask(rotateWebhookSecret, { ...request, overlapMs: 0 });
    expect(leaked.endpoint.secrets).toHaveLength(1);
    await world.emitMany([fleet], 1);
    await world.untilStatus(fleet, "delivered", 3);
    const last = world.receiver.at("/rotated")[2];
    const signature = parseSignature(last?.signature ?? "");
    expect(signature.v1).toEqual([expectedSignature(leaked.secret, signature.t, last?.body ?? "")]);
  });

  test("the end of its overlap: only the new secret signs", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/overlap");
    await world.ask(rotateWebhookSecret, { caller: fleet.owner, endpointId, overlapMs: 300 });
    await waitFor("its end", async () => (await endpointOf(fleet, endpointId)).secrets.length === 1);
    await world.emitMany([fleet], 1);
    await world.untilStatus(fleet, "delivered");
    expect(parseSignature(world.receiver.at("/overlap")[0]?.signature ?? "").v1).toHaveLength(1);
  });
});

describe("an owner's test", () => {
  test("is sent at once and signed, past an open breaker, and its failure is shown and not repeated", async () => {
    const fleet = await world.openFleet();
    const { endpointId, secret } = await world.addEndpoint(fleet, "/tested");
    const request = { caller: fleet.owner, endpointId };
    const good = await world.ask(testWebhookEndpoint, request);
    expect(good.delivery).toMatchObject({ status: "delivered", eventType: "webhook.test", eventId: null, attempts: 1 });
    expect(good.attempt).toMatchObject({ status: 200, error: null, manual: true });
    const got = world.receiver.at("/tested")[0];
    const { t, v1 } = parseSignature(got?.signature ?? "");
    expect(v1).toEqual([expectedSignature(secret, t, got?.body ?? "")]);
    world.receiver.behave("/tested", () => 500);
    await world.database`
      update webhook_endpoints set open_until = now() + interval '10 minutes' where endpoint_id = ${endpointId}`;
    const bad = await world.ask(testWebhookEndpoint, request);
    expect(bad.delivery).toMatchObject({ status: "failed", nextAttemptAtMs: null });
    expect(bad.attempt).toMatchObject({ status: 500, error: "status_not_success" });
    await waitFor("a while", () => Date.now() - (world.receiver.at("/tested").at(-1)?.atMs ?? 0) > 1_500);
    expect(world.receiver.at("/tested")).toHaveLength(2);
  });
});

describe("an endpoint of another owner", () => {
  test("the endpoint and its deliveries are not found", async () => {
    const mine = await world.openFleet();
    const theirs = await world.openFleet();
    const { endpointId } = await world.addEndpoint(theirs, "/theirs");
    await world.emitMany([theirs], 1);
    const [delivery] = await world.untilStatus(theirs, "delivered");
    const deliveryId = delivery?.deliveryId ?? 0;
    const caller = mine.owner;
    const asked = [
      () => world.ask(getWebhookEndpoint, { caller, endpointId }),
      () => world.ask(changeWebhookEndpoint, { caller, endpointId, status: "paused" }),
      () => world.ask(rotateWebhookSecret, { caller, endpointId, overlapMs: 0 }),
      () => world.ask(deleteWebhookEndpoint, { caller, endpointId }),
      () => world.ask(testWebhookEndpoint, { caller, endpointId }),
      () =>
        world.ask(registerWebhookEndpoint, { caller, consumerId: theirs.consumerId, url: world.receiver.url("/x") }),
      () => world.ask(getWebhookDelivery, { caller, deliveryId }),
      () => world.ask(redeliverWebhook, { consumer: mine.consumer, deliveryId }),
    ];
    for (const ask of asked) expect((await refusalOf(ask())).code).toBe("not_found");
    expect((await world.ask(listWebhookEndpoints, { caller })).endpoints).toEqual([]);
    expect((await world.ask(listWebhookDeliveries, { caller, consumerId: theirs.consumerId })).deliveries).toEqual([]);
    expect(await world.deliveries(mine)).toEqual([]);
    const cashier = { ...caller, role: "cashier" as const, permissions: ["payments.collect" as const] };
    const denied = await refusalOf(world.ask(listWebhookEndpoints, { caller: cashier }));
    expect(denied.code).toBe("permission_denied");
  });
});

describe("the list of deliveries", () => {
  test("comes in pages by since_id, with filters", async () => {
    const fleet = await world.openFleet();
    await world.emitMany([fleet], 7);
    await world.untilStatus(fleet, "unsent", 7);
    const { consumer } = fleet;
    const first = await world.ask(listConsumerWebhookDeliveries, { consumer, limit: 4 });
    expect(first.hasMore).toBe(true);
    const sinceId = first.deliveries.at(-1)?.deliveryId ?? 0;
    const second = await world.ask(listConsumerWebhookDeliveries, { consumer, limit: 4, sinceId });
    expect(second.hasMore).toBe(false);
    const ids = [...first.deliveries, ...second.deliveries].map((one) => one.deliveryId);
    expect(new Set(ids).size).toBe(7);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect((await world.ask(listConsumerWebhookDeliveries, { consumer, status: "delivered" })).deliveries).toEqual([]);
    const cancelled = await world.ask(listConsumerWebhookDeliveries, { consumer, eventType: "serving_task.cancelled" });
    expect(cancelled.deliveries).toHaveLength(7);
    const newest = await world.ask(listWebhookDeliveries, { caller: fleet.owner, limit: 1 });
    expect(newest.deliveries[0]?.deliveryId).toBe(ids.at(-1));
  });

  test("keeps deliveries as many days after their end as the operator has set, and all waiting ones", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/old");
    await world.emitMany([fleet], 4);
    await world.untilStatus(fleet, "delivered", 4);
    await world.ask(changeWebhookEndpoint, { caller: fleet.owner, endpointId, status: "paused" });
    await world.emitMany([fleet], 2);
    await world.untilStatus(fleet, "pending", 2);
    const ids = (await world.deliveries(fleet)).map(({ deliveryId }) => deliveryId);
    const [old, late, resent = 0, unanswered = 0, waiting, forgotten] = ids;
    // All events are old. One delivery has ended with its event, and one just now; one has waited for too long.
    await world.database`
      update webhook_deliveries set created_at = now() - interval '3 days',
        ended_at = case when delivery_id = ${old ?? 0} then ended_at - interval '3 days' else ended_at end,
        due_at = case when delivery_id = ${forgotten ?? 0} then due_at - interval '3 days' else due_at end
      where consumer_id = ${fleet.consumerId}`;
    // A fixed defect: a request ended at once, because its place is before the oldest delivery that waits.
    await world.ask(redeliverWebhook, { consumer: fleet.consumer, deliveryId: unanswered });
    await world.database`
      update webhook_redeliveries set asked_at = asked_at - interval '3 days' where delivery_id = ${unanswered}`;
    await world.ask(redeliverWebhook, { consumer: fleet.consumer, deliveryId: resent });
    expect((await world.deliveries(fleet)).filter((one) => one.status === "pending")).toHaveLength(4);
    const signer = await world.addSigner({ WEBHOOK_RETENTION_DAYS: "2" });
    await waitFor("the removal", async () => (await world.deliveries(fleet)).length === 5);
    await signer.stop();
    expect((await world.deliveries(fleet)).map((one) => [one.deliveryId, one.status])).toEqual([
      [late, "delivered"],
      [resent, "pending"],
      [unanswered, "delivered"],
      [waiting, "pending"],
      [forgotten, "failed"],
    ]);
  });

  test("keeps an old delivery that is requested again during the removal", async () => {
    const fleet = await world.openFleet();
    const { endpointId } = await world.addEndpoint(fleet, "/resent-late");
    await world.emitMany([fleet], 1);
    const [delivery] = await world.untilStatus(fleet, "delivered");
    await world.ask(changeWebhookEndpoint, { caller: fleet.owner, endpointId, status: "paused" });
    const deliveryId = delivery?.deliveryId ?? 0;
    await world.database`
      update webhook_deliveries set created_at = now() - interval '3 days', ended_at = now() - interval '3 days'
      where delivery_id = ${deliveryId}`;
    const { removal } = await world.database.begin(async (tx) => {
      await tx`update webhook_deliveries set status = 'pending', due_at = now() where delivery_id = ${deliveryId}`;
      const removing = deleteOldDeliveries(world.database, { olderThanDays: 2, rows: 100 });
      await Promise.race([removing, delay(500)]);
      return { removal: removing };
    });
    await removal;
    expect((await world.deliveries(fleet)).map((one) => one.deliveryId)).toEqual([deliveryId]);
  });
});

describe("a secret", () => {
  test("is in no log, row or error, and is sealed again when the key changes", async () => {
    const signer = await world.addSignerProcess();
    const fleet = await world.openFleet();
    const { endpointId, secret } = await world.addEndpoint(fleet, "/secret");
    const { secret: second } = await world.ask(rotateWebhookSecret, {
      caller: fleet.owner,
      endpointId,
      overlapMs: DAY_MS,
    });
    world.receiver.behave("/secret", () => 500);
    await world.emitMany([fleet], 3);
    await waitFor("failures", async () => (await world.deliveries(fleet)).some((one) => one.attempts > 0));
    await world.ask(testWebhookEndpoint, { caller: fleet.owner, endpointId });
    const nextKey = randomBytes(32).toString("base64url");
    const old = world.environment["WEBHOOK_SECRETS_KEY"] ?? "";
    await expect(world.addSigner({ WEBHOOK_SECRETS_KEY: nextKey })).rejects.toMatchObject({
      code: "webhook_secrets_key_unknown",
    });
    await signer.stop();
    const texts = [readFileSync(signer.logFile, "utf8")];
    const tables = await world.database<{ name: string }[]>`
      select quote_ident(table_name) as name from information_schema.tables where table_schema = 'public'`;
    for (const { name } of tables) {
      const rows = await world.database.unsafe(`select to_jsonb(t)::text as row from ${name} t`);
      texts.push(rows.map((row) => String(row["row"])).join("\n"));
    }
    expect(texts.join("").length).toBeGreaterThan(10_000);
    for (const text of texts) {
      for (const one of [secret, second, old]) {
        expect(text.includes(one)).toBe(false);
        expect(text.includes(Buffer.from(one).toString("hex"))).toBe(false);
      }
    }
    const before = await world.database<{ key_id: string }[]>`select distinct key_id from webhook_secrets`;
    const resealing = await world.addSigner({ WEBHOOK_SECRETS_KEY: nextKey, WEBHOOK_SECRETS_OLD_KEYS: old });
    await resealing.stop();
    const after = await world.database<{ key_id: string }[]>`select distinct key_id from webhook_secrets`;
    expect(after).toHaveLength(1);
    expect(after).not.toEqual(before);
  });
});
