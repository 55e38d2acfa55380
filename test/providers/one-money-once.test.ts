/** A payment settles one order, with any reports of its provider and any simultaneous actions of operators. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { moneyKey, moneyName, settleIntent } from "../../services/bus/messages/intents.ts";
import { resolveIssue } from "../../services/issues/sql/issues.ts";
import { lockSettledMoney } from "../../services/providers/sql/payments.ts";
import { isLockAwaited } from "../support/held-locks.ts";
import { waitFor } from "../support/wait-for.ts";
import { paidBody } from "./emvco-callback.ts";
import { Scenes } from "./emvco-scene.ts";
import { type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

describe("a payment that has settled", () => {
  test("its earlier issue cannot be attributed", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { reference: "UNKNOWN" });
    await scenes.pay(scene);
    await scenes.paid(scene);
    const issue = await scenes.onlyIssueOf(scene.place);
    const other = await world.openIntent(scene.place, 1250);
    const refusal = await refusalOf(scenes.attribute(scene.place, issue, other));
    expect(refusal).toEqual({
      code: "conflict",
      reason: "money_has_paid",
      detail: `This money has paid order ${scene.intent.orderId}.`,
    });
    expect(await scenes.salesOf(other)).toEqual([]);
    const name = moneyName(`T-${scene.intent.intentId}`, "");
    expect(await scenes.salesOf(scene.intent)).toMatchObject([{ money_key: moneyKey({ ...scene, name }) }]);
  });

  test("its account_mismatch issue at another intent cannot be attributed", async () => {
    const first = await scenes.open();
    await scenes.pay(first, { merchant_id: "M-2", transaction_id: "TXB" });
    const second = await scenes.open(first);
    await scenes.pay(second, { transaction_id: "TXB" });
    await scenes.paid(second);
    const issue = await scenes.onlyIssueOf(first.place);
    expect((await refusalOf(scenes.attribute(first.place, issue, first.intent))).code).toBe("conflict");
    expect(await scenes.salesOf(first.intent)).toEqual([]);
  });

  test("its station has not answered yet: its issue cannot be attributed", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { amount: "7.00" });
    world.stations.answer(scene.intent.intentId, "provider_confirm", "silence");
    await scenes.pay(scene);
    const issue = await scenes.onlyIssueOf(scene.place);
    const other = await world.openIntent(scene.place, 700);
    expect((await refusalOf(scenes.attribute(scene.place, issue, other))).code).toBe("conflict");
    // This is also true after the time in which cashiers can settle it.
    await world.database`
      update provider_payments set expires_at = now() - interval '1 day' where intent_id = ${scene.intent.intentId}`;
    const refusal = await refusalOf(scenes.attribute(scene.place, issue, other));
    expect(refusal).toMatchObject({ code: "conflict", reason: "money_may_settle" });
    expect(await scenes.salesOf(other)).toEqual([]);
  });

  test("it is confirmed after it has paid another order: duplicate_money", async () => {
    const scene = await scenes.open();
    world.stations.answer(scene.intent.intentId, "provider_confirm", { ok: false, code: "money_already_used" });
    await scenes.pay(scene);
    expect(await scenes.onlyIssueOf(scene.place)).toMatchObject({
      kind: "duplicate_money",
      intentId: scene.intent.intentId,
      evidence: { station: { code: "money_already_used" } },
    });
  });

  test("it is asserted for another intent: an issue of that intent, and its station gets no confirmation", async () => {
    const first = await scenes.open();
    await scenes.pay(first, { transaction_id: "TWICE" });
    await scenes.paid(first);
    const second = await scenes.open(first);
    await scenes.pay(second, { transaction_id: "TWICE" });
    expect(await scenes.onlyIssueOf(first.place)).toMatchObject({
      kind: "reference_mismatch",
      intentId: second.intent.intentId,
    });
    expect(await scenes.taskEnd(second.intent, "differ")).toBe("notified");
    expect(scenes.commandTypes(second.intent)).toEqual(["provider_money_differs"]);
    expect(await scenes.salesOf(second.intent)).toEqual([]);
  });

  test("it is asserted with another reference than at its creation: settles nothing", async () => {
    const scene = await scenes.open();
    await world.database`
      update provider_payments set provider_reference = 'MADE-AS' where intent_id = ${scene.intent.intentId}`;
    await scenes.pay(scene, { transaction_id: "PAID-AS" });
    expect(await scenes.onlyIssueOf(scene.place)).toMatchObject({
      kind: "reference_mismatch",
      providerReference: "PAID-AS",
    });
    expect(await scenes.salesOf(scene.intent)).toEqual([]);
    await scenes.pay(scene, { transaction_id: "MADE-AS" });
    await scenes.paid(scene);
  });

  test("it is attributed and asserted with matching fields at the same time: one order is paid", async () => {
    const place = await world.openPlace();
    const configId = await scenes.openConfig(place);
    await Promise.all(
      Array.from({ length: 12 }, async (_, nth) => {
        const scene = await scenes.open({ place, configId });
        const transaction_id = `RACE-${nth}`;
        await scenes.pay(scene, { reference: `UNKNOWN-${nth}`, transaction_id });
        const issue = (await scenes.issuesOf(place)).find((each) => each.providerReference === transaction_id);
        if (issue === undefined) throw new Error("There is no issue.");
        const other = await world.openIntent(place, 1250);
        const attributed = scenes.attribute(place, issue, other).catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, nth * 2));
        await Promise.all([attributed, scenes.pay(scene, { transaction_id })]);
        const sales = await waitFor("the paid order", async () => {
          const both = [...(await scenes.salesOf(scene.intent)), ...(await scenes.salesOf(other))];
          return both.length > 0 && both;
        });
        expect(sales).toHaveLength(1);
      }),
    );
  });

  test("it has no reference: settles nothing and cannot be attributed", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { transaction_id: "" });
    const { transaction_id: _, ...unnamed } = scenes.money(scene);
    expect((await scenes.send(scene, paidBody(unnamed))).status).toBe(200);
    const issues = await scenes.issuesOf(scene.place);
    expect(issues.map(({ kind, intentId }) => [kind, intentId])).toEqual([
      ["reference_mismatch", scene.intent.intentId],
      ["reference_mismatch", scene.intent.intentId],
    ]);
    expect(await scenes.salesOf(scene.intent)).toEqual([]);
    const other = await world.openIntent(scene.place, 1250);
    for (const issue of issues)
      expect((await refusalOf(scenes.attribute(scene.place, issue, other))).detail).toContain("no reference");
  });
});

describe("a payment and its order", () => {
  test("a sandbox payment pays no real order, and a real payment no order of a sandbox station", async () => {
    for (const [mode, isSandbox] of [
      ["test", false],
      ["live", true],
    ] as const) {
      const place = await world.openPlace({ isSandbox });
      const configId = await scenes.openConfig(place, mode);
      const data = {
        reference: "UNKNOWN",
        transaction_id: `P-${mode}`,
        merchant_id: "M-1",
        amount: "12.50",
        currency: "EUR",
      };
      expect((await scenes.send({ configId }, paidBody(data))).status).toBe(200);
      const order = await world.openIntent(place, 1250);
      const refusal = await refusalOf(scenes.attribute(place, await scenes.onlyIssueOf(place), order));
      expect(refusal).toMatchObject({ code: "conflict", detail: expect.stringContaining("The money is") as string });
      expect(await scenes.salesOf(order)).toEqual([]);
    }
  });

  test("a payment at one filial's account pays no order of another filial", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { reference: "UNKNOWN" });
    const [{ station_id: stationId }] = await world.database<[{ station_id: number }]>`
      with f as (insert into filials (organization_id, name) values (${scene.place.organizationId}, 'Other') returning filial_id)
      insert into stations (organization_id, filial_id, name, currency, sandbox)
      select ${scene.place.organizationId}, filial_id, 'Counter', 'EUR', true from f returning station_id`;
    const order = await world.openIntent({ ...scene.place, stationId }, 1250);
    const refusal = await refusalOf(scenes.attribute(scene.place, await scenes.onlyIssueOf(scene.place), order));
    expect(refusal).toEqual({
      code: "conflict",
      reason: "other_filial",
      detail: "The money went to the account of another filial.",
    });
    expect(await scenes.salesOf(order)).toEqual([]);
  });

  test("an order that is being collected is not paid by an attribution", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { reference: "UNKNOWN" });
    const issue = await scenes.onlyIssueOf(scene.place);
    const order = await world.openIntent(scene.place, 1250);
    world.stations.answerOrder(order.orderId, { ok: false, code: "collection_active", status: "presented" });
    const refusal = await refusalOf(scenes.attribute(scene.place, issue, order));
    expect(refusal).toMatchObject({ code: "conflict", detail: expect.stringContaining("being collected") as string });
    world.stations.answerOrder(order.orderId, { ok: true, type: "accepted" });
    expect((await scenes.attribute(scene.place, issue, order)).issue.status).toBe("attributed");
  });
});

describe("a closed payment", () => {
  test("its station has not answered: the issue cannot be closed until the payment has settled", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { amount: "12.51" });
    const issue = await scenes.onlyIssueOf(scene.place);
    world.stations.answer(scene.intent.intentId, "provider_confirm", "silence");
    await scenes.pay(scene);
    expect((await refusalOf(scenes.close(scene.place, issue))).code).toBe("conflict");
    const { orderId } = scene.intent;
    world.stations.answer(scene.intent.intentId, "provider_confirm", { ok: true, type: "accepted" });
    await scenes.taskEnd(scene.intent, "confirm");
    // The test's station only answers. A real station would have called the seam, so the test calls it.
    await world.database`
      select settle_intent(${scene.intent.intentId}, 'confirm', ${scene.place.stationId}, ${orderId}, 'dynamic_qr', 1250,
        'EUR', 'T', 0, ${moneyKey({ ...scene, name: moneyName(issue.providerReference, "") })})`;
    expect((await scenes.close(scene.place, issue)).issue.status).toBe("closed");
  });

  test("it is asserted with matching fields afterwards: settles nothing", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { amount: "12.51" });
    const issue = await scenes.onlyIssueOf(scene.place);
    await scenes.close(scene.place, issue);
    await scenes.pay(scene);
    const after = await scenes.onlyIssueOf(scene.place);
    expect(after).toMatchObject({ status: "closed", evidence: { further: [{ same_amount: false }] } });
    expect(await scenes.salesOf(scene.intent)).toEqual([]);
    expect(scenes.commandTypes(scene.intent)).not.toContain("provider_confirm");
  });

  test("its other issue cannot be attributed, and further reports raise no new issue", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { reference: "UNKNOWN" });
    await scenes.pay(scene, { merchant_id: "M-2" });
    const [mismatch, unmatched] = await scenes.issuesOf(scene.place);
    if (mismatch === undefined || unmatched === undefined) throw new Error("There are no two issues.");
    await scenes.close(scene.place, unmatched);
    const order = await world.openIntent(scene.place, 1250);
    const refusal = await refusalOf(scenes.attribute(scene.place, mismatch, order));
    expect(refusal.detail).toBe(`This money was dealt with and closed as issue ${unmatched.issueId}.`);
    await scenes.pay(scene, { currency: "USD" });
    expect(await scenes.issuesOf(scene.place)).toHaveLength(2);
  });
});

describe("a settlement and a closing of the same payment at once", () => {
  /** The station has refused the payment, and its collection is over, so that the issue can be closed. */
  async function openRefused() {
    const scene = await scenes.open();
    const { intentId, orderId, amountMinor, currency } = scene.intent;
    world.stations.answer(intentId, "provider_confirm", { ok: false, code: "order_changed" });
    await scenes.pay(scene);
    expect(await scenes.taskEnd(scene.intent, "confirm")).toBe("settlement_refused");
    await world.database`
      update provider_payments set expires_at = now() - interval '1 day' where intent_id = ${intentId}`;
    const issue = await scenes.onlyIssueOf(scene.place);
    const { stationId } = scene.place;
    const name = moneyName(issue.providerReference, "");
    const attested = { attestationId: "attest", reference: "T", attestedBy: 0, moneyKey: moneyKey({ ...scene, name }) };
    const request = { intentId, stationId, orderId, amountMinor, currency, route: "dynamic_qr", ...attested } as const;
    return { scene, issue, name, request };
  }

  /** Asks the service for something that must wait for the open transaction. */
  async function waiting<T>(ask: () => Promise<T>): Promise<{ readonly answer: Promise<T> }> {
    let isAnswered = false;
    const answer = ask().finally(() => {
      isAnswered = true;
    });
    answer.catch(() => undefined);
    await waitFor("the service waits", async () => isAnswered || (await isLockAwaited(world.database)));
    expect(isAnswered).toBe(false);
    return { answer };
  }

  test("the settlement waits for the closing, and settles nothing", async () => {
    const { scene, issue, name, request } = await openRefused();
    const settling = await world.database.begin(async (sql) => {
      await lockSettledMoney(sql, name);
      const asked = await waiting(() => world.ask(settleIntent, request));
      const by = scene.place.operator.userId;
      const closed = { status: "closed", by, reason: "paid back", orderId: null, transactionId: null } as const;
      await resolveIssue(sql, issue.issueId, closed);
      return asked;
    });
    expect(await settling.answer).toEqual({ settled: false, code: "money_already_used" });
    expect(await scenes.salesOf(scene.intent)).toEqual([]);
  });

  test("the closing waits for the settlement, and is refused", async () => {
    const { scene, issue, request } = await openRefused();
    const closing = await world.database.begin(async (sql) => {
      await sql`
        select settle_intent(${request.intentId}, 'attest', ${request.stationId}, ${request.orderId}, 'dynamic_qr',
          ${request.amountMinor}, ${request.currency}, 'T', 0, ${request.moneyKey})`;
      return await waiting(() => refusalOf(scenes.close(scene.place, issue)));
    });
    expect(await closing.answer).toMatchObject({ code: "conflict", reason: "money_has_paid" });
    expect(await scenes.salesOf(scene.intent)).toHaveLength(1);
  });
});
