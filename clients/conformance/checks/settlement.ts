/** Cash and the attested terminal: the one payment seam. */
import { randomUUID } from "node:crypto";
import type { Check } from "../check.ts";
import { expectRefused, expectSame, expectStatus, objectOf } from "../expect.ts";
import { AMOUNT, type World } from "../world.ts";

const capability = "settlement";

async function settle(world: World, route: string, json: object): Promise<Record<string, unknown>> {
  const { intentId, orderId } = await world.collect(route);
  expectStatus(await world.decide(intentId, "attest", json), 200);
  expectSame("`status` of the intent", (await world.intent(intentId))["status"], "succeeded");
  const order = await world.order(orderId);
  expectSame("`status` of the order", order["status"], "paid");
  const transaction = objectOf({ body: order } as never, "transaction");
  expectSame("`amount` of the transaction", transaction["amount"], AMOUNT);
  expectSame("`currency` of the transaction", transaction["currency"], world.currency);
  expectSame("`route` of the transaction", transaction["route"], route);
  expectSame("`intent_id` of the transaction", transaction["intent_id"], intentId);
  return transaction;
}

const orderOf = (unit_amount: string, quantity = 1) => ({
  json: { lines: [{ name: "Gold", quantity, unit_amount }] },
});

export const settlementChecks: readonly Check[] = [
  {
    id: "settle.cash",
    capability,
    quotes: ["Cash and attested-terminal collection settle through one single payment seam."],
    run: async (world) => void (await settle(world, "cash", {})),
  },
  {
    id: "settle.attested_terminal",
    capability,
    quotes: ["Cash and attested-terminal collection settle through one single payment seam."],
    async run(world) {
      const reference = `TERM-${randomUUID()}`;
      const transaction = await settle(world, "attested_terminal", { reference });
      expectSame("`reference` of the transaction", transaction["reference"], reference);
    },
  },
  {
    id: "settle.order_once",
    capability,
    after: ["settle.cash"],
    quotes: ["Cash and attested-terminal collection settle through one single payment seam."],
    async run(world) {
      const { intentId, orderId } = await world.collect("cash");
      expectStatus(await world.decide(intentId, "attest"), 200);
      const again = await world.createIntent("cash", orderId);
      expectRefused(again, 409, "order_already_paid");
    },
  },
  {
    id: "intent.snapshotted",
    capability,
    quotes: [
      "Backend-authored; every money field is order truth snapshotted at intent creation.",
      "A device supplies no money field and cannot amend one; every money value is authored by the backend from order truth.",
    ],
    async run(world) {
      const { intentId, orderId } = await world.collect("cash");
      const lines = [{ name: "Cake", quantity: 1, unit_amount: "4.00" }];
      expectStatus(await world.cashier.send("PUT", `orders/${orderId}/lines/`, { json: { lines } }), 200);
      expectSame("`amount` of the intent", (await world.intent(intentId))["amount"], AMOUNT);
      expectRefused(await world.decide(intentId, "attest"), 409);
      expectSame("`status` of the order", (await world.order(orderId))["status"], "open");
      await world.discard({ intentId, orderId });
    },
  },
  {
    id: "amount.limits",
    capability,
    quotes: ["`amount` has at most 10 integer digits and at most 2 fraction digits."],
    async run(world) {
      const path = `stations/${world.sandbox.stationId}/orders/`;
      for (const request of [
        orderOf("10000000000.00"),
        orderOf("0.001"),
        orderOf("-1.00"),
        orderOf("9999999999.99", 2),
      ])
        expectStatus(await world.cashier.send("POST", path, request), 400);
      const largest = objectOf(expectStatus(await world.cashier.send("POST", path, orderOf("9999999999.00")), 201));
      await world.voidOrder(Number(largest["order_id"]));
      expectSame("`total` of the order", largest["total"], "9999999999.00");
    },
  },
  {
    id: "settle.cashier_only",
    capability,
    after: ["enroll.claims_code"],
    quotes: [
      "Cashier and owner act through their own sessions; the cashier must hold the payment permission.",
      "A device cannot settle, decline or terminate a payment intent.",
    ],
    async run(world) {
      const station = `stations/${world.sandbox.stationId}`;
      const { intentId, orderId } = await world.collect("cash");
      const intent = `${station}/intents/${intentId}`;
      for (const party of [world.as(world.companion, "cashier"), world.as(world.owner, "cashier")]) {
        expectStatus(await party.send("POST", `${station}/lease/`, { json: {} }), 401, 403);
        expectStatus(await party.send("POST", `${intent}/attest/`, { json: {} }), 401, 403);
        expectStatus(await party.send("POST", `${intent}/cancel/`), 401, 403);
      }
      expectSame("`status` of the intent", (await world.intent(intentId))["status"], "created");
      await world.discard({ intentId, orderId });
      expectStatus(await world.as(world.companion, "cashier").send("GET", `${station}/lease/`), 401, 403);
      expectStatus(await world.as(world.cashier, "backoffice").send("GET", "devices/"), 401, 403);
    },
  },
];
