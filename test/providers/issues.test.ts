/** How an operator resolves a payment that does not match: by an attribution through the seam, or by closing the issue. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Issue } from "../../services/bus/messages/issues.ts";
import * as issueMessages from "../../services/bus/messages/issues.ts";
import { changeOrder } from "../../services/bus/messages/orders.ts";
import { listProviderEvents } from "../../services/bus/messages/provider-events.ts";
import { waitFor } from "../support/wait-for.ts";
import { paidBody, sendCallback } from "./emvco-callback.ts";
import { Scenes, SECRET } from "./emvco-scene.ts";
import { type Intent, type Place, type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const listOf = (place: Place) => world.ask(issueMessages.listIssues, { caller: place.operator, limit: 100 });

/** An unregistered payment of that amount. */
async function strayMoney(
  amount = "12.50",
  currency = "EUR",
): Promise<{ place: Place; configId: number; issue: Issue }> {
  const place = await world.openPlace();
  const configId = await scenes.openConfig(place);
  await addStray(configId, { amount, currency });
  const [issue] = (await listOf(place)).issues;
  if (issue === undefined) throw new Error("There is no issue.");
  return { place, configId, issue };
}

let strays = 0;
async function addStray(configId: number, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
  strays += 1;
  const data = {
    reference: `STRAY${strays}`,
    transaction_id: `S-${strays}`,
    merchant_id: "M-1",
    amount: "12.50",
    currency: "EUR",
  };
  const answer = await sendCallback(world, { configId, body: paidBody({ ...data, ...more }), secret: SECRET });
  expect(answer.status).toBe(200);
}

const transactionsOf = ({ orderId }: Intent) =>
  world.database<{ transaction_id: number; reference: string; attested_by: number; route: string }[]>`
    select transaction_id, reference, attested_by, route from transactions where order_id = ${orderId}`;

/** The same place, with another operator. */
const colleagueOf = (place: Place): Place => ({
  ...place,
  operator: { ...place.operator, userId: place.operator.userId + 1_000 },
});

