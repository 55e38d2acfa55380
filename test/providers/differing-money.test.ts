/** Differing reports about one payment: later, under an old event id, or with unreadable fields. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withdrawProviderPayment } from "../../services/bus/messages/provider-payments.ts";
import { waitFor } from "../support/wait-for.ts";
import { paidBody } from "./emvco-callback.ts";
import { type Scene, Scenes } from "./emvco-scene.ts";
import { type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const signed = async (scene: Scene, body: string): Promise<string> => {
  const first = await scenes.send(scene, body);
  expect(first.status, body).toBe(200);
  expect(JSON.parse(first.body), body).toMatchObject({ received: true });
  expect(await scenes.send(scene, body), body).toEqual(first);
  return first.body;
};

describe("a signed callback that cannot be read in full", () => {
  test.each([
    ["a reference of null", "unmatched_money", { reference: null }],
    ["an amount that is a number", "amount_unknown", { amount: 12.5 }],
    ["a transaction id that is a number", "reference_mismatch", { transaction_id: 5 }],
    ["a transaction id beyond its bound", "reference_mismatch", { transaction_id: "x".repeat(129) }],
    ["a reference beyond its bound", "unmatched_money", { reference: "r".repeat(201) }],
    ["an unknown currency", "currency_mismatch", { currency: "eurodollars" }],
    ["a currency in small letters", "currency_mismatch", { currency: "eur" }],
    ["an empty currency", "currency_mismatch", { currency: "" }],
    ["an account that is a number", "account_mismatch", { merchant_id: 5 }],
  ] as const)("with %s: it is recorded, and raises an issue with the provider's text", async (_, kind, more) => {
    const scene = await scenes.open();
    const body = paidBody(scenes.money(scene, more));
    await signed(scene, body);
    const issue = await scenes.onlyIssueOf(scene.place);
    expect(issue).toMatchObject({ kind, intentId: kind === "unmatched_money" ? null : scene.intent.intentId });
    expect(JSON.parse(issue.evidence["said"] as string)).toEqual({ ...scenes.money(scene), ...more });
    const { currency } = issue.evidence["asserted"] as { currency: string | null };
    for (const each of [issue.currency, currency]) expect(each === null || /^[A-Z]{3}$/.test(each)).toBe(true);
    const [kept] = await world.database<{ body: Uint8Array }[]>`
      select body from provider_callbacks where config_id = ${scene.configId}`;
    expect(Buffer.from(kept?.body ?? []).toString()).toBe(body);
    expect(await scenes.salesOf(scene.intent)).toEqual([]);
  });

  test.each([
    "no json",
    "[]",
    '"text"',
    '{"id":"x"}',
    '{"type":7,"data":{"amount":"12.50"}}',
    '{"id":"z","type":"payment.paid","data":{"amount":"1\\u0000"}}',
    "\u0000\u0001",
  ])("with the body %j: it raises an issue with this text as evidence", async (body) => {
    const scene = await scenes.open();
    await signed(scene, body);
    expect(await scenes.onlyIssueOf(scene.place)).toMatchObject({
      kind: "unmatched_money",
      amountMinor: null,
      currency: null,
      evidence: { said: body.replaceAll("\u0000", "\uFFFD") },
    });
  });

  test.each(["null", "5", '"x"', "[1]", '{"reference":7}'])(
    "of an unknown kind with the data %s: it is accepted, and raises no issue",
    async (data) => {
      const scene = await scenes.open();
      await signed(scene, `{"id":${data === "5" ? "5" : '"k"'},"type":"payment.scanned","data":${data}}`);
      await signed(scene, `{"id":"long","type":"${"t".repeat(200)}"}`);
      expect(await scenes.issuesOf(scene.place)).toEqual([]);
    },
  );

  test("with an amount of too many decimals: an attribution is refused, because the amount is unknown", async () => {
    const scene = await scenes.open({ currency: "BHD" });
    await scenes.pay(scene, { amount: "1.234", currency: "BHD" });
    const issue = await scenes.onlyIssueOf(scene.place);
    expect(issue).toMatchObject({ kind: "amount_unknown", amountMinor: null, currency: "BHD" });
    expect(JSON.parse(issue.evidence["said"] as string)).toMatchObject({ amount: "1.234" });
    const order = await world.openIntent(scene.place, 1250);
    const { detail } = await refusalOf(scenes.attribute(scene.place, issue, order));
    expect(detail).toBe("How much this money is cannot be read from what the provider has sent; see the evidence.");
  });
});

describe("one payment with differing reports", () => {
  test.each([
    ["amount_over", { amount: "50.00" }],
    ["currency_mismatch", { currency: "USD" }],
    ["account_mismatch", { merchant_id: "M-2" }],
  ] as const)(
    "after settlement: a differing report raises %s, and a repeated correct report changes nothing",
    async (kind, more) => {
      const scene = await scenes.open();
      await scenes.pay(scene);
      await scenes.paid(scene);
      await scenes.pay(scene);
      expect(await scenes.issuesOf(scene.place)).toEqual([]);
      await scenes.pay(scene, more);
      const issue = await scenes.onlyIssueOf(scene.place);
      expect(issue).toMatchObject({ kind, status: "open", intentId: scene.intent.intentId });
      expect(await scenes.salesOf(scene.intent)).toHaveLength(1);
      const order = await world.openIntent(scene.place, 1250);
      expect((await refusalOf(scenes.attribute(scene.place, issue, order))).code).toBe("conflict");
    },
  );

  test("two amounts before settlement: the issue has each once, up to a bound, and is not attributed", async () => {
    const scene = await scenes.open();
    for (const amount of ["5.00", "50.00", "5.00", "50.00"]) await scenes.pay(scene, { amount });
    const issue = await scenes.onlyIssueOf(scene.place);
    expect(issue).toMatchObject({ kind: "amount_under", amountMinor: "500" });
    expect(issue.evidence["further"]).toMatchObject([
      { same_amount: false, said: expect.stringContaining("50.00") as string },
    ]);
    const order = await world.openIntent(scene.place, 500);
    const { detail } = await refusalOf(scenes.attribute(scene.place, issue, order));
    expect(detail).toBe("The provider has reported different amounts or accounts for this money; see the evidence.");
    for (let cents = 10; cents < 30; cents += 1) await scenes.pay(scene, { amount: `6.${cents}` });
    expect((await scenes.onlyIssueOf(scene.place)).evidence["further"]).toHaveLength(8);
  });
});

describe("an event id that is sent again with another body", () => {
  test("a payment instead of a pending one: the answer is the first one, and the payment is only an issue", async () => {
    const scene = await scenes.open();
    const pending = JSON.stringify({ id: "same", type: "payment.pending", data: { reference: scene.reference } });
    const first = await scenes.send(scene, pending);
    const paid = paidBody(scenes.money(scene), "same");
    const answers = await Promise.all(Array.from({ length: 10 }, () => scenes.send(scene, paid)));
    expect(new Set([first, ...answers].map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(await scenes.onlyIssueOf(scene.place)).toMatchObject({
      kind: "reference_mismatch",
      status: "open",
      intentId: scene.intent.intentId,
      amountMinor: "1250",
    });
    expect(await scenes.salesOf(scene.intent)).toEqual([]);
    const variants = await world.database`
      select v.outcome from provider_callback_variants v join provider_callbacks using (callback_id)
      where config_id = ${scene.configId}`;
    expect(variants).toHaveLength(1);
    expect(await scenes.send(scene, pending)).toEqual(first);
  });

  test("a settled payment: the same amount changes nothing, and another amount is an issue", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, {}, "once");
    await scenes.paid(scene);
    await scenes.pay(scene, { note: "again" }, "once");
    expect(await scenes.issuesOf(scene.place)).toEqual([]);
    await scenes.pay(scene, { amount: "99.00" }, "once");
    expect(await scenes.onlyIssueOf(scene.place)).toMatchObject({ kind: "amount_over" });
  });
});

describe("the station of an intent with an issue", () => {
  test("receives each issue, and provider_cleared only after the last issue is resolved", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { amount: "9.00" });
    expect(await scenes.taskEnd(scene.intent, "differ")).toBe("notified");
    expect(world.stations.about(scene.intent.intentId)[0]).toMatchObject({
      actor: { kind: "provider", id: scene.configId },
      command: { type: "provider_money_differs", intentId: scene.intent.intentId, issue: "amount_under" },
    });
    // A second payment differs too. Then the provider reports that the payment has expired.
    await scenes.pay(scene, { transaction_id: "T-other", merchant_id: "M-2" });
    world.stations.answer(scene.intent.intentId, "provider_failed", {
      ok: false,
      code: "intent_not_actionable",
      status: "expired",
    });
    const expired = JSON.stringify({ id: "e", type: "payment.expired", data: { reference: scene.reference } });
    expect((await scenes.send(scene, expired)).status).toBe(200);
    expect(await scenes.taskEnd(scene.intent, "clear")).toBe("issue_open");
    const [second, first] = await scenes.issuesOf(scene.place);
    if (first === undefined || second === undefined) throw new Error("There are no two issues.");
    await waitFor(
      "both notices",
      () => scenes.commandTypes(scene.intent).filter((type) => type === "provider_money_differs").length === 2,
    );
    await scenes.close(scene.place, first);
    await delay(300);
    expect(scenes.commandTypes(scene.intent)).not.toContain("provider_cleared");
    const order = await world.openIntent(scene.place, 1250);
    await scenes.attribute(scene.place, second, order);
    await waitFor("the provider's report", () => scenes.commandTypes(scene.intent).includes("provider_cleared"));
    // The station is notified of a new issue.
    await scenes.pay(scene, { transaction_id: "T-third", amount: "8.00" });
    await waitFor("a third notice", () => scenes.commandTypes(scene.intent).at(-1) === "provider_money_differs");
    const ids = world.stations.about(scene.intent.intentId).map(({ commandId }) => commandId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("receives provider_cleared again when the first one came before its intent had ended", async () => {
    const place = await world.openPlace();
    const configId = await world.addSandboxConfig(place);
    // An amount for which the sandbox provider waits.
    const intent = await world.openIntent(place, 1203);
    expect(await world.askProvider(place, configId, intent)).toMatchObject({ created: true });
    const { intentId } = intent;
    await world.database`
      insert into provider_tasks (intent_id, kind, done_at, outcome) values (${intentId}, 'clear', now(), 'cleared')`;
    await world.ask(withdrawProviderPayment, { intentId });
    await waitFor("the report", () => scenes.commandTypes(intent).includes("provider_cleared"));
  });

  test("receives provider_cleared again when the provider ended the payment before the intent's end was reported", async () => {
    const place = await world.openPlace();
    const intent = await world.openIntent(place, 1203);
    expect(await world.askProvider(place, await world.addSandboxConfig(place), intent)).toMatchObject({
      created: true,
    });
    const { intentId } = intent;
    await world.database`
      update provider_payments set expires_at = now() - interval '10 seconds' where intent_id = ${intentId}`;
    await world.database`update provider_tasks set due_at = now() where intent_id = ${intentId}`;
    expect(await scenes.taskEnd(intent, "clear")).toBe("cleared");
    await world.ask(withdrawProviderPayment, { intentId });
    await waitFor(
      "the report",
      () => scenes.commandTypes(intent).filter((type) => type === "provider_cleared").length === 2,
    );
  });

  test("is notified of late money", async () => {
    const scene = await scenes.open();
    world.stations.answer(scene.intent.intentId, "provider_confirm", {
      ok: false,
      code: "intent_not_actionable",
      status: "cancelled",
    });
    await scenes.pay(scene);
    expect(await scenes.taskEnd(scene.intent, "differ")).toBe("notified");
    expect(scenes.commandTypes(scene.intent)).toEqual(["provider_confirm", "provider_money_differs"]);
  });

  test.each([
    ["does not know the intent any more", { ok: false, code: "intent_unknown" }, {}],
    ["collects until then, and its issue is closed", { ok: true, type: "accepted" }, { amount: "9.00" }],
  ] as const)("receives provider_cleared, also when it %s", async (_, reply, more) => {
    const scene = await scenes.open();
    if ("amount" in more) {
      await scenes.pay(scene, more);
      await scenes.close(scene.place, await scenes.onlyIssueOf(scene.place));
    }
    world.stations.answer(scene.intent.intentId, "provider_failed", reply);
    const expired = JSON.stringify({ id: "e", type: "payment.expired", data: { reference: scene.reference } });
    expect((await scenes.send(scene, expired)).status).toBe(200);
    await waitFor("the provider's report", () => scenes.commandTypes(scene.intent).includes("provider_cleared"));
  });
});
