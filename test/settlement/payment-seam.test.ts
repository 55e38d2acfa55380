import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { announceOrders } from "../../services/bus/messages/announce.ts";
import { prepareIntent, settleIntent } from "../../services/bus/messages/intents.ts";
import { changeOrder, getOrder, openOrder, voidOrder } from "../../services/bus/messages/orders.ts";
import type { RequestOf } from "../../services/bus/operation.ts";
import { refusalOf, type SettlementWorld, startSettlementWorld } from "./settlement-world.ts";

let world: SettlementWorld;
beforeAll(async () => {
  world = await startSettlementWorld();
});
afterAll(() => world.stop());

type Settle = RequestOf<typeof settleIntent>;

const dinnerAt = (unitAmountMinor: string) => [{ name: "Dinner", quantity: 1, unitAmountMinor }];

async function openWorth(unitAmountMinor: string) {
  const { stationId, cashier } = await world.openStation();
  const lines = [{ name: "Dinner", quantity: 1, unitAmountMinor }];
  const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines });
  return { stationId, cashier, orderId: order.orderId };
}

let attestations = 0;
const freshAttestation = (): string => `attest:${(attestations += 1)}`;

/** The actor host's request for a new intent of this order. */
async function attested(stationId: number, orderId: number, more: Partial<Settle> = {}): Promise<Settle> {
  const { intentId, order } = await world.ask(prepareIntent, { stationId, orderId });
  const { amountMinor, currency } = order;
  const route = "smart_pos";
  const attestationId = freshAttestation();
  return {
    intentId,
    attestationId,
    stationId,
    orderId,
    route,
    amountMinor,
    currency,
    reference: "R-1",
    attestedBy: 7,
    ...more,
  };
}

async function transactionsOf(orderId: number) {
  return await world.database`
    select transaction_id, intent_id, amount_minor, reference, route, attested_by from transactions where order_id = ${orderId}`;
}