describe("an attribution", () => {
  test("pays the order through the seam, once, with operator and reason, and the station is notified", async () => {
    const { place, issue } = await strayMoney();
    expect(issue).toMatchObject({ kind: "unmatched_money", status: "open", amountMinor: "1250", currency: "EUR" });
    const intent = await world.openIntent(place, 1250);
    const { issue: resolved } = await scenes.attribute(place, issue, intent);
    const [transaction] = await transactionsOf(intent);
    expect(transaction).toEqual({
      transaction_id: resolved.transactionId,
      reference: issue.providerReference,
      attested_by: place.operator.userId,
      route: "dynamic_qr",
    });
    expect(resolved).toMatchObject({
      status: "attributed",
      orderId: intent.orderId,
      resolvedBy: place.operator.userId,
      reason: "the guest showed the receipt",
    });
    // A repetition by the same person gets the same answer and adds no transaction.
    expect((await scenes.attribute(place, issue, intent)).issue).toEqual(resolved);
    expect(await transactionsOf(intent)).toHaveLength(1);
    const rows = await world.database<{ payload: { command: unknown } }[]>`
      select payload from outbox where key = ${`station.${place.stationId}`} and payload -> 'command' ->> 'type' = 'order_put'
      order by outbox_id desc limit 1`;
    expect(rows[0]?.payload.command).toMatchObject({ order: { orderId: intent.orderId, status: "paid", revision: 2 } });
    const { events } = await world.ask(listProviderEvents, {
      caller: place.owner,
      sinceId: 0,
      limit: 100,
    });
    expect(events.at(-1)).toMatchObject({
      action: "issue_attributed",
      actor: { kind: "reconciliation_operator", id: place.operator.userId, name: "Rosa" },
      subject: { kind: "issue", id: issue.issueId },
      data: {
        reason: "the guest showed the receipt",
        order_id: intent.orderId,
        transaction_id: resolved.transactionId,
      },
    });
  });

  test("again by another person, to another order or for another reason: refused as issue_attributed", async () => {
    const { place, issue } = await strayMoney();
    const intent = await world.openIntent(place, 1250);
    const other = await world.openIntent(place, 1250);
    await scenes.attribute(place, issue, intent);
    const differing = [
      () => scenes.attribute(place, issue, other),
      () => scenes.attribute(place, issue, intent, "another reason"),
      () => scenes.attribute(colleagueOf(place), issue, intent),
      () => scenes.close(place, issue, "the guest showed the receipt"),
    ];
    for (const ask of differing)
      expect(await refusalOf(ask())).toMatchObject({ code: "conflict", reason: "issue_attributed" });
    expect(await transactionsOf(intent)).toHaveLength(1);
    expect(await transactionsOf(other)).toEqual([]);
  });

  test("ten at once, to ten orders: one order is paid", async () => {
    const { place, issue } = await strayMoney();
    const intents = await Promise.all(Array.from({ length: 10 }, () => world.openIntent(place, 1250)));
    const outcomes = await Promise.allSettled(intents.map((intent) => scenes.attribute(place, issue, intent)));
    const paid = await Promise.all(intents.map(transactionsOf));
    expect(paid.flat()).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome.status === "fulfilled")).toHaveLength(1);
  });

  test("an amount, a currency or an order that does not match: refused, and the issue stays open", async () => {
    const { place, issue } = await strayMoney();
    const wrong = await world.openIntent(place, 1251);
    expect((await refusalOf(scenes.attribute(place, issue, wrong))).code).toBe("conflict");
    const elsewhere = await world.openPlace({ currency: "USD" });
    const foreign = await world.openIntent(elsewhere, 1250);
    expect((await refusalOf(scenes.attribute(place, issue, foreign))).code).toBe("not_found");
    expect(await transactionsOf(wrong)).toHaveLength(0);
    const other = await strayMoney("12.50", "USD");
    const euros = await world.openIntent(other.place, 1250);
    expect((await refusalOf(scenes.attribute(other.place, other.issue, euros))).code).toBe("conflict");
    expect((await listOf(place)).issues[0]).toMatchObject({ status: "open" });
  });

  test("a payment without an amount, or one that pays an order by another issue: refused", async () => {
    const nameless = await strayMoney("no amount");
    expect(nameless.issue.amountMinor).toBeNull();
    // This reason comes before others, here before those of an order of another filial.
    const elsewhere = await world.openPlace({ isSandbox: false });
    const orders = [await world.openIntent(nameless.place, 1250), await world.openIntent(elsewhere, 1250)];
    for (const order of orders)
      expect(await refusalOf(scenes.attribute(nameless.place, nameless.issue, order))).toMatchObject({
        code: "conflict",
        reason: "amount_unknown",
      });
    // Two issues have the same payment: the first for a wrong account, the second for an unknown reference.
    const place = await world.openPlace();
    const configId = await scenes.openConfig(place);
    const asked = await world.openIntent(place, 1250);
    const answer = await world.askProvider(place, configId, asked);
    const reference = answer.created ? /6228\d{2}24([0-9A-Z]{24})/.exec(answer.qrPayload)?.[1] : undefined;
    await addStray(configId, { reference, transaction_id: "SAME", merchant_id: "M-2" });
    await addStray(configId, { transaction_id: "SAME" });
    const { issues } = await listOf(place);
    expect(issues.map((issue) => issue.kind)).toEqual(["unmatched_money", "account_mismatch"]);
    const [first, second] = issues;
    if (first === undefined || second === undefined) throw new Error("There are no two issues.");
    await scenes.attribute(place, first, await world.openIntent(place, 1250));
    const again = await world.openIntent(place, 1250);
    expect((await refusalOf(scenes.attribute(place, second, again))).code).toBe("conflict");
    expect(await transactionsOf(again)).toHaveLength(0);
    // When the correct callback arrives later, the payment does not settle its intent either.
    await addStray(configId, { reference, transaction_id: "SAME" });
    const [last] = await world.database<[{ outcome: string }]>`
      select outcome from provider_callbacks where config_id = ${configId} order by callback_id desc limit 1`;
    expect(last.outcome).toBe("attributed");
    const received = world.stations.about(asked.intentId).map(({ command }) => command.type);
    expect(received).not.toContain("provider_confirm");
  });

  test("the order changes before the seam is asked: the seam refuses, and the issue can be attributed again", async () => {
    const { place, issue } = await strayMoney();
    const intent = await world.openIntent(place, 1250);
    // The stored attribution of a process that died before it asked the seam.
    await leaveAttribution(issue, intent);
    const lines = [{ name: "Soup", quantity: 1, unitAmountMinor: "1300" }];
    await world.ask(changeOrder, { caller: place.cashier, orderId: intent.orderId, lines });
    const other = await world.openIntent(place, 1250);
    const { issue: resolved } = await scenes.attribute(place, issue, other);
    expect(resolved).toMatchObject({ status: "attributed", orderId: other.orderId });
    expect(await transactionsOf(intent)).toHaveLength(0);
    expect(await transactionsOf(other)).toHaveLength(1);
  });

  test("a process dies after it stored the attribution: an attempt for another order completes the first", async () => {
    const { place, issue } = await strayMoney();
    const intent = await world.openIntent(place, 1250);
    await leaveAttribution(issue, intent);
    const other = await world.openIntent(place, 1250);
    expect((await refusalOf(scenes.attribute(place, issue, other))).code).toBe("conflict");
    expect(await transactionsOf(other)).toHaveLength(0);
    expect(await transactionsOf(intent)).toHaveLength(1);
    expect((await listOf(place)).issues[0]).toMatchObject({ status: "attributed", orderId: intent.orderId });
  });

  test("a process has died before the seam: another one completes it, also after one that cannot be completed", async () => {
    const stuck = await strayMoney();
    const { place, issue } = await strayMoney();
    const intent = await world.openIntent(place, 1250);
    await leaveAttribution(stuck.issue, intent, { agoMs: 120_000, orderId: 999_999 });
    await leaveAttribution(issue, intent, { agoMs: 60_000 });
    await waitFor("the issue's end", async () => (await listOf(place)).issues[0]?.status === "attributed");
    expect(await transactionsOf(intent)).toHaveLength(1);
    expect((await refusalOf(scenes.close(place, issue))).code).toBe("conflict");
  });

  test("of a payment that the cashier may still settle: refused until the collection has ended", async () => {
    const place = await world.openPlace();
    const configId = await scenes.openConfig(place);
    const asked = await world.openIntent(place, 1250);
    const answer = await world.askProvider(place, configId, asked);
    const reference = answer.created ? /6228\d{2}24([0-9A-Z]{24})/.exec(answer.qrPayload)?.[1] : undefined;
    world.stations.answer(asked.intentId, "provider_confirm", { ok: false, code: "order_changed" });
    await addStray(configId, { reference });
    const issue = await waitFor("an issue", async () => (await listOf(place)).issues[0]);
    expect(issue.kind).toBe("settlement_refused");
    const intent = await world.openIntent(place, 1250);
    expect((await refusalOf(scenes.attribute(place, issue, intent))).code).toBe("conflict");
    await world.database`
      update provider_payments set expires_at = now() - interval '1 hour' where intent_id = ${asked.intentId}`;
    expect((await scenes.attribute(place, issue, intent)).issue.status).toBe("attributed");
  });
});

