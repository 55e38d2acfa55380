import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../../gateway/limits.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { prepareIntent, settleIntent } from "../../services/bus/messages/intents.ts";
import { changeOrder, getOrder, listOrders, openOrder, voidOrder } from "../../services/bus/messages/orders.ts";
import { cashierOf, refusalOf, type SettlementWorld, startSettlementWorld } from "./settlement-world.ts";

let world: SettlementWorld;
beforeAll(async () => {
  world = await startSettlementWorld();
});
afterAll(() => world.stop());

const line = (unitAmountMinor: string, quantity = 1) => ({ name: "Line", quantity, unitAmountMinor });
const coffee = { name: "Coffee", quantity: 2, unitAmountMinor: "350" };
const cake = { name: "Cake", quantity: 1, unitAmountMinor: "550" };

async function payCash(orderId: number, stationId: number): Promise<void> {
  const { intentId, order } = await world.ask(prepareIntent, { stationId, orderId });
  const { amountMinor, currency } = order;
  const attestationId = `attest:${intentId}`;
  const request = { intentId, attestationId, stationId, orderId, route: "cash" as const, amountMinor, currency };
  expect(await world.ask(settleIntent, { ...request, reference: "", attestedBy: 7 })).toMatchObject({ settled: true });
}

describe("opening an order", () => {
  test("has the station's currency, the sum of its lines and the station's next number, which begins at 1", async () => {
    const { stationId, cashier } = await world.openStation("USD");
    const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines: [coffee, cake] });
    expect(order).toMatchObject({
      orderDisplayNumber: 1,
      stationId,
      status: "open",
      revision: 1,
      currency: "USD",
      totalMinor: "1250",
      lines: [coffee, cake],
      transaction: null,
    });
    const second = await world.ask(openOrder, { caller: cashier, stationId, lines: [] });
    expect(second.order).toMatchObject({ orderDisplayNumber: 2, totalMinor: "0", lines: [] });
    expect((await world.ask(getOrder, { caller: cashier, orderId: order.orderId })).order).toEqual(order);
  });

  test("writes an update for the station into the outbox, with the cashier as the actor; so do changes", async () => {
    const { stationId, cashier } = await world.openStation();
    const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines: [cake] });
    await world.ask(changeOrder, { caller: cashier, orderId: order.orderId, lines: [coffee] });
    await world.ask(voidOrder, { caller: cashier, orderId: order.orderId });
    const rows = await world.database<{ payload: { command: unknown; actor: unknown } }[]>`
      select payload from outbox where key = ${`station.${stationId}`} order by outbox_id`;
    const { orderId, orderDisplayNumber } = order;
    const facts = { orderId, orderDisplayNumber, currency: "EUR" };
    expect(rows.map((row) => row.payload.command)).toEqual([
      { type: "order_put", order: { ...facts, amountMinor: "550", status: "open", revision: 1 } },
      { type: "order_put", order: { ...facts, amountMinor: "700", status: "open", revision: 2 } },
      { type: "order_put", order: { ...facts, amountMinor: "700", status: "voided", revision: 3 } },
    ]);
    expect(rows[0]?.payload.actor).toEqual({ kind: "cashier", id: cashier.userId, name: "Ada" });
  });

  test("at another organization's or unknown station, or without the permission: refused", async () => {
    const { stationId, cashier } = await world.openStation();
    const foreign = await world.openStation();
    const lines = [cake];
    const refused = [
      world.ask(openOrder, { caller: cashier, stationId: foreign.stationId, lines }),
      world.ask(openOrder, { caller: cashier, stationId: 999_999_999, lines }),
      world.ask(openOrder, { caller: { ...cashier, permissions: ["organization.manage"] }, stationId, lines }),
    ];
    expect(await Promise.all(refused.map(refusalOf))).toEqual([
      { code: "not_found" },
      { code: "not_found" },
      { code: "permission_denied" },
    ]);
    const [count] = await world.database`select count(*) as orders from orders where station_id = ${stationId}`;
    expect(count).toEqual({ orders: 0 });
  });
});