describe("I2: the payment seam", () => {
  test("64 intents at once settle an order once; the others are refused because it is paid", async () => {
    const { stationId, orderId } = await openWorth("1250");
    const requests = await Promise.all(Array.from({ length: 64 }, () => attested(stationId, orderId)));
    const replies = await Promise.all(requests.map((request) => world.ask(settleIntent, request)));
    expect(replies.filter((reply) => reply.settled)).toHaveLength(1);
    expect(replies.filter((reply) => !reply.settled && reply.code === "order_already_paid")).toHaveLength(63);
    expect(await transactionsOf(orderId)).toHaveLength(1);
  });

  test("64 requests for one intent at once: all get the same transaction", async () => {
    const { stationId, orderId } = await openWorth("1250");
    const request = await attested(stationId, orderId);
    const replies = await Promise.all(Array.from({ length: 64 }, () => world.ask(settleIntent, request)));
    const [row] = await transactionsOf(orderId);
    expect(new Set(replies.map((reply) => JSON.stringify(reply)))).toEqual(
      new Set([JSON.stringify({ settled: true, transactionId: row?.["transaction_id"] })]),
    );
    expect(await transactionsOf(orderId)).toHaveLength(1);
    expect(await world.ask(settleIntent, request)).toEqual(replies[0]);
    expect(await world.database`select from settlement_refusals where intent_id = ${request.intentId}`).toHaveLength(0);
  });

  test("a payment key that PostgreSQL cannot store verbatim: the order is settled", async () => {
    const { stationId, orderId } = await openWorth("1250");
    const request = await attested(stationId, orderId, { route: "dynamic_qr", moneyKey: "provider:1:a\0b\uD800" });
    const paid = await world.ask(settleIntent, request);
    expect(paid).toMatchObject({ settled: true });
    expect(await world.ask(settleIntent, request)).toEqual(paid);
  });

  test("a reference that PostgreSQL cannot store verbatim: reads and announcements return it verbatim", async () => {
    const { stationId, orderId, cashier: caller } = await openWorth("1250");
    const reference = "slip \0\ud800\u202E\n 17";
    const request = await attested(stationId, orderId, { reference, attestedBy: 42 });
    const { intentId } = request;
    expect(await world.ask(settleIntent, request)).toMatchObject({ settled: true });
    const [row] = await transactionsOf(orderId);
    expect(row).toMatchObject({ intent_id: intentId, amount_minor: 1250, route: "smart_pos", attested_by: 42 });
    // The service stores the reference encoded, and returns it verbatim.
    expect((await world.ask(getOrder, { caller, orderId })).order.transaction?.reference).toBe(reference);
    const announced = await world.ask(announceOrders, {
      stations: [{ stationId, version: 0, sequence: 0, orderIds: [orderId], intentIds: [intentId] }],
    });
    expect(announced.stations[0]?.sales[0]?.attestation?.reference).toBe(reference);
  });

  test("the bus has lost a sale by a provider's confirmation: the announcement has it, without a cashier", async () => {
    const { stationId, orderId } = await openWorth("1250");
    const request = await attested(stationId, orderId, { attestedBy: 0 });
    const { intentId } = request;
    expect(await world.ask(settleIntent, request)).toMatchObject({ settled: true });
    const announced = await world.ask(announceOrders, {
      stations: [{ stationId, version: 0, sequence: 0, orderIds: [orderId], intentIds: [intentId] }],
    });
    expect(announced.stations[0]?.sales).toMatchObject([{ intentId, attestation: { cashierId: 0, cashierName: "" } }]);
  });

  test("a changed amount: that attestation is refused permanently; a new one settles when the amount is restored", async () => {
    const { stationId, orderId, cashier } = await openWorth("1250");
    const request = await attested(stationId, orderId);
    const lines = [{ name: "Dinner", quantity: 1, unitAmountMinor: "1300" }];
    await world.ask(changeOrder, { caller: cashier, orderId, lines });
    expect(await world.ask(settleIntent, request)).toEqual({ settled: false, code: "order_changed" });
    expect(await transactionsOf(orderId)).toEqual([]);
    const back = [{ name: "Dinner", quantity: 1, unitAmountMinor: "1250" }];
    await world.ask(changeOrder, { caller: cashier, orderId, lines: back });
    expect(await world.ask(settleIntent, request)).toEqual({ settled: false, code: "order_changed" });
    expect(await transactionsOf(orderId)).toEqual([]);
    const again = { ...request, attestationId: freshAttestation() };
    const paid = await world.ask(settleIntent, again);
    expect(paid).toMatchObject({ settled: true });
    expect(await world.ask(settleIntent, again)).toEqual(paid);
    // The intent is now paid. A late request of the refused attestation gets the same answer and settles nothing.
    expect(await world.ask(settleIntent, request)).toEqual(paid);
    expect(await transactionsOf(orderId)).toHaveLength(1);
  });

  test("attestations whose ids differ in any character are different attestations", async () => {
    const { stationId, orderId, cashier } = await openWorth("1250");
    const request = await attested(stationId, orderId, { attestationId: "attest:\0" });
    await world.ask(changeOrder, { caller: cashier, orderId, lines: dinnerAt("1300") });
    expect(await world.ask(settleIntent, request)).toEqual({ settled: false, code: "order_changed" });
    await world.ask(changeOrder, { caller: cashier, orderId, lines: dinnerAt("1250") });
    expect(await world.ask(settleIntent, request)).toEqual({ settled: false, code: "order_changed" });
    expect(await world.ask(settleIntent, { ...request, attestationId: "attest:\uFFFD" })).toMatchObject({
      settled: true,
    });
  });

  test("64 requests of a refused attestation, during a change of the order: all get the first refusal", async () => {
    const { stationId, orderId, cashier } = await openWorth("1250");
    const request = await attested(stationId, orderId, { amountMinor: "1300" });
    expect(await world.ask(settleIntent, request)).toMatchObject({ settled: false });
    const lines = [{ name: "Dinner", quantity: 1, unitAmountMinor: "1300" }];
    const [, ...replies] = await Promise.all([
      world.ask(changeOrder, { caller: cashier, orderId, lines }),
      ...Array.from({ length: 64 }, () => world.ask(settleIntent, request)),
    ]);
    expect(new Set(replies.map((reply) => JSON.stringify(reply)))).toEqual(
      new Set([JSON.stringify({ settled: false, code: "order_changed" })]),
    );
    const kept = await world.database`select from settlement_refusals where intent_id = ${request.intentId}`;
    expect(kept).toHaveLength(1);
  });

  test("another currency or amount, a voided, paid or unknown order, or another station's: refused with its code", async () => {
    const { stationId, orderId, cashier } = await openWorth("1250");
    const other = await openWorth("1250");
    const request = await attested(stationId, orderId);
    const code = async (more: Partial<Settle>) => {
      const reply = await world.ask(settleIntent, { ...request, attestationId: freshAttestation(), ...more });
      return reply.settled ? "settled" : reply.code;
    };
    expect(await code({ currency: "USD" })).toBe("order_changed");
    expect(await code({ amountMinor: "1251" })).toBe("order_changed");
    expect(await code({ stationId: other.stationId })).toBe("order_unknown");
    expect(await code({ orderId: 999_999_999 })).toBe("order_unknown");
    await world.ask(voidOrder, { caller: cashier, orderId });
    expect(await code({})).toBe("order_voided");
    expect(await transactionsOf(orderId)).toEqual([]);

    expect(await world.ask(settleIntent, await attested(other.stationId, other.orderId))).toMatchObject({
      settled: true,
    });
    const late = await attested(other.stationId, other.orderId);
    expect(await world.ask(settleIntent, late)).toEqual({ settled: false, code: "order_already_paid" });
  });

  test("an intent that has settled an order: a request for another order is refused", async () => {
    const { stationId, orderId, cashier } = await openWorth("1250");
    const lines = [{ name: "Dinner", quantity: 1, unitAmountMinor: "1250" }];
    const second = await world.ask(openOrder, { caller: cashier, stationId, lines });
    const request = await attested(stationId, orderId);
    expect(await world.ask(settleIntent, request)).toMatchObject({ settled: true });
    expect(await world.ask(settleIntent, { ...request, orderId: second.order.orderId })).toMatchObject({
      settled: false,
    });
    expect(await transactionsOf(second.order.orderId)).toEqual([]);
  });

  test("32 prepared intents at once: 32 ids; for another station's order: not_found", async () => {
    const { stationId, orderId } = await openWorth("1250");
    const other = await openWorth("1250");
    const prepared = await Promise.all(Array.from({ length: 32 }, () => attested(stationId, orderId)));
    expect(new Set(prepared.map((request) => request.intentId)).size).toBe(32);
    const foreign = world.ask(prepareIntent, { stationId: other.stationId, orderId });
    expect(await refusalOf(foreign)).toEqual({ code: "not_found" });
  });
});

