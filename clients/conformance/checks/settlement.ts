/** Cash and the attested terminal: the one payment seam. */
import { randomUUID } from "node:crypto";
import type { Check } from "../check.ts";
import { hasStatus, isRefused, isSame, objectOf } from "../expect.ts";
import { AMOUNT, type World } from "../world.ts";

const capability = "settlement";

async function settle(world: World, route: string, json: object): Promise<Record<string, unknown>> {
  const { intentId, orderId } = await world.collect(route);
  hasStatus(await world.decide(intentId, "attest", json), 200);
  isSame("`status` of the intent", (await world.intent(intentId))["status"], "succeeded");
  const order = await world.order(orderId);
  isSame("`status` of the order", order["status"], "paid");
  const transaction = objectOf({ body: order } as never, "transaction");
  isSame("`amount` of the transaction", transaction["amount"], AMOUNT);
  isSame("`route` of the transaction", transaction["route"], route);
  return transaction;
}

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
      isSame("`reference` of the transaction", transaction["reference"], reference);
    },
  },
  {
    id: "settle.order_once",
    capability,
    after: ["settle.cash"],
    quotes: ["Cash and attested-terminal collection settle through one single payment seam."],
    async run(world) {
      const { intentId, orderId } = await world.collect("cash");
      hasStatus(await world.decide(intentId, "attest"), 200);
      const again = await world.createIntent("cash", orderId);
      isRefused(again, 409, "order_already_paid");
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
      const path = `stations/${world.sandbox.stationId}/lease/`;
      hasStatus(await world.as(world.companion, "cashier").send("GET", path), 401, 403);
      hasStatus(await world.as(world.cashier, "backoffice").send("GET", "devices/"), 401, 403);
      hasStatus(await world.as(world.owner, "cashier").send("POST", path, { json: {} }), 401, 403);
    },
  },
];
