/** A payment settles once and an order is paid once, with any reports of a provider and any actions of people. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Actor } from "../../machines/actor.ts";
import * as issueMessages from "../../services/bus/messages/issues.ts";
import type { RequestedCommand } from "../../services/bus/messages/station-commands.ts";
import { waitFor } from "../support/wait-for.ts";
import { findBrokenRules, repeatAll, untilQuiet } from "./broken-rules.ts";
import { AMOUNT_MINOR, callersOf, openScene } from "./callers-at-once.ts";
import { ACCOUNT, type Filial, type MoneyWorld, startMoneyWorld } from "./money-world.ts";
import { type Assertion, Scheme } from "./scheme.ts";

/** Rounds of 64 callers at once. */
const ROUNDS = 3;

let world: MoneyWorld;
let scheme: Scheme;
beforeAll(async () => {
  world = await startMoneyWorld();
  scheme = new Scheme(world);
});
afterAll(() => world.stop());

let keys = 0;
const nextKey = (): string => `one-money:${(keys += 1)}`;

async function act(filial: Filial, command: RequestedCommand) {
  const [{ userId: id, name }] = filial.cashiers;
  const actor: Actor = { kind: "cashier", id, name };
  return (await world.command(filial.stationId, { commandId: nextKey(), actor, command })).reply;
}

/** A QR that the guest sees, and the payment that matches it. */
async function present(filial: Filial, nth: number): Promise<{ intentId: number; orderId: number; money: Assertion }> {
  const { orderId, amountMinor } = filial.orders[nth] ?? { orderId: 0, amountMinor: 0 };
  const reply = await act(filial, { type: "intent_create", route: "dynamic_qr", orderId, lifetimeMs: 60_000 });
  if (!reply.ok || reply.type !== "intent") throw new Error(`No collection: ${JSON.stringify(reply)}`);
  const { intentId } = reply;
  await waitFor("the QR", () => world.log.commitsOf(filial.stationId).at(-1)?.active?.status === "presented");
  const [payment] = await world.database<[{ reference: string }]>`
    select reference from provider_payments where intent_id = ${intentId}`;
  const { configId, currency } = filial;
  const transactionId = `M-${intentId}`;
  const money = { configId, transactionId, reference: payment.reference, account: ACCOUNT, amountMinor, currency };
  return { intentId, orderId, money };
}

const pay = (filial: Filial, money: Assertion) => scheme.pay(filial.secret, money, { id: nextKey() });
const waitUntilQuiet = (filial: Filial) => untilQuiet(world, [{ filial, diary: { acknowledged: [], voided: [] } }]);
const salesOf = ({ stationId }: Filial, { transactionId }: Assertion) => world.database<{ order_id: number }[]>`
  select order_id from transactions where station_id = ${stationId} and reference = ${transactionId}`;
const issuesOf = async ({ operator: caller }: Filial) =>
  (await world.ask(issueMessages.listIssues, { caller, limit: 20 })).issues;

