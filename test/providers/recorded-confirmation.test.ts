/** The database's clock decides whether a confirmation was recorded before the intent's deadline, also in a race. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findRecordedConfirmation } from "../../services/bus/messages/provider-payments.ts";
import { waitFor } from "../support/wait-for.ts";
import { paidBody, sendCallback } from "./emvco-callback.ts";
import { type Scene, Scenes, SECRET } from "./emvco-scene.ts";
import { type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld();
});
afterAll(() => world.stop());

const check = ({ intent }: Scene) => world.ask(findRecordedConfirmation, { intentId: intent.intentId });
const pay = ({ configId, reference, intent }: Scene) => {
  const data = {
    reference,
    transaction_id: `T-${intent.intentId}`,
    merchant_id: "M-1",
    amount: "12.50",
    currency: "EUR",
  };
  return sendCallback(world, { configId, body: paidBody(data), secret: SECRET });
};
const endNow = async ({ intent }: Scene): Promise<void> => {
  await world.database`update provider_payments set expires_at = clock_timestamp() where intent_id = ${intent.intentId}`;
};

describe("the check for a recorded confirmation", () => {
  it("a check before the deadline: the time has not ended", async () => {
    const scene = await scenes.open();
    expect(await check(scene)).toEqual({ isOver: false, providerReference: null });
  });

  it("an intent without a provider payment: the time has ended, without a confirmation", async () => {
    expect(await world.ask(findRecordedConfirmation, { intentId: 77_777 })).toEqual({
      isOver: true,
      providerReference: null,
    });
  });

  it("one confirmation before the deadline and one after it: the check finds only the first", async () => {
    const [early, late] = await Promise.all([scenes.open(), scenes.open()]);
    for (const { intent } of [early, late]) world.stations.answer(intent.intentId, "provider_confirm", "silence");
    await pay(early);
    await Promise.all([early, late].map(endNow));
    await pay(late);
    expect(await check(early)).toEqual({ isOver: true, providerReference: `T-${early.intent.intentId}` });
    expect(await check(late)).toEqual({ isOver: true, providerReference: null });
  });

  it("a recording that begins before the deadline and locks the payment after it: no check finds it", async () => {
    const scene = await scenes.open();
    const { intentId } = scene.intent;
    world.stations.answer(intentId, "provider_confirm", "silence");
    let paying: Promise<unknown> = Promise.resolve();
    await world.database.begin(async (sql) => {
      await sql`select 1 from provider_payments where intent_id = ${intentId} for update`;
      paying = pay(scene);
      await waitFor("a callback whose transaction waits for the payment", async () => {
        const [row] = await world.database<[{ waiting: number }]>`
          select count(*) as waiting from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
        return row.waiting > 0;
      });
      await sql`update provider_payments set expires_at = clock_timestamp() where intent_id = ${intentId}`;
    });
    const during = await check(scene);
    await paying;
    expect([during, await check(scene)]).toEqual([
      { isOver: true, providerReference: null },
      { isOver: true, providerReference: null },
    ]);
  });
});
