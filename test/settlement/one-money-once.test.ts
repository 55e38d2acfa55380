/** Payment keys: a provider payment that has settled an order settles no other order, whichever service asks. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { moneyKey, moneyName, prepareIntent, settleIntent } from "../../services/bus/messages/intents.ts";
import { changeOrder, openOrder } from "../../services/bus/messages/orders.ts";
import type { RequestOf } from "../../services/bus/operation.ts";
import { refusalOf, type SettlementWorld, startSettlementWorld } from "./settlement-world.ts";

let world: SettlementWorld;
beforeAll(async () => {
  world = await startSettlementWorld();
});
afterAll(() => world.stop());

let paymentCount = 0;
const freshPaymentKey = (): string => moneyKey({ configId: 1, name: moneyName(`T-${(paymentCount += 1)}`, "") });

/** A settlement request for a new intent of a new order. */
async function prepareRequest(paymentKey: string) {
  const { stationId, cashier } = await world.openStation();
  const lines = [{ name: "Dinner", quantity: 1, unitAmountMinor: "1250" }];
  const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines });
  const { orderId } = order;
  const { intentId } = await world.ask(prepareIntent, { stationId, orderId });
  const attestationId = `confirm:${intentId}`;
  const of = { intentId, attestationId, stationId, orderId, amountMinor: "1250", currency: "EUR" };
  const request = { ...of, reference: "T", attestedBy: 0, route: "dynamic_qr", moneyKey: paymentKey } as const;
  return { cashier, request: request satisfies RequestOf<typeof settleIntent> };
}

const salesOf = (paymentKey: string) =>
  world.database<{ order_id: number }[]>`select order_id from transactions where money_key = ${paymentKey}`;

describe("one provider payment", () => {
  test("24 orders at once with one payment: one order is paid", async () => {
    const paymentKey = freshPaymentKey();
    const all = await Promise.all(Array.from({ length: 24 }, () => prepareRequest(paymentKey)));
    const replies = await Promise.all(all.map(({ request }) => world.ask(settleIntent, request)));
    expect(replies.filter((reply) => reply.settled)).toHaveLength(1);
    const refused = replies.filter((reply) => !reply.settled).map((reply) => reply.code);
    expect(new Set(refused)).toEqual(new Set(["money_already_used"]));
    expect(await salesOf(paymentKey)).toHaveLength(1);
    const paid = await world.database`
      select 1 from orders where order_id = any(${all.map(({ request }) => request.orderId)}::bigint[]) and status = 'paid'`;
    expect(paid).toHaveLength(1);
  });

  test("repeated requests: the first intent gets the same transaction, the other one is still refused", async () => {
    const paymentKey = freshPaymentKey();
    const first = await prepareRequest(paymentKey);
    const second = await prepareRequest(paymentKey);
    const settled = await world.ask(settleIntent, first.request);
    expect(await world.ask(settleIntent, first.request)).toEqual(settled);
    const refused = { settled: false, code: "money_already_used" };
    expect(await world.ask(settleIntent, second.request)).toEqual(refused);
    expect(await world.ask(settleIntent, second.request)).toEqual(refused);
    // Another payment pays that order only by another attestation.
    const other = { ...second.request, moneyKey: freshPaymentKey() };
    expect(await world.ask(settleIntent, other)).toEqual(refused);
    expect(await world.ask(settleIntent, { ...other, attestationId: "again" })).toMatchObject({ settled: true });
  });

  test("refused because the order has changed: it can still settle another order", async () => {
    const paymentKey = freshPaymentKey();
    const first = await prepareRequest(paymentKey);
    const lines = [{ name: "Dinner", quantity: 1, unitAmountMinor: "1300" }];
    await world.ask(changeOrder, { caller: first.cashier, orderId: first.request.orderId, lines });
    expect(await world.ask(settleIntent, first.request)).toEqual({ settled: false, code: "order_changed" });
    expect(await world.ask(settleIntent, (await prepareRequest(paymentKey)).request)).toMatchObject({ settled: true });
  });

  test("no payment key: a QR is refused as invalid, and cash is settled", async () => {
    const { request } = await prepareRequest("provider:1:money:x");
    const { moneyKey: _, ...unnamed } = request;
    expect((await refusalOf(world.ask(settleIntent, unnamed))).code).toBe("invalid_request");
    expect(await world.ask(settleIntent, { ...unnamed, route: "cash" })).toMatchObject({ settled: true });
    const again = await prepareRequest("provider:1:money:x");
    const { moneyKey: __, ...cash } = again.request;
    expect(await world.ask(settleIntent, { ...cash, route: "cash" })).toMatchObject({ settled: true });
  });

  test("different references, also long or unusual ones: different names of at most 210 characters", () => {
    const odd = [
      "a",
      "a b",
      'a"',
      "a\\",
      "\u00e9",
      "e",
      "x".repeat(200),
      "x".repeat(201),
      "x".repeat(1_000),
      "",
      "event:",
    ];
    const names = odd.map((reference) => moneyName(reference, "e"));
    expect(new Set(names).size).toBe(odd.length);
    expect(names.every((name) => name.length <= 210)).toBe(true);
    expect(moneyName(" e\u0301\n", "e")).toBe(moneyName("\u00e9", "e"));
  });
});