describe("one payment", () => {
  /** This test runs first, because it checks all refusals in the database. */
  test.each(Array.from({ length: ROUNDS }, (_, nth) => nth))(
    "64 callers at once, round %i: the order is paid once",
    async (nth) => {
      const scene = await openScene(world, nth);
      const { filial, acknowledged, orderId } = scene;
      const callers = callersOf(scene, nth);
      expect(callers).toHaveLength(64);
      // Each round begins with another caller, so that another caller may settle the order.
      const turned = [...callers.slice(nth * 21), ...callers.slice(0, nth * 21)];
      await Promise.all(turned.map((caller) => caller()));
      const played = [{ filial, diary: { acknowledged, voided: [] } }];
      await untilQuiet(world, played);
      expect(await repeatAll(world, played)).toEqual([]);
      await scene.scheme.replayAll();
      await untilQuiet(world, played);
      expect(await findBrokenRules(world, scene.scheme, played)).toEqual([]);
      const sales = await world.database`
        select o.status, o.total_minor::int, t.amount_minor::int from orders o join transactions t using (order_id)
        where order_id = ${orderId}`;
      expect(sales).toEqual([{ status: "paid", total_minor: AMOUNT_MINOR, amount_minor: AMOUNT_MINOR }]);
      // The order was not changed or voided. So the others are refused because it is paid, or because their payment is used.
      const refusals = await world.database<{ refusal: string }[]>`select distinct refusal from settlement_refusals`;
      const reasons = ["order_already_paid", "money_already_used"];
      expect(refusals.filter(({ refusal }) => !reasons.includes(refusal))).toEqual([]);
    },
  );

  test("asserted for two intents, one after the other: it settles the first, and is an issue for the second", async () => {
    const filial = await world.openFilial({ currency: "EUR", amountsMinor: [1_250, 1_250] });
    const first = await present(filial, 0);
    await pay(filial, first.money);
    await waitUntilQuiet(filial);
    const second = await present(filial, 1);
    await pay(filial, { ...first.money, reference: second.money.reference });
    await waitUntilQuiet(filial);
    expect(await salesOf(filial, first.money)).toEqual([{ order_id: first.orderId }]);
    expect(await issuesOf(filial)).toMatchObject([{ status: "open", intentId: second.intentId }]);
  });

  test("asserted for two intents at the same time: it settles at most one, and is an issue for each other one", async () => {
    const filial = await world.openFilial({ currency: "EUR", amountsMinor: [1_250, 1_250] });
    const first = await present(filial, 0);
    await act(filial, { type: "intent_cancel", intentId: first.intentId });
    const second = await present(filial, 1);
    const same = { ...second.money, reference: first.money.reference };
    await Promise.all([pay(filial, second.money), pay(filial, same)]);
    await waitUntilQuiet(filial);
    const sales = await salesOf(filial, second.money);
    expect(sales.length).toBeLessThanOrEqual(1);
    // The payment settles the second intent when that assertion comes first. Every other assertion is an issue.
    expect(await issuesOf(filial)).toHaveLength(2 - sales.length);
  });

  test("asserted with a wrong amount and then correctly: no attribution while its collection may settle it", async () => {
    const filial = await world.openFilial({ currency: "EUR", amountsMinor: [1_250, 700] });
    const { money, intentId, orderId } = await present(filial, 0);
    await pay(filial, { ...money, amountMinor: 700 });
    const [issue] = await issuesOf(filial);
    // No host runs, so the station does not answer, and the stored confirmation waits.
    await Promise.all(world.hosts.map((host) => host.kill9()));
    await pay(filial, money);
    const request = { caller: filial.operator, issueId: issue?.issueId ?? 0, orderId: filial.orders[1]?.orderId ?? 0 };
    const attributed = world.ask(issueMessages.attributeIssue, { ...request, reason: "the guest has a receipt" });
    const refusal = await attributed.catch((error: unknown) => error);
    await Promise.all(world.hosts.map((host) => host.restart()));
    // The service may also refuse because the station does not answer the query whether it collects the order.
    expect(refusal).toMatchObject({ refusal: { code: expect.stringMatching(/^(conflict|unavailable)$/) as string } });
    await waitFor("the confirmation", () =>
      world.log
        .eventsOf(filial.stationId)
        .some((event) => event.type === "intent_succeeded" && event["intentId"] === intentId),
    );
    await waitUntilQuiet(filial);
    expect(await salesOf(filial, money)).toEqual([{ order_id: orderId }]);
  });

  test("refused by the seam: its issue cannot be closed while the cashier may settle it", async () => {
    const filial = await world.openFilial({ currency: "EUR", amountsMinor: [1_250] });
    const { money, intentId, orderId } = await present(filial, 0);
    const price = (totalMinor: number) =>
      world.database`update orders set total_minor = ${totalMinor}, revision = revision + 1 where order_id = ${orderId}`;
    // The change is written past the service, so that the station does not receive it and does not end the QR.
    await price(1_300);
    await pay(filial, money);
    await waitUntilQuiet(filial);
    const [issue] = await issuesOf(filial);
    expect(issue?.kind).toBe("settlement_refused");
    const close = () =>
      world.ask(issueMessages.closeIssue, {
        caller: filial.operator,
        issueId: issue?.issueId ?? 0,
        reason: "paid back",
      });
    await expect(close()).rejects.toMatchObject({ refusal: { code: "conflict" } });
    await price(1_250);
    expect(await act(filial, { type: "intent_attest", intentId })).toMatchObject({ ok: true, status: "succeeded" });
    await expect(close()).rejects.toMatchObject({ refusal: { code: "conflict" } });
    await waitUntilQuiet(filial);
    expect(await issuesOf(filial)).toMatchObject([{ status: "closed", resolvedBy: null }]);
  });

  test("asserted with an unknown reference and then correctly: it settles its order and cannot be attributed", async () => {
    const filial = await world.openFilial({ currency: "EUR", amountsMinor: [1_250, 1_250] });
    const { money, orderId } = await present(filial, 0);
    await pay(filial, { ...money, reference: "UNKNOWN" });
    await pay(filial, money);
    await waitUntilQuiet(filial);
    const [issue] = await issuesOf(filial);
    expect(issue?.kind).toBe("unmatched_money");
    const request = { caller: filial.operator, issueId: issue?.issueId ?? 0, orderId: filial.orders[1]?.orderId ?? 0 };
    const attributed = world.ask(issueMessages.attributeIssue, { ...request, reason: "the guest has a receipt" });
    await expect(attributed).rejects.toMatchObject({ refusal: { code: "conflict" } });
    expect(await salesOf(filial, money)).toEqual([{ order_id: orderId }]);
  });
});