describe("records of payments", () => {
  test("updates, deletions and truncations of transactions and refusals: PostgreSQL refuses them", async () => {
    const { stationId, orderId } = await openWorth("1250");
    await world.ask(settleIntent, await attested(stationId, orderId));
    const { database } = world;
    const never = /never change once written/;
    await expect(database`update transactions set amount_minor = 1 where order_id = ${orderId}`).rejects.toThrow(never);
    await expect(database`delete from transactions where order_id = ${orderId}`).rejects.toThrow(never);
    await expect(database`truncate transactions`).rejects.toThrow(never);
    await world.ask(settleIntent, await attested(stationId, orderId));
    await expect(database`delete from settlement_refusals`).rejects.toThrow(never);
    await expect(database`truncate settlement_refusals`).rejects.toThrow(never);
    await expect(database`update orders set status = 'open' where order_id = ${orderId}`).rejects.toThrow(never);
    expect(await transactionsOf(orderId)).toHaveLength(1);
  });

  test("a second transaction of an order, or a negative amount: PostgreSQL refuses it", async () => {
    const { stationId, orderId } = await openWorth("1250");
    await world.ask(settleIntent, await attested(stationId, orderId));
    const copy = (amount: string) => world.database`
      insert into transactions (organization_id, order_id, station_id, intent_id, route, amount_minor, currency, reference, attested_by)
      select organization_id, order_id, station_id, nextval('intent_ids'), route, ${amount}::bigint, currency, reference, attested_by
      from transactions where order_id = ${orderId}`;
    await expect(copy("1250")).rejects.toThrow(/transactions_one_sale_per_order/);
    await expect(copy("-1")).rejects.toThrow(/amount_minor_check/);
    const open = await openWorth("1250");
    const negative = world.database`update orders set total_minor = -1 where order_id = ${open.orderId}`;
    await expect(negative).rejects.toThrow(/total_minor_check/);
  });
});
