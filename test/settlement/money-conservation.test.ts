import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { prepareIntent, settleIntent } from "../../services/bus/messages/intents.ts";
import { changeOrder, openOrder, voidOrder } from "../../services/bus/messages/orders.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { type SettlementWorld, startSettlementWorld } from "./settlement-world.ts";

let world: SettlementWorld;
beforeAll(async () => {
  world = await startSettlementWorld();
});
afterAll(() => world.stop());

const line = (unitAmountMinor: string) => [{ name: "Line", quantity: 1, unitAmountMinor }];
const amount = fc.bigInt({ min: 1n, max: 5_000n }).map(String);
/** A step selects its order or intent by a number modulo their count. */
const step = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant("open" as const), amount }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("change" as const), order: fc.nat(7), amount }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("void" as const), order: fc.nat(7) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("prepare" as const), order: fc.nat(7) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("settle" as const), intent: fc.nat(15), attestation: fc.nat(2) }),
  },
);
/** Steps of one group run at the same time. */
const history = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { minLength: 2, maxLength: 8 });

test("I2: opens, changes, voids and settlements at once: Σ transactions = Σ paid orders, one sale an order", async () => {
  await fc.assert(
    fc.asyncProperty(history, async (groups) => {
      const { stationId, cashier } = await world.openStation();
      const orders: number[] = [];
      const intents: { intentId: number; orderId: number; amountMinor: string; currency: string }[] = [];
      const answers = new Map<number, number>();

      const run = async (one: (typeof groups)[number][number]): Promise<void> => {
        if (one.do === "open") {
          const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines: line(one.amount) });
          orders.push(order.orderId);
          return;
        }
        if (one.do === "settle") {
          const intent = intents[one.intent % Math.max(1, intents.length)];
          if (intent === undefined) return;
          const attestationId = `attest:${one.attestation}`;
          const request = { ...intent, attestationId, stationId, route: "cash" as const, reference: "", attestedBy: 7 };
          const reply = await world.ask(settleIntent, request);
          const before = answers.get(intent.intentId);
          // A settled intent always gets the same transaction.
          if (before !== undefined) expect(reply).toEqual({ settled: true, transactionId: before });
          if (reply.settled) answers.set(intent.intentId, reply.transactionId);
          return;
        }
        const orderId = orders[one.order % Math.max(1, orders.length)];
        if (orderId === undefined) return;
        if (one.do === "void") await world.ask(voidOrder, { caller: cashier, orderId });
        if (one.do === "change") await world.ask(changeOrder, { caller: cashier, orderId, lines: line(one.amount) });
        if (one.do === "prepare") {
          const { intentId, order } = await world.ask(prepareIntent, { stationId, orderId });
          intents.push({ intentId, orderId, amountMinor: order.amountMinor, currency: order.currency });
        }
      };
      for (const group of groups) {
        await Promise.all(
          group.map((one) =>
            run(one).catch((error: unknown) => {
              // A paid or voided order refuses changes. Any other error fails the test.
              if (!(error instanceof RefusedError) || error.refusal.code !== "conflict") throw error;
            }),
          ),
        );
      }

      const [sums] = await world.database`
        select (select coalesce(sum(amount_minor), 0)::text from transactions where station_id = ${stationId}) as collected,
               (select coalesce(sum(total_minor), 0)::text from orders where station_id = ${stationId} and status = 'paid') as paid,
               (select count(*) from transactions where station_id = ${stationId}) as transactions,
               (select count(*) from orders where station_id = ${stationId} and status = 'paid') as paid_orders,
               (select count(distinct order_id) from transactions where station_id = ${stationId}) as sold_orders`;
      expect(sums?.["collected"]).toBe(sums?.["paid"]);
      expect(sums?.["transactions"]).toBe(sums?.["paid_orders"]);
      expect(sums?.["sold_orders"]).toBe(sums?.["paid_orders"]);
      expect(answers.size).toBe(sums?.["transactions"]);
    }),
    { numRuns: 60 },
  );
});
