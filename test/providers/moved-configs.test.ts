/** A provider payment settles once, also where the owner has moved one of its account's configs to another account. */
import { afterAll, beforeAll, expect, test } from "vitest";
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

test("a settled payment: a config that was moved away and receives it does not attribute it", async () => {
  const scene = await scenes.open();
  await siblings.move(scene, "M-9");
  const second = await siblings.open(await siblings.replace(scene), scene.place);
  // Both endpoints of the acquirer receive it; the moved one does not know the reference.
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

test("a payment attributed by the config that was moved away: settles nothing by the config that has the account", async () => {
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

test("a payment that was asked for before the move: belongs to the old account", async () => {
  const scene = await scenes.open();
  await siblings.move(scene, "M-9");
  await scenes.pay(scene);
  await scenes.paid(scene);
  const issue = await siblings.notifyUnmatched(scene, await siblings.replace(scene));
  const order = await world.openIntent(scene.place, 1250);
  expect(await refusalOf(scenes.attribute(scene.place, issue, order))).toMatchObject({ reason: "money_has_paid" });
});

test.each([["z"], [""], [undefined]])(
  "a settled payment: a sibling that receives it with the account %j does not attribute it",
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
