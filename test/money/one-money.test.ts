/** One money is spent once, whatever its provider says of it and whatever an operator and a cashier do about it. */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { Actor } from "../../machines/actor.ts";
import * as issueMessages from "../../services/bus/messages/issues.ts";
import type { RequestedCommand } from "../../services/bus/messages/station-commands.ts";
import { ACCOUNT, type House, type MoneyWorld, startMoneyWorld, until } from "./money-world.ts";
import { untilQuiet } from "./reckoning.ts";
import { type Assertion, Scheme } from "./scheme.ts";

let world: MoneyWorld;
let scheme: Scheme;
beforeAll(async () => {
  world = await startMoneyWorld();
  scheme = new Scheme(world);
});
afterAll(() => world.stop());

let keys = 0;
const nextKey = (): string => `one-money:${(keys += 1)}`;

async function act(house: House, command: RequestedCommand) {
  const [{ userId: id, name }] = house.cashiers;
  const actor: Actor = { kind: "cashier", id, name };
  return (await world.command(house.stationId, { commandId: nextKey(), actor, command })).reply;
}

/** A QR that the guest has before them, and the money that would pay it. */
async function present(house: House, nth: number): Promise<{ intentId: number; orderId: number; money: Assertion }> {
  const { orderId, amountMinor } = house.orders[nth] ?? { orderId: 0, amountMinor: 0 };
  const reply = await act(house, { type: "intent_create", route: "dynamic_qr", orderId, lifetimeMs: 60_000 });
  if (!reply.ok || reply.type !== "intent") throw new Error(`No collection: ${JSON.stringify(reply)}`);
  const { intentId } = reply;
  await until("the QR", () => world.log.commitsOf(house.stationId).at(-1)?.active?.status === "presented");
  const [payment] = await world.database<[{ reference: string }]>`
    select reference from provider_payments where intent_id = ${intentId}`;
  const { configId, currency } = house;
  const transactionId = `M-${intentId}`;
  const money = { configId, transactionId, reference: payment.reference, account: ACCOUNT, amountMinor, currency };
  return { intentId, orderId, money };
}

const pay = (house: House, money: Assertion) => scheme.pay(house.secret, money, { id: nextKey() });
const quiet = (house: House) => untilQuiet(world, [{ house, diary: { acknowledged: [], voided: [] } }]);
const salesOf = ({ stationId }: House, { transactionId }: Assertion) => world.database<{ order_id: number }[]>`
  select order_id from transactions where station_id = ${stationId} and reference = ${transactionId}`;
const issuesOf = async ({ operator: caller }: House) =>
  (await world.ask(issueMessages.listIssues, { caller, limit: 20 })).issues;

test("a money that its provider asserts for two payments pays the first, and is an issue for the second", async () => {
  const house = await world.openHouse({ currency: "EUR", amountsMinor: [1_250, 1_250] });
  const first = await present(house, 0);
  await pay(house, first.money);
  await quiet(house);
  const second = await present(house, 1);
  await pay(house, { ...first.money, reference: second.money.reference });
  await quiet(house);
  expect(await salesOf(house, first.money)).toEqual([{ order_id: first.orderId }]);
  expect(await issuesOf(house)).toMatchObject([{ status: "open", intentId: second.intentId }]);
});

test("two payments that are asserted with one money at the same time: one of them is paid", async () => {
  const house = await world.openHouse({ currency: "EUR", amountsMinor: [1_250, 1_250] });
  const first = await present(house, 0);
  await act(house, { type: "intent_cancel", intentId: first.intentId });
  const second = await present(house, 1);
  const same = { ...second.money, reference: first.money.reference };
  await Promise.all([pay(house, second.money), pay(house, same)]);
  await quiet(house);
  const sales = await salesOf(house, second.money);
  expect(sales.length).toBeLessThanOrEqual(1);
  // The one that came first is paid, or late; the other one is an issue in any case.
  expect(await issuesOf(house)).toHaveLength(2 - sales.length);
});

test("a money that was told wrong and then right cannot be attributed while its own collection may settle it", async () => {
  const house = await world.openHouse({ currency: "EUR", amountsMinor: [1_250, 700] });
  const { money, intentId, orderId } = await present(house, 0);
  await pay(house, { ...money, amountMinor: 700 });
  const [issue] = await issuesOf(house);
  // The station does not answer: the confirmation is written down and waits.
  await Promise.all(world.hosts.map((host) => host.kill9()));
  await pay(house, money);
  const asked = { caller: house.operator, issueId: issue?.issueId ?? 0, orderId: house.orders[1]?.orderId ?? 0 };
  const attributed = world.ask(issueMessages.attributeIssue, { ...asked, reason: "the guest has a receipt" });
  const refusal = await attributed.catch((error: unknown) => error);
  await Promise.all(world.hosts.map((host) => host.restart()));
  // Also said when the station cannot be asked what it is collecting.
  expect(refusal).toMatchObject({ refusal: { code: expect.stringMatching(/^(conflict|unavailable)$/) as string } });
  await until("the confirmation", () =>
    world.log
      .eventsOf(house.stationId)
      .some((event) => event.type === "intent_succeeded" && event["intentId"] === intentId),
  );
  await quiet(house);
  expect(await salesOf(house, money)).toEqual([{ order_id: orderId }]);
});

test("a money that the seam refused cannot be closed as resolved outside while the cashier may settle it", async () => {
  const house = await world.openHouse({ currency: "EUR", amountsMinor: [1_250] });
  const { money, intentId, orderId } = await present(house, 0);
  const price = (totalMinor: number) =>
    world.database`update orders set total_minor = ${totalMinor}, revision = revision + 1 where order_id = ${orderId}`;
  // As an order that was changed a moment ago: its station has not heard of it yet, or it would have ended the QR.
  await price(1_300);
  await pay(house, money);
  await quiet(house);
  const [issue] = await issuesOf(house);
  expect(issue?.kind).toBe("settlement_refused");
  const close = () =>
    world.ask(issueMessages.closeIssue, { caller: house.operator, issueId: issue?.issueId ?? 0, reason: "paid back" });
  await expect(close()).rejects.toMatchObject({ refusal: { code: "conflict" } });
  await price(1_250);
  expect(await act(house, { type: "intent_attest", intentId })).toMatchObject({ ok: true, status: "succeeded" });
  await expect(close()).rejects.toMatchObject({ refusal: { code: "conflict" } });
  await quiet(house);
  expect(await issuesOf(house)).toMatchObject([{ status: "closed", resolvedBy: null }]);
});

test("an unregistered money that was told rightly since is not given away a second time", async () => {
  const house = await world.openHouse({ currency: "EUR", amountsMinor: [1_250, 1_250] });
  const { money, orderId } = await present(house, 0);
  await pay(house, { ...money, reference: "UNKNOWN" });
  await pay(house, money);
  await quiet(house);
  const [issue] = await issuesOf(house);
  expect(issue?.kind).toBe("unmatched_money");
  const asked = { caller: house.operator, issueId: issue?.issueId ?? 0, orderId: house.orders[1]?.orderId ?? 0 };
  const attributed = world.ask(issueMessages.attributeIssue, { ...asked, reason: "the guest has a receipt" });
  await expect(attributed).rejects.toMatchObject({ refusal: { code: "conflict" } });
  expect(await salesOf(house, money)).toEqual([{ order_id: orderId }]);
});
