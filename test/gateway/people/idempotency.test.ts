/** A repeated Idempotency-Key gets the first answer again, and never the answer to another request (I6). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import type { orderSchema, ordersSchema } from "../../../gateway/api/cashier/orders.ts";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import { logIn, oneLine, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Order = z.infer<typeof orderSchema>;
type Intent = z.infer<typeof intentSchema>;

let system: TestSystem;
let cashier: Person;
let ben: Person;
let station: string;
let otherStation: string;

beforeAll(async () => {
  system = await sharedSystem();
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  const details = { email: "ben@sandbox.example", password: "a long enough password" };
  await owner.good("POST", "users/", { body: { ...details, name: "Ben", role: "cashier" } });
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  ben = await logIn(system.baseUrl, "cashier", details);
  [station = "", otherStation = ""] = system.sandbox.stations.map(({ stationId }) => `stations/${stationId}`);
  await cashier.good("POST", `${station}/lease/`);
});
afterAll(() => system.stop());

const openOrder = (): Promise<Order> => cashier.good("POST", `${station}/orders/`, { body: oneLine("2.00") });
const create = (order: Order, key: string, more = {}) =>
  cashier.call<Intent>("POST", `${station}/intents/`, {
    key,
    body: { order_id: order.order_id, route: "cash", ...more },
  });
const step = (intent: Intent, name: string): string => `${station}/intents/${intent.intent_id}/${name}/`;

describe("the opening of an order with an Idempotency-Key", () => {
  it("sent several times at once: one order", async () => {
    const sending = { key: "order-1", body: oneLine("4.00") };
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => cashier.call<Order>("POST", `${station}/orders/`, sending)),
    );
    answers.push(await cashier.call<Order>("POST", `${station}/orders/`, sending));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 201));
    for (const answer of answers) expect(answer.body).toEqual(answers[0]?.body);
    const { orders } = await cashier.good<z.infer<typeof ordersSchema>>("GET", `${station}/orders/`);
    expect(orders).toHaveLength(1);
  });

  it("repeated after a change of the order: the first answer", async () => {
    const sending = { key: "order-2", body: oneLine("4.00") };
    const first = await cashier.good<Order>("POST", `${station}/orders/`, sending);
    await cashier.good("PUT", `orders/${first.order_id}/lines/`, { body: oneLine("5.00") });
    expect(await cashier.good<Order>("POST", `${station}/orders/`, sending)).toEqual(first);
  });

  it("another body: refused; another station or another person: counts as another key", async () => {
    const first = await cashier.good<Order>("POST", `${station}/orders/`, { key: "order-3", body: oneLine("4.00") });
    const other = { key: "order-3", body: oneLine("4.01") };
    expect((await cashier.refused("idempotency_key_reused", "POST", `${station}/orders/`, other)).status).toBe(422);
    const elsewhere = { key: "order-3", body: oneLine("4.00") };
    const there = await cashier.good<Order>("POST", `${otherStation}/orders/`, elsewhere);
    expect([there.order_id === first.order_id, there.station_id === first.station_id]).toEqual([false, false]);
    const bens = await ben.good<Order>("POST", `${station}/orders/`, elsewhere);
    expect(bens.order_id).not.toBe(first.order_id);
  });
});

describe("the creation of a collection with an Idempotency-Key", () => {
  it("repeated while it is active, after its end, and after the station has dropped it: the same answer", async () => {
    const order = await openOrder();
    const answers = await Promise.all(Array.from({ length: 4 }, () => create(order, "intent-1")));
    const [first] = answers as [(typeof answers)[number]];
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    for (const answer of answers) expect(answer.body).toEqual(first.body);
    await cashier.good("POST", step(first.body, "attest"));

    const { settle_offered, cancel_offered, ...begun } = first.body;
    const afterEnd = await create(order, "intent-1");
    expect(afterEnd).toMatchObject({ status: 201, body: begun });
    // Each collection leaves two replies, so these are more replies than the station stores.
    for (let count = 0; count <= STATE_LIMITS.replies / 2; count += 1) {
      const { body } = await create(await openOrder(), `filler-${count}`);
      await cashier.good("POST", step(body, "cancel"), { key: "done" });
    }
    expect(await create(order, "intent-1")).toMatchObject({ status: 201, body: begun });
    expect([settle_offered, cancel_offered]).toEqual([true, true]);
  });

  it("another order, route or lifetime: refused", async () => {
    const order = await openOrder();
    const { body: intent } = await create(order, "intent-2");
    expect(await create(await openOrder(), "intent-2")).toMatchObject({
      status: 422,
      body: { code: "idempotency_key_reused" },
    });
    for (const more of [{ route: "attested_terminal" }, { lifetime_seconds: 60 }])
      expect(await create(order, "intent-2", more)).toMatchObject({ body: { code: "idempotency_key_reused" } });
    expect(await create(order, "intent-2")).toMatchObject({ body: { intent_id: intent.intent_id } });
    await cashier.good("POST", step(intent, "cancel"));
  });

  it("the first request was refused: the same key works once the reason has ended", async () => {
    const order = await openOrder();
    const { body: blocking } = await create(await openOrder(), "blocking");
    expect(await create(order, "intent-3")).toMatchObject({ status: 409, body: { code: "collection_active" } });
    await cashier.good("POST", step(blocking, "cancel"));
    const { status, body } = await create(order, "intent-3");
    expect(status).toBe(201);
    await cashier.good("POST", step(body, "cancel"));
  });
});

describe("attestation and cancellation with an Idempotency-Key", () => {
  it("sent several times at once: settled once, with the same answer", async () => {
    const { body: intent } = await create(await openOrder(), "to-attest");
    const sending = { key: "attest-1" };
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => cashier.call<Intent>("POST", step(intent, "attest"), sending)),
    );
    answers.push(await cashier.call<Intent>("POST", step(intent, "attest"), sending));
    for (const answer of answers) expect(answer).toEqual({ ...answers[0], status: 200, headers: expect.any(Headers) });
    expect(answers[0]?.body.attestation?.transaction_id).toBeGreaterThan(0);
    // A key belongs to its operation and intent, so it counts as another key for another intent.
    const { body: next } = await create(await openOrder(), "to-cancel");
    expect(await cashier.call("POST", step(next, "cancel"), sending)).toMatchObject({ body: { status: "cancelled" } });
    expect(await cashier.call("POST", step(next, "cancel"), sending)).toMatchObject({ body: { status: "cancelled" } });
  });

  it("an ended collection without a key, or with another one: refused", async () => {
    const { body: intent } = await create(await openOrder(), "keyless");
    await cashier.good("POST", step(intent, "attest"), { key: "a" });
    await cashier.refused("intent_not_actionable", "POST", step(intent, "attest"));
    await cashier.refused("intent_not_actionable", "POST", step(intent, "attest"), { key: "b" });
    await cashier.refused("intent_not_actionable", "POST", step(intent, "cancel"), { key: "a" });
  });

  it("another reference: refused", async () => {
    const { body: intent } = await create(await openOrder(), "terminal", { route: "attested_terminal" });
    const path = step(intent, "attest");
    await cashier.good("POST", path, { key: "slip", body: { reference: "T-1" } });
    const other = { key: "slip", body: { reference: "T-2" } };
    expect((await cashier.refused("idempotency_key_reused", "POST", path, other)).status).toBe(422);
    expect(await cashier.call("POST", path, { key: "slip", body: { reference: "T-1" } })).toMatchObject({
      status: 200,
    });
  });
});

describe("an invalid Idempotency-Key", () => {
  it("longer than its limit: refused, and the error names the header", async () => {
    const sending = { key: "k".repeat(256), body: oneLine("1.00") };
    const refused = await cashier.refused("invalid_request", "POST", `${station}/orders/`, sending);
    expect(refused.body.errors?.[0]?.detail).toMatch(/Idempotency-Key/);
  });
});