describe("an idempotency key", () => {
  test("16 requests at once: one order, and a later repetition gets the order as it was opened", async () => {
    const { stationId, cashier } = await world.openStation();
    const request = { caller: cashier, stationId, lines: [coffee], idempotencyKey: "k-1" };
    const replies = await Promise.all(Array.from({ length: 16 }, () => world.ask(openOrder, request)));
    const [first] = replies;
    expect(new Set(replies.map(({ order }) => order.orderId)).size).toBe(1);
    const orderId = first?.order.orderId ?? 0;
    await world.ask(changeOrder, { caller: cashier, orderId, lines: [cake] });
    expect((await world.ask(openOrder, request)).order).toEqual(first?.order);
    const [count] = await world.database`select count(*) as orders from orders where station_id = ${stationId}`;
    expect(count).toEqual({ orders: 1 });
  });

  test("with another body: refused; the same key of another user: another order", async () => {
    const { stationId, cashier } = await world.openStation();
    const request = { caller: cashier, stationId, lines: [coffee], idempotencyKey: "k-2" };
    const { order } = await world.ask(openOrder, request);
    const reused = { code: "idempotency_key_reused" };
    expect(await refusalOf(world.ask(openOrder, { ...request, lines: [cake] }))).toEqual(reused);
    const other = await world.ask(openOrder, { ...request, caller: cashierOf(cashier.organizationId, 8) });
    expect(other.order.orderId).not.toBe(order.orderId);
  });

  test("as long as the gateway allows: accepted", async () => {
    const { stationId, cashier } = await world.openStation();
    const idempotencyKey = "x".repeat(LIMITS.idempotencyKeyCharacters);
    const request = { caller: cashier, stationId, lines: [coffee], idempotencyKey };
    const [first, again] = [await world.ask(openOrder, request), await world.ask(openOrder, request)];
    expect(again).toEqual(first);
  });

  test.each([
    ["empty", ""],
    ["too long", "x".repeat(BOUNDS.idempotencyKeyCharacters + 1)],
    ["not a text", "a\0b"],
  ])("that is %s is refused", async (_what, idempotencyKey) => {
    const { stationId, cashier } = await world.openStation();
    const refusal = await refusalOf(world.ask(openOrder, { caller: cashier, stationId, lines: [], idempotencyKey }));
    expect(refusal.code).toBe("invalid_request");
  });
});

describe("amounts", () => {
  const fits: [string, ReturnType<typeof line>[], string][] = [
    ["EUR", [line("999999999999")], "999999999999"],
    ["JPY", [line("9999999999")], "9999999999"],
    ["JPY", [line("1")], "1"],
    ["KWD", [line("9999999999990")], "9999999999990"],
    ["KWD", [line("10", 3)], "30"],
  ];
  test.each(fits)("%s %j fit the contract's pattern", async (currency, lines, totalMinor) => {
    const { stationId, cashier } = await world.openStation(currency);
    const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines });
    expect(order.totalMinor).toBe(totalMinor);
    expect((await world.ask(prepareIntent, { stationId, orderId: order.orderId })).order.amountMinor).toBe(totalMinor);
  });

  const tooLarge: [string, ReturnType<typeof line>[], string][] = [
    ["EUR", [line("1000000000000")], "/lines/0/unit_amount"],
    ["EUR", [line("999999999999"), line("1")], "/lines"],
    ["EUR", [line("999999999999", 9_999)], "/lines"],
    ["JPY", [line("10000000000")], "/lines/0/unit_amount"],
    ["JPY", [line("9999999999", 2)], "/lines"],
    ["KWD", [line("5")], "/lines/0/unit_amount"],
    ["KWD", [line("10"), line("1005")], "/lines/1/unit_amount"],
  ];
  test.each(tooLarge)("%s %j are refused when the order is written", async (currency, lines, pointer) => {
    const { stationId, cashier } = await world.openStation(currency);
    const refusal = await refusalOf(world.ask(openOrder, { caller: cashier, stationId, lines }));
    expect(refusal).toMatchObject({ code: "invalid_request", errors: [{ pointer }] });
    const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines: [line("10")] });
    const change = world.ask(changeOrder, { caller: cashier, orderId: order.orderId, lines });
    expect(await refusalOf(change)).toMatchObject({ code: "invalid_request", errors: [{ pointer }] });
    expect((await world.ask(getOrder, { caller: cashier, orderId: order.orderId })).order).toEqual(order);
  });

  test.each(["a\0b", "half \ud800"])("a name that is not valid text is refused: %j", async (name) => {
    const { stationId, cashier } = await world.openStation();
    const lines = [{ name, quantity: 1, unitAmountMinor: "1" }];
    expect(await refusalOf(world.ask(openOrder, { caller: cashier, stationId, lines }))).toMatchObject({
      code: "invalid_request",
      errors: [{ pointer: "/lines/0/name" }],
    });
  });
});

