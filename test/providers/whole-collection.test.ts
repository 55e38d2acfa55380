/** QR collections from creation to settlement, with the real actor host, relay, settlement service and sandbox provider. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as issueMessages from "../../services/bus/messages/issues.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";
import type { Scenario } from "../../services/sandbox-provider/magic-amounts.ts";
import { waitFor } from "../support/wait-for.ts";
import { type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";
import { openQrCounter, type QrCounter } from "./qr-counter.ts";

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld({ hasRealStations: true });
});
afterAll(() => world.stop());

/** The shortest time for which a collection can be open. */
const LIFETIME_MS = 30_000;
const ENDED_WITHIN_MS = 15_000;

const openCounter = (scenario: Scenario): Promise<QrCounter> => openQrCounter(world, scenario);

describe.concurrent("a QR collection", () => {
  test("approved, with repeated callbacks: settled once through the seam, with the provider's reference", async () => {
    const counter = await openCounter("duplicate_callback");
    const intentId = await counter.collect(LIFETIME_MS);
    const intent = await counter.ended(intentId, ENDED_WITHIN_MS);
    expect(intent).toMatchObject({ status: "succeeded", attestation: { by: "provider", cashierId: 0 } });
    const order = await counter.order();
    expect(order).toMatchObject({ status: "paid", transaction: { intentId, route: "dynamic_qr" } });
    expect(order.transaction?.reference).toBe(intent.provider?.providerReference);
    const [sale] = await world.database<{ money_key: string }[]>`
      select money_key from transactions where intent_id = ${intentId}`;
    expect(sale?.money_key).toBe(`provider:${counter.configId}:money:${order.transaction?.reference}`);
    expect(await counter.issues()).toEqual([]);
  });

  test.each([
    ["decline", "payment_declined"],
    ["provider_down", "provider_unavailable"],
    ["refuse", "provider_refused"],
    ["garbage", "provider_answer_invalid"],
  ] as const)("%s: ends with the reason %s, and the order can be collected again", async (scenario, reason) => {
    const counter = await openCounter(scenario);
    const intent = await counter.ended(await counter.collect(LIFETIME_MS), ENDED_WITHIN_MS);
    expect(intent).toMatchObject({ status: "cancelled", endReason: reason });
    expect((await counter.order()).status).toBe("open");
    const { reply } = await counter.act({ type: "intent_create", route: "cash", orderId: counter.orderId });
    expect(reply).toMatchObject({ ok: true });
  });

  test("early_callback: a payment that arrives before the QR settles it", async () => {
    const counter = await openCounter("early_callback");
    expect(await counter.ended(await counter.collect(LIFETIME_MS), ENDED_WITHIN_MS)).toMatchObject({
      status: "succeeded",
    });
    expect(await counter.issues()).toEqual([]);
  });

  test("cancelled: unclear until the provider has reported that no money moved", async () => {
    const counter = await openCounter("never_pays");
    const intentId = await counter.collect(LIFETIME_MS);
    await counter.presented(intentId);
    await counter.act({ type: "intent_cancel", intentId });
    await waitFor("no unclear collection", async () => {
      const state = await counter.state();
      return state.intent === null && state.unclearCollections.length === 0;
    });
    const received = world.stations.about(intentId).map(({ command }) => command.type);
    expect(received).toContain("provider_cleared");
  });

  test("late money: an issue that settles nothing until an operator attributes it", async () => {
    const counter = await openCounter("late_success");
    const intentId = await counter.collect(LIFETIME_MS);
    await counter.presented(intentId);
    await counter.act({ type: "intent_cancel", intentId });
    const [issue] = await waitFor("an issue", async () => {
      const issues = await counter.issues();
      return issues.length > 0 && issues;
    });
    expect(issue).toMatchObject({ kind: "late_money", intentId, orderId: counter.orderId });
    expect((await counter.order()).status).toBe("open");
    const again = await counter.act({ type: "intent_create", route: "cash", orderId: counter.orderId });
    expect(again.reply).toMatchObject({ ok: false, code: "money_may_have_moved", earlierIntentId: intentId });
    const { operator: caller } = counter.place;
    const asked = { caller, issueId: issue?.issueId ?? 0, orderId: counter.orderId, reason: "the guest has a receipt" };
    await world.ask(issueMessages.attributeIssue, asked);
    expect(await counter.order()).toMatchObject({
      status: "paid",
      transaction: { reference: issue?.providerReference },
    });
    await waitFor("no unclear collection", async () => (await counter.state()).unclearCollections.length === 0);
    expect(await counter.issues()).toHaveLength(1);
  });

  test("a payment for a changed order: the seam refuses it, and the cashier settles it after a correction", async () => {
    const counter = await openCounter("never_pays");
    const intentId = await counter.collect(LIFETIME_MS);
    const intent = await counter.presented(intentId);
    const { place, orderId } = counter;
    // The change is written past the service, so that the station does not receive it and does not end the collection.
    const change = (totalMinor: number) =>
      world.database`update orders set total_minor = ${totalMinor}, revision = revision + 1 where order_id = ${orderId}`;
    await change(1300);
    await fetch(intent.provider?.qrPayload ?? "", { method: "POST", body: "decision=approve" });
    const [issue] = await waitFor("an issue", async () => {
      const issues = await counter.issues();
      return issues.length > 0 && issues;
    });
    expect(issue).toMatchObject({ kind: "settlement_refused", intentId });
    await waitFor("the notice of the issue", async () => {
      const [notice] = await world.database<{ outcome: string | null }[]>`
        select outcome from provider_tasks where intent_id = ${intentId} and kind = 'differ'`;
      return notice?.outcome === "notified";
    });
    expect((await counter.state()).intent).toMatchObject({ status: "processing", moneyMayHaveMoved: "" });
    expect((await counter.order()).status).toBe("open");
    await change(Number(intent.amountMinor));
    const { reply } = await counter.act({ type: "intent_attest", intentId });
    expect(reply).toMatchObject({ ok: true, status: "succeeded" });
    expect(await counter.order()).toMatchObject({ status: "paid", transaction: { intentId } });
    // The operator cannot use the same payment again, neither before nor after the issue closes automatically.
    const other = await world.ask(openOrder, {
      caller: place.cashier,
      stationId: place.stationId,
      lines: [{ name: "Soup", quantity: 1, unitAmountMinor: intent.amountMinor }],
    });
    const asked = { caller: place.operator, issueId: issue?.issueId ?? 0, orderId: other.order.orderId, reason: "x" };
    await expect(world.ask(issueMessages.attributeIssue, asked)).rejects.toMatchObject({
      refusal: { code: "conflict" },
    });
    const [closed] = await waitFor("the issue is closed", async () => {
      const issues = await counter.issues();
      return issues[0]?.status === "closed" && issues;
    });
    const { transaction } = await counter.order();
    expect(closed).toMatchObject({ transactionId: transaction?.transactionId, resolvedBy: null });
    await expect(world.ask(issueMessages.attributeIssue, asked)).rejects.toMatchObject({
      refusal: { code: "conflict" },
    });
  });
});
