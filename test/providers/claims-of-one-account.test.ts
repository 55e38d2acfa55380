/** A payment settles once only, also when several configs have its merchant account or a config has moved to another one. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StationReply } from "../../machines/station/reply.ts";
import { waitFor } from "../support/wait-for.ts";
import { Scenes } from "./emvco-scene.ts";
import { type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";
import { SiblingConfigs } from "./sibling-configs.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
const siblings = new SiblingConfigs(() => world, scenes);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

describe("a payment that an intent has claimed at one config", () => {
  test.each(["close", "attribute"] as const)(
    "an attempt to %s it at the other config before its station has answered: refused",
    async (how) => {
      const scene = await scenes.open();
      const { place, intent } = scene;
      world.stations.answer(intent.intentId, "provider_confirm", "silence");
      await scenes.pay(scene);
      const issue = await siblings.notifyUnmatched(scene, await siblings.replace(scene));
      const order = await world.openIntent(place, 1250);
      const asked = how === "close" ? scenes.close(place, issue) : scenes.attribute(place, issue, order);
      expect(await refusalOf(asked)).toEqual({
        code: "conflict",
        reason: "money_may_settle",
        detail: "The station is just being notified of this money; try again in a moment.",
      });
      expect(await scenes.salesOf(order)).toEqual([]);
    },
  );

  test.each(["close", "attribute"] as const)(
    "an attempt to %s it at the other config while the cashier may settle it: refused",
    async (how) => {
      const scene = await scenes.open();
      const { place, intent } = scene;
      world.stations.answer(intent.intentId, "provider_confirm", { ok: false, code: "order_changed" });
      await scenes.pay(scene);
      expect(await scenes.taskEnd(intent, "confirm")).toBe("settlement_refused");
      const issue = await siblings.notifyUnmatched(scene, await siblings.replace(scene));
      const order = await world.openIntent(place, 1250);
      const asked = () => (how === "close" ? scenes.close(place, issue) : scenes.attribute(place, issue, order));
      expect(await refusalOf(asked())).toMatchObject({ reason: "money_may_settle" });
      // When the collection has ended, only an operator may settle the payment.
      await world.database`
      update provider_payments set expires_at = now() - interval '1 hour' where intent_id = ${intent.intentId}`;
      expect((await asked()).issue.status).toBe(how === "close" ? "closed" : "attributed");
    },
  );

  test("its duplicate_money issue at another intent: not closed while the first cashier may settle the payment", async () => {
    const scene = await scenes.open();
    world.stations.answer(scene.intent.intentId, "provider_confirm", { ok: false, code: "order_changed" });
    await scenes.pay(scene, { transaction_id: "TAKEN" });
    await scenes.taskEnd(scene.intent, "confirm");
    const other = await scenes.open(scene);
    await scenes.pay(other, { transaction_id: "OWN" });
    await scenes.paid(other);
    await scenes.pay(other, { transaction_id: "TAKEN" });
    const issues = await scenes.issuesOf(scene.place);
    const duplicate = issues.find(({ kind }) => kind === "duplicate_money");
    if (duplicate === undefined) throw new Error("There is no duplicate_money.");
    expect(await refusalOf(scenes.close(scene.place, duplicate))).toMatchObject({ reason: "money_may_settle" });
  });
});

test.each(["its own config", "the sibling of its config"])(
  "a payment that the seam has refused pays another order by an issue at %s: the first issue can only be closed",
  async (where) => {
    const scene = await scenes.open();
    const { place, intent } = scene;
    world.stations.answer(intent.intentId, "provider_confirm", { ok: false, code: "order_changed" });
    await scenes.pay(scene);
    expect(await scenes.taskEnd(intent, "confirm")).toBe("settlement_refused");
    const refused = await scenes.onlyIssueOf(place);
    await world.database`
      update provider_payments set expires_at = now() - interval '1 hour' where intent_id = ${intent.intentId}`;
    if (where === "its own config") await scenes.pay(scene, { reference: "UNKNOWN" });
    else await siblings.notifyUnmatched(scene, await siblings.replace(scene));
    const other = (await scenes.issuesOf(place)).find(({ issueId }) => issueId !== refused.issueId);
    if (other === undefined) throw new Error("There is no other issue.");
    const order = await world.openIntent(place, 1250);
    await scenes.attribute(place, other, order);
    expect(await refusalOf(scenes.attribute(place, refused, await world.openIntent(place, 1250)))).toMatchObject({
      reason: "money_has_paid",
    });
    expect((await scenes.close(place, refused)).issue.status).toBe("closed");
    expect(await scenes.salesOf(order)).toHaveLength(1);
  },
);

test("a payment that an intent has claimed: an issue at the sibling cannot use it, before and after settlement", async () => {
  const scene = await scenes.open();
  const station = Promise.withResolvers<StationReply>();
  world.stations.answer(scene.intent.intentId, "provider_confirm", () => station.promise);
  await scenes.pay(scene, { transaction_id: "OLD" });
  const issue = await siblings.notifyUnmatched(scene, await siblings.replace(scene), { transaction_id: "OLD" });
  // The station has not answered yet.
  expect(await refusalOf(scenes.close(scene.place, issue))).toMatchObject({ reason: "money_may_settle" });
  expect(await siblings.askSeam(scene, scene.intent, "OLD")).toBeNull();
  station.resolve({ ok: true, type: "accepted" });
  expect(await scenes.taskEnd(scene.intent, "confirm")).toBe("settled");
  const order = await world.openIntent(scene.place, 1250);
  expect(await refusalOf(scenes.attribute(scene.place, issue, order))).toMatchObject({ reason: "money_has_paid" });
  expect(await scenes.salesOf(order)).toEqual([]);
});

test("one issue is attributing a payment: another issue of the same payment cannot be closed", async () => {
  const scene = await scenes.open();
  await scenes.pay(scene, { reference: "UNKNOWN", transaction_id: "TWICE" });
  const first = await scenes.onlyIssueOf(scene.place);
  const second = await siblings.notifyUnmatched(scene, await siblings.replace(scene), { transaction_id: "TWICE" });
  await world.database`
    update issues set attribution = '{}', attributed_since = now() where issue_id = ${first.issueId}`;
  expect(await refusalOf(scenes.close(scene.place, second))).toMatchObject({ reason: "attribution_under_way" });
  await world.database`
    update issues set attribution = null, attributed_since = null where issue_id = ${first.issueId}`;
  expect((await scenes.close(scene.place, second)).issue.status).toBe("closed");
});

test("a payment closed at another account's config: refused here with the closed issue's id", async () => {
  const scene = await scenes.open();
  const { place } = scene;
  const transaction_id = "LED";
  await scenes.pay(scene, { transaction_id, merchant_id: "M-2" });
  const atOther = await siblings.replace(scene, "M-2");
  const closed = await siblings.notifyUnmatched(scene, atOther, { transaction_id, merchant_id: "M-2" });
  await scenes.close(place, closed);
  await scenes.pay(scene, { transaction_id, reference: "UNKNOWN" });
  const issue = (await scenes.issuesOf(place)).find(
    ({ kind, configId }) => kind === "unmatched_money" && configId === scene.configId,
  );
  if (issue === undefined) throw new Error("There is no unmatched_money.");
  expect(await refusalOf(scenes.attribute(place, issue, await world.openIntent(place, 1250)))).toEqual({
    code: "conflict",
    reason: "money_closed",
    detail: `This money was dealt with and closed as issue ${closed.issueId}.`,
  });
});

test("a payment that a person has closed at another config of its account: the seam refuses it", async () => {
  const scene = await scenes.open();
  const configId = await siblings.replace(scene);
  const issue = await siblings.notifyUnmatched(scene, configId, { transaction_id: "BACK" });
  const order = await world.openIntent(scene.place, 1250);
  await scenes.close(scene.place, issue);
  expect(await siblings.askSeam(scene, order, "BACK")).toBe("money_already_used");
  expect(await scenes.salesOf(order)).toEqual([]);
  expect(await siblings.askSeam(scene, await world.openIntent(scene.place, 1250), "OTHER")).toBeNull();
});

test.each([
  ["its own config", false],
  ["the sibling of its config", true],
])(
  "another intent's payment was asserted for an intent at %s: the intent's payment still settles it",
  async (_, isSibling) => {
    const scene = await scenes.open();
    const transaction_id = `X-${scene.intent.intentId}`;
    await scenes.pay(scene, { transaction_id });
    await scenes.paid(scene);
    const configId = isSibling ? await siblings.replace(scene) : scene.configId;
    const second = await siblings.open(configId, scene.place);
    const notify = (more: Readonly<Record<string, unknown>>) =>
      isSibling ? siblings.notify(second, more) : scenes.pay(second, more);
    await notify({ transaction_id });
    expect(await scenes.taskEnd(second.intent, "differ")).toBe("notified");
    expect(await scenes.onlyIssueOf(scene.place)).toMatchObject({ kind: "reference_mismatch", status: "open" });
    await notify({});
    await scenes.paid(second);
    expect(await scenes.salesOf(second.intent)).toMatchObject([{ reference: `T-${second.intent.intentId}` }]);
  },
);

describe("reports about a payment at the sibling config", () => {
  test("an issue of it was closed there: it cannot be attributed here", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { reference: "UNKNOWN" });
    const own = await scenes.onlyIssueOf(scene.place);
    const other = await siblings.notifyUnmatched(scene, await siblings.replace(scene));
    await scenes.close(scene.place, other);
    const order = await world.openIntent(scene.place, 1250);
    expect(await refusalOf(scenes.attribute(scene.place, own, order))).toMatchObject({ reason: "money_closed" });
    expect(await scenes.salesOf(order)).toEqual([]);
  });

  test("another amount was reported there: it cannot be attributed here", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { reference: "UNKNOWN" });
    const own = await scenes.onlyIssueOf(scene.place);
    await siblings.notifyUnmatched(scene, await siblings.replace(scene), { amount: "99.00" });
    const order = await world.openIntent(scene.place, 1250);
    expect(await refusalOf(scenes.attribute(scene.place, own, order))).toMatchObject({ reason: "amount_contradicted" });
    expect(await scenes.salesOf(order)).toEqual([]);
  });

  test("it has settled: the seam refuses it at a config of any account that was reported for it", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { merchant_id: "M-2", transaction_id: "ATTRIBUTED" });
    await scenes.attribute(
      scene.place,
      await scenes.onlyIssueOf(scene.place),
      await world.openIntent(scene.place, 1250),
    );
    // The QR of this payment was made before its config was moved.
    const moved = await scenes.open(scene);
    await siblings.move(scene, "M-9");
    await scenes.pay(moved, { transaction_id: "CONFIRMED" });
    await scenes.paid(moved);
    const { place } = scene;
    const ofSaid = { place, configId: await siblings.replace(scene, "M-2") };
    expect(await siblings.askSeam(ofSaid, await world.openIntent(place, 1250), "ATTRIBUTED")).toBe(
      "money_already_used",
    );
    // The same config is now moved to the account that received the payment.
    await siblings.move(ofSaid, "M-1");
    expect(await siblings.askSeam(ofSaid, await world.openIntent(place, 1250), "CONFIRMED")).toBe("money_already_used");
  });
});

test("the same payment is asserted for two intents at once: one claims it", async () => {
  // The trigger makes each claim slow, so that both intents try to claim the payment at the same time.
  await world.database.unsafe(`
    create function pause_before_paid() returns trigger language plpgsql as $$
    begin perform pg_sleep(0.3); return new; end $$;
    create trigger pause_before_paid before update of paid_reference on provider_payments
      for each row execute function pause_before_paid();`);
  try {
    const first = await scenes.open();
    const second = await scenes.open(first);
    await Promise.all([first, second].map((scene) => scenes.pay(scene, { transaction_id: "BOTH" })));
    const taken = await world.database`
      select intent_id from provider_payments where config_id = ${first.configId} and paid_reference = 'BOTH'`;
    expect(taken).toHaveLength(1);
    expect(await scenes.onlyIssueOf(first.place)).toMatchObject({ kind: "reference_mismatch" });
  } finally {
    await world.database`drop function pause_before_paid cascade`;
  }
});

describe("accounts with the same number at two schemes", () => {
  test("are two accounts: payments with the same reference settle at each", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { transaction_id: "1001" });
    await scenes.paid(scene);
    const configId = await siblings.replaceByScheme(scene, "org.other.bank");
    const second = await siblings.payBy(configId, scene.place, { transaction_id: "1001" });
    await waitFor("the second sale", async () => (await scenes.salesOf(second)).length === 1);
    expect(await scenes.issuesOf(scene.place)).toEqual([]);
  });

  test("are one account when only the case of the scheme's name differs", async () => {
    const scene = await scenes.open();
    await scenes.pay(scene, { transaction_id: "1001" });
    await scenes.paid(scene);
    const configId = await siblings.replaceByScheme(scene, "COM.example.PAY");
    const second = await siblings.payBy(configId, scene.place, { transaction_id: "1001" });
    expect(await scenes.taskEnd(second, "differ")).toBe("notified");
    expect(await scenes.salesOf(second)).toEqual([]);
  });

  test("the scheme of a config changes after the QR was made: the payment belongs to the former account", async () => {
    const scene = await scenes.open();
    const configId = await siblings.replace(scene);
    const second = await siblings.open(configId, scene.place);
    await world.database`
      update provider_configs set settings = jsonb_set(settings, '{merchant_account,guid}', '"org.other.bank"')
      where config_id = ${configId}`;
    await siblings.notify(second, { transaction_id: "1002" });
    await scenes.paid(second);
    const order = await world.openIntent(scene.place, 1250);
    expect(await siblings.askSeam(scene, order, "1002")).toBe("money_already_used");
    await scenes.pay(scene, { transaction_id: "1002" });
    expect(await scenes.taskEnd(scene.intent, "differ")).toBe("notified");
    expect(await scenes.salesOf(scene.intent)).toEqual([]);
  });
});

test("a settled payment that a config with another account receives too: not attributed there", async () => {
  const scene = await scenes.open();
  await siblings.move(scene, "M-9");
  const second = await siblings.open(await siblings.replace(scene), scene.place);
  // Both configs receive the payment. The moved config does not know the reference.
  await scenes.pay(scene, { reference: second.reference, transaction_id: "X" });
  await siblings.notify(second, { transaction_id: "X" });
  await scenes.paid(second);
  const order = await world.openIntent(scene.place, 1250);
  expect(await refusalOf(scenes.attribute(scene.place, await scenes.onlyIssueOf(scene.place), order))).toEqual({
    code: "conflict",
    reason: "money_has_paid",
    detail: `This money has paid order ${second.intent.orderId}.`,
  });
  expect(await scenes.salesOf(order)).toEqual([]);
});

test("a payment attributed by a config with another account: settles nothing by the config that has its account", async () => {
  const scene = await scenes.open();
  const configId = await siblings.replace(scene);
  await siblings.move({ place: scene.place, configId }, "M-9");
  const issue = await siblings.notifyUnmatched(scene, configId);
  const order = await world.openIntent(scene.place, 1250);
  await scenes.attribute(scene.place, issue, order);
  expect(await scenes.salesOf(order)).toHaveLength(1);
  await scenes.pay(scene);
  expect(await scenes.taskEnd(scene.intent, "differ")).toBe("notified");
  expect(await scenes.salesOf(scene.intent)).toEqual([]);
});

test("a config is moved after the QR was made: the payment belongs to the old account", async () => {
  const scene = await scenes.open();
  await siblings.move(scene, "M-9");
  await scenes.pay(scene);
  await scenes.paid(scene);
  const issue = await siblings.notifyUnmatched(scene, await siblings.replace(scene));
  const order = await world.openIntent(scene.place, 1250);
  expect(await refusalOf(scenes.attribute(scene.place, issue, order))).toMatchObject({ reason: "money_has_paid" });
});

test.each([["z"], [""], [undefined]])(
  "a settled payment that a sibling receives with the account %j: not attributed there",
  async (merchant_id) => {
    const scene = await scenes.open();
    await scenes.pay(scene);
    await scenes.paid(scene);
    const issue = await siblings.notifyUnmatched(scene, await siblings.replace(scene), { merchant_id });
    const order = await world.openIntent(scene.place, 1250);
    expect(await refusalOf(scenes.attribute(scene.place, issue, order))).toMatchObject({ reason: "money_has_paid" });
    expect(await scenes.salesOf(order)).toEqual([]);
  },
);