describe.each(["suspended", "closed"] as const)("at a %s station", (status) => {
  test("no order is opened or changed; repetitions get their answer, and an open order can be voided", async () => {
    const { stationId, cashier } = await world.openStation();
    const opening = { caller: cashier, stationId, lines: [coffee], idempotencyKey: `standing-${status}` };
    const { order } = await world.ask(openOrder, opening);
    const { orderId } = order;
    await world.database`update stations set status = ${status} where station_id = ${stationId}`;
    const refused = { code: `station_${status}` };
    const another = world.ask(openOrder, { caller: cashier, stationId, lines: [cake] });
    expect(await refusalOf(another)).toEqual(refused);
    const change = world.ask(changeOrder, { caller: cashier, orderId, lines: [cake] });
    expect(await refusalOf(change)).toEqual(refused);
    expect((await world.ask(listOrders, { caller: cashier, stationId, limit: 10 })).orders).toEqual([order]);
    expect((await world.ask(openOrder, opening)).order).toEqual(order);
    expect((await world.ask(changeOrder, { caller: cashier, orderId, lines: [coffee] })).order).toEqual(order);
    expect((await world.ask(voidOrder, { caller: cashier, orderId })).order).toMatchObject({ status: "voided" });
  });
});

describe("changes, voids and reads of orders", () => {
  test("a change to the same lines: nothing changes; to other lines: a new revision", async () => {
    const { stationId, cashier } = await world.openStation();
    const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines: [coffee] });
    const same = await world.ask(changeOrder, { caller: cashier, orderId: order.orderId, lines: [coffee] });
    expect(same.order).toEqual(order);
    const other = await world.ask(changeOrder, { caller: cashier, orderId: order.orderId, lines: [cake, coffee] });
    expect(other.order).toMatchObject({ revision: 2, totalMinor: "1250", lines: [cake, coffee] });
    const stored = async () => (await world.ask(getOrder, { caller: cashier, orderId: order.orderId })).order;
    expect(await stored()).toEqual(other.order);
    const fewer = await world.ask(changeOrder, { caller: cashier, orderId: order.orderId, lines: [coffee] });
    expect(fewer.order).toMatchObject({ revision: 3, totalMinor: "700", lines: [coffee] });
    expect(await stored()).toEqual(fewer.order);
  });

  test("a second void: the same answer; a change of a voided order: refused", async () => {
    const { stationId, cashier } = await world.openStation();
    const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines: [coffee] });
    const once = await world.ask(voidOrder, { caller: cashier, orderId: order.orderId });
    expect(once.order).toMatchObject({ status: "voided", revision: 2 });
    expect((await world.ask(getOrder, { caller: cashier, orderId: order.orderId })).order).toEqual(once.order);
    expect((await world.ask(voidOrder, { caller: cashier, orderId: order.orderId })).order).toEqual(once.order);
    const change = world.ask(changeOrder, { caller: cashier, orderId: order.orderId, lines: [cake] });
    expect(await refusalOf(change)).toEqual({ code: "conflict", detail: "This order is voided." });
  });

  test("a change or void of a paid order: refused; the order has its transaction", async () => {
    const { stationId, cashier } = await world.openStation();
    const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines: [coffee] });
    const { orderId } = order;
    await payCash(orderId, stationId);
    const paid = { code: "conflict", detail: "This order is paid." };
    expect(await refusalOf(world.ask(voidOrder, { caller: cashier, orderId }))).toEqual(paid);
    expect(await refusalOf(world.ask(changeOrder, { caller: cashier, orderId, lines: [cake] }))).toEqual(paid);
    expect((await world.ask(getOrder, { caller: cashier, orderId })).order).toMatchObject({
      status: "paid",
      revision: 2,
      transaction: { route: "cash", amountMinor: "700", currency: "EUR", reference: "" },
    });
  });

  test("the owner: reads orders of one station and of all, and cannot write any", async () => {
    const { stationId, cashier } = await world.openStation();
    const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines: [coffee] });
    const caller = { ...cashier, role: "owner" as const, permissions: ["organization.manage" as const] };
    const { orderId } = order;
    expect(await world.ask(getOrder, { caller, orderId })).toEqual({ order });
    for (const only of [{ stationId }, {}])
      for (const status of [undefined, "open" as const])
        expect((await world.ask(listOrders, { caller, ...only, status })).orders).toEqual([order]);
    expect((await world.ask(listOrders, { caller, status: "paid" })).orders).toEqual([]);
    for (const ask of [
      () => world.ask(changeOrder, { caller, orderId, lines: [coffee] }),
      () => world.ask(voidOrder, { caller, orderId }),
      () => world.ask(openOrder, { caller, stationId, lines: [coffee] }),
    ])
      expect(await refusalOf(ask())).toEqual({ code: "permission_denied" });
  });

  test("a reconciliation operator: reading and listing orders is refused", async () => {
    const { stationId, cashier } = await world.openStation();
    const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines: [coffee] });
    const role = "reconciliation_operator" as const;
    const caller = { ...cashier, role, permissions: ["reconciliation.manage" as const] };
    const asked = [
      () => world.ask(getOrder, { caller, orderId: order.orderId }),
      () => world.ask(listOrders, { caller, stationId, limit: 10 }),
    ];
    for (const ask of asked) expect(await refusalOf(ask())).toEqual({ code: "permission_denied" });
  });

  test("a caller of another organization: the order is not found", async () => {
    const { stationId, cashier } = await world.openStation();
    const foreign = (await world.openStation()).cashier;
    const { order } = await world.ask(openOrder, { caller: cashier, stationId, lines: [coffee] });
    const { orderId } = order;
    const refused = [
      world.ask(getOrder, { caller: foreign, orderId }),
      world.ask(voidOrder, { caller: foreign, orderId }),
      world.ask(changeOrder, { caller: foreign, orderId, lines: [] }),
    ];
    expect(await Promise.all(refused.map(refusalOf))).toEqual(refused.map(() => ({ code: "not_found" })));
    expect(await world.ask(listOrders, { caller: foreign, stationId, limit: 10 })).toEqual({
      orders: [],
      hasMore: false,
    });
  });
});

test("a station's orders are listed newest first, by status", async () => {
  const { stationId, cashier } = await world.openStation();
  const opened = [];
  for (const lines of [[coffee], [cake], [coffee, cake]]) {
    opened.push((await world.ask(openOrder, { caller: cashier, stationId, lines })).order);
  }
  const [first, second, third] = opened.map((order) => order.orderId) as [number, number, number];
  await world.ask(voidOrder, { caller: cashier, orderId: second });
  await payCash(first, stationId);
  const ids = async (filter: { status?: "open" | "paid" | "voided"; limit?: number }) => {
    const { limit = 10, ...status } = filter;
    const { orders } = await world.ask(listOrders, { caller: cashier, stationId, limit, ...status });
    return orders.map((order) => order.orderId);
  };
  expect(await ids({})).toEqual([third, second, first]);
  expect(await ids({ limit: 2 })).toEqual([third, second]);
  expect(await ids({ status: "open" })).toEqual([third]);
  expect(await ids({ status: "paid" })).toEqual([first]);
  expect(await ids({ status: "voided" })).toEqual([second]);
});