/** The rows of a process that died after it had written an attribution. */
async function leaveAttribution(
  issue: Issue,
  intent: Intent,
  { agoMs = 0, orderId = intent.orderId }: { readonly agoMs?: number; readonly orderId?: number } = {},
): Promise<void> {
  const attribution = {
    intentId: intent.intentId,
    attestationId: `issue:${issue.issueId}:${intent.intentId}`,
    stationId: (
      await world.database<[{ station_id: number }]>`select station_id from orders where order_id = ${intent.orderId}`
    )[0].station_id,
    orderId,
    amountMinor: intent.amountMinor,
    currency: intent.currency,
    reference: issue.providerReference,
    reason: "before the crash",
    by: { userId: 77, name: "Rosa", role: "reconciliation_operator" },
  };
  await world.database`
    update issues set attribution = ${world.database.json(attribution)}, attributed_since = now() - ${agoMs}::float8 * interval '1 ms'
    where issue_id = ${issue.issueId}`;
}

describe("a closed issue", () => {
  test("keeps operator and reason, and the payment raises no other issue", async () => {
    const { place, configId, issue } = await strayMoney();
    const { issue: closed } = await scenes.close(place, issue);
    expect(closed).toMatchObject({
      status: "closed",
      reason: "paid back by bank transfer",
      resolvedBy: place.operator.userId,
    });
    await addStray(configId, { transaction_id: issue.providerReference });
    const { evidence } = closed;
    const further = [{ learned_from: "payment.paid", same_amount: true }];
    expect((await listOf(place)).issues).toMatchObject([
      { ...closed, lastSeenAtMs: expect.any(Number) as number, evidence: { ...evidence, further } },
    ]);
    const intent = await world.openIntent(place, 1250);
    // A repetition by the same person gets the same answer, and the audit log has one entry.
    const [known] = (await listOf(place)).issues;
    expect((await scenes.close(place, issue)).issue).toEqual(known);
    const differing = [
      () => scenes.attribute(place, issue, intent),
      () => scenes.close(place, issue, "lost"),
      () => scenes.close(colleagueOf(place), issue),
    ];
    for (const ask of differing)
      expect(await refusalOf(ask())).toMatchObject({ code: "conflict", reason: "issue_closed" });
    const { events } = await world.ask(listProviderEvents, {
      caller: place.owner,
      sinceId: 0,
      limit: 100,
    });
    expect(events.filter(({ action }) => action === "issue_closed")).toMatchObject([
      { data: { reason: "paid back by bank transfer" } },
    ]);
  });

  test("requires a reason, the permission and an issue of the organization", async () => {
    const { place, issue } = await strayMoney();
    const other = await world.openPlace();
    expect((await refusalOf(scenes.close(place, issue, " "))).code).toBe("invalid_request");
    expect((await refusalOf(scenes.close(other, issue))).code).toBe("not_found");
    for (const caller of [place.owner, place.cashier]) {
      const asked = { caller, issueId: issue.issueId, reason: "x" };
      expect((await refusalOf(world.ask(issueMessages.closeIssue, asked))).code).toBe("permission_denied");
      expect((await refusalOf(world.ask(issueMessages.listIssues, { caller, limit: 1 }))).code).toBe(
        "permission_denied",
      );
      const attributed = world.ask(issueMessages.attributeIssue, { ...asked, orderId: 1 });
      expect((await refusalOf(attributed)).code).toBe("permission_denied");
    }
  });

  test("the list of issues: newest first, page by page, by status", async () => {
    const { place, configId, issue } = await strayMoney();
    for (let more = 0; more < 4; more += 1) await addStray(configId);
    const page = (beforeId?: number) =>
      world.ask(issueMessages.listIssues, {
        caller: place.operator,
        limit: 2,
        ...(beforeId === undefined ? {} : { beforeId }),
      });
    const first = await page();
    const second = await page(first.issues[1]?.issueId);
    const third = await page(second.issues[1]?.issueId);
    expect([first.hasMore, second.hasMore, third.hasMore]).toEqual([true, true, false]);
    const ids = [first, second, third].flatMap(({ issues }) => issues.map(({ issueId }) => issueId));
    expect(ids).toHaveLength(5);
    expect(ids).toEqual(ids.toSorted((a, b) => b - a));
    await scenes.close(place, issue);
    const open = await world.ask(issueMessages.listIssues, { caller: place.operator, status: "open", limit: 100 });
    expect(open.issues).toHaveLength(4);
  });
});
