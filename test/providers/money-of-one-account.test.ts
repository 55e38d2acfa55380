/** A provider payment settles once, also when its merchant account has several configs. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { moneyName } from "../../services/bus/messages/intents.ts";
import { paidBody } from "./emvco-callback.ts";
import { Scenes } from "./emvco-scene.ts";
import { type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";
import { SIBLING_SECRET, SiblingConfigs } from "./sibling-configs.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const siblings = new SiblingConfigs(() => world, scenes);
const replaceConfig = siblings.replace.bind(siblings);
const payBy = siblings.payBy.bind(siblings);

describe("an account with two configs", () => {
  test("a payment that has settled by one config is not attributed by the other", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene);
    await scenes.paid(scene);
    const configId = await replaceConfig(scene);
    const body = paidBody(scenes.money(scene));
    expect((await scenes.send({ configId }, body, SIBLING_SECRET)).status).toBe(200);
    const issue = await scenes.onlyIssueOf(scene.place);
    const order = await world.openIntent(scene.place, 1250);
    expect(await refusalOf(scenes.attribute(scene.place, issue, order))).toEqual({
      code: "conflict",
      reason: "money_has_paid",
      detail: `This money has paid order ${scene.intent.orderId}.`,
    });
    expect(await scenes.salesOf(order)).toEqual([]);
  });

  test("the seam refuses the second settlement; with another account, the same reference pays", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { transaction_id: "EQUAL" });
    await scenes.paid(scene);
    const configId = await replaceConfig(scene);
    const seam = async (): Promise<unknown> => {
      const { intentId, orderId } = await world.openIntent(scene.place, 1250);
      const [answer] = await world.database<{ refusal: string | null }[]>`
        select refusal from settle_intent(${intentId}, 'a', ${scene.place.stationId}, ${orderId}, 'dynamic_qr', 1250, 'EUR',
          'EQUAL', 0, ${`provider:${configId}:${moneyName(" EQUAL ", "")}`})`;
      return answer?.refusal;
    };
    expect(await seam()).toBe("money_already_used");
    await world.database`
      update provider_configs set settings = jsonb_set(settings, '{merchant_account,merchant_id}', '"M-9"')
      where config_id = ${configId}`;
    expect(await seam()).toBeNull();
  });

  test("a payment that was closed at one config settles nothing at the other", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { reference: "UNKNOWN", transaction_id: "BACK" });
    await scenes.close(scene.place, await scenes.onlyIssueOf(scene.place));
    const configId = await replaceConfig(scene);
    const second = await payBy(configId, scene.place, { transaction_id: "BACK" });
    expect(await scenes.taskEnd(second, "differ")).toBe("notified");
    expect(scenes.commandTypes(second)).toEqual(["provider_money_differs"]);
    expect(await scenes.salesOf(second)).toEqual([]);
  });

  test.each([
    ["space around them", "sp", " sp "],
    ["the code points of a letter", "e\u0301", "\u00e9"],
  ])("two references that differ only in %s are the same payment", async (_, first, second) => {
    const scene = await scenes.open();
    await scenes.pay(scene, { transaction_id: first });
    await scenes.paid(scene);
    await scenes.pay(scene, { transaction_id: second });
    await delay(200);
    expect(await scenes.issuesOf(scene.place)).toEqual([]);
    await scenes.pay(scene, { reference: "UNKNOWN", transaction_id: second });
    const order = await world.openIntent(scene.place, 1250);
    const { detail } = await refusalOf(scenes.attribute(scene.place, await scenes.onlyIssueOf(scene.place), order));
    expect(detail).toBe(`This money has paid order ${scene.intent.orderId}.`);
  });
});

describe("a payment that its provider has asserted with another account", () => {
  const elsewhere = { merchant_id: "M-2", transaction_id: "ELSEWHERE" };

  test.each([
    ["account_mismatch", {}, "M-2"],
    ["unmatched_money", { reference: "UNKNOWN" }, "M-2"],
    ["account_mismatch", {}, " M-2 "],
  ])(
    "attributed from an issue %s with %j and the account %j: it settles nothing by that account's config",
    async (kind, more, account) => {
      const scene = await scenes.open();
      await scenes.pay(scene, { ...elsewhere, ...more, merchant_id: account });
      const issue = await scenes.onlyIssueOf(scene.place);
      expect(issue.kind).toBe(kind);
      const order = await world.openIntent(scene.place, 1250);
      await scenes.attribute(scene.place, issue, order);
      expect(await scenes.salesOf(order)).toHaveLength(1);
      const third = await payBy(await replaceConfig(scene, "M-2"), scene.place, elsewhere);
      expect(await scenes.taskEnd(third, "differ")).toBe("notified");
      expect(await scenes.salesOf(third)).toEqual([]);
      expect(scenes.commandTypes(third)).toEqual(["provider_money_differs"]);
    },
  );

  test("closed: it settles nothing at the other account's config", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, elsewhere);
    await scenes.close(scene.place, await scenes.onlyIssueOf(scene.place));
    const third = await payBy(await replaceConfig(scene, "M-2"), scene.place, elsewhere);
    expect(await scenes.taskEnd(third, "differ")).toBe("notified");
    expect(scenes.commandTypes(third)).toEqual(["provider_money_differs"]);
    expect(await scenes.salesOf(third)).toEqual([]);
  });

  test("settled at the other account's config: it is not attributed here", async () => {
    const scene = await scenes.open();
    const configId = await replaceConfig(scene, "M-2");
    const third = await payBy(configId, scene.place, elsewhere);
    await scenes.paid({ ...scene, intent: third });
    await scenes.pay(scene, elsewhere);
    const order = await world.openIntent(scene.place, 1250);
    const refusal = await refusalOf(scenes.attribute(scene.place, await scenes.onlyIssueOf(scene.place), order));
    expect(refusal).toEqual({
      code: "conflict",
      reason: "money_has_paid",
      detail: `This money has paid order ${third.orderId}.`,
    });
    expect(await scenes.salesOf(order)).toEqual([]);
  });

  test.each([
    ["and then with the correct one", true],
    ["after the correct one", false],
  ])("%s: it settles once, and the seam refuses it at the other account's config", async (_, isBefore) => {
    const scene = await scenes.open();
    const right = { transaction_id: "ELSEWHERE" };
    await scenes.pay(scene, isBefore ? elsewhere : right);
    await scenes.pay(scene, isBefore ? right : elsewhere);
    await scenes.paid(scene);
    const configId = await replaceConfig(scene, "M-2");
    const third = await payBy(configId, scene.place, elsewhere);
    expect(await scenes.taskEnd(third, "differ")).toBe("notified");
    expect(await scenes.salesOf(third)).toEqual([]);
    expect(await siblings.askSeam({ place: scene.place, configId }, third, "ELSEWHERE")).toBe("money_already_used");
  });

  test("with two other accounts: after an attribution, it settles nothing at either", async () => {
    const scene = await scenes.open();
    for (const account of ["M-2", "M-3"]) await scenes.pay(scene, { ...elsewhere, merchant_id: account });
    const order = await world.openIntent(scene.place, 1250);
    await scenes.attribute(scene.place, await scenes.onlyIssueOf(scene.place), order);
    const third = await payBy(await replaceConfig(scene, "M-3"), scene.place, { ...elsewhere, merchant_id: "M-3" });
    expect(await scenes.taskEnd(third, "differ")).toBe("notified");
    expect(await scenes.salesOf(third)).toEqual([]);
  });
});

describe("reported amounts of a payment", () => {
  test("another amount: no attribution, also when the evidence has reached its bound", async () => {
    const scene = await scenes.open();
    const asserted = { reference: "UNKNOWN", amount: "19.00" };
    for (let nth = 0; nth < 10; nth += 1) await scenes.pay(scene, { ...asserted, nth });
    await scenes.pay(scene, { ...asserted, amount: "99.00" });
    const issue = await scenes.onlyIssueOf(scene.place);
    expect(issue.evidence["further"]).toHaveLength(8);
    expect(JSON.stringify(issue.evidence)).not.toContain("99.00");
    const order = await world.openIntent(scene.place, 1900);
    const { code, detail } = await refusalOf(scenes.attribute(scene.place, issue, order));
    expect([code, detail]).toEqual([
      "conflict",
      "The provider has reported different amounts or accounts for this money; see the evidence.",
    ]);
    expect(await scenes.salesOf(order)).toEqual([]);
  });

  test("another amount in another issue: no attribution", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { reference: "UNKNOWN", amount: "19.00" });
    await scenes.pay(scene, { amount: "25.00" });
    const issues = await scenes.issuesOf(scene.place);
    const unmatched = issues.find(({ kind }) => kind === "unmatched_money");
    if (unmatched === undefined || issues.length !== 2) throw new Error("There are no two issues.");
    const order = await world.openIntent(scene.place, 1900);
    const { code, detail } = await refusalOf(scenes.attribute(scene.place, unmatched, order));
    expect([code, detail]).toEqual([
      "conflict",
      "The provider has reported different amounts or accounts for this money; see the evidence.",
    ]);
  });

  test("another amount in a later issue that began with the same amount: no attribution", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { reference: "UNKNOWN", amount: "19.00" });
    await scenes.pay(scene, { amount: "19.00" });
    await scenes.pay(scene, { amount: "25.00" });
    const unmatched = (await scenes.issuesOf(scene.place)).find(({ kind }) => kind === "unmatched_money");
    if (unmatched === undefined) throw new Error("There is no issue.");
    const order = await world.openIntent(scene.place, 1900);
    const refusal = await refusalOf(scenes.attribute(scene.place, unmatched, order));
    expect(refusal).toMatchObject({ code: "conflict", reason: "amount_contradicted" });
    expect(await scenes.salesOf(order)).toEqual([]);
  });

  test.each([
    ["with an unknown reference", { reference: "UNKNOWN" }],
    ["of a registered intent", { amount: "11.00" }],
  ])("another amount of a payment %s, after its attribution: a new issue", async (_, more) => {
    const scene = await scenes.open();
    const amount = "amount" in more ? more.amount : "12.50";
    await scenes.pay(scene, { ...more, amount });
    const order = await world.openIntent(scene.place, amount === "12.50" ? 1250 : 1100);
    await scenes.attribute(scene.place, await scenes.onlyIssueOf(scene.place), order);
    await scenes.pay(scene, { ...more, amount });
    expect(await scenes.issuesOf(scene.place)).toHaveLength(1);
    for (const nth of [1, 2]) await scenes.pay(scene, { ...more, amount: "99.00", nth });
    const issues = await scenes.issuesOf(scene.place);
    expect(issues.map(({ kind, status, amountMinor }) => [kind, status, amountMinor])).toEqual([
      ["amount_over", "open", "9900"],
      [expect.any(String), "attributed", amount.replace(".", "")],
    ]);
    const other = await world.openIntent(scene.place, 9900);
    const [open] = issues;
    if (open === undefined) throw new Error("There is no issue.");
    expect((await refusalOf(scenes.attribute(scene.place, open, other))).code).toBe("conflict");
  });
});
