/** A provider whose answers to polls differ: a later correct answer counts. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { takeAsPaid } from "../../services/providers/sql/tasks.ts";
import { waitFor } from "../support/wait-for.ts";
import { type AnsweringProvider, startAnsweringProvider } from "./answering-provider.ts";
import { Scenes } from "./emvco-scene.ts";
import { type Intent, type Place, type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";

let world: ProvidersWorld;
let provider: AnsweringProvider;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  [provider, world] = await Promise.all([startAnsweringProvider(), startProvidersWorld()]);
});
afterAll(async () => {
  await world.stop();
  await provider.stop();
});

/** An unpaid payment, and the provider's answer about it when it is paid. */
async function open(): Promise<{ place: Place; intent: Intent; paid: Readonly<Record<string, unknown>> }> {
  await provider.giveBack(world);
  const place = await world.openPlace();
  const configId = await world.addSandboxConfig(place);
  const intent = await world.openIntent(place, 1203);
  world.stations.collect(intent);
  expect((await world.askProvider(place, configId, intent)).created).toBe(true);
  const [payment] = await world.database<[{ payment_id: string; reference: string; account: string }]>`
    select provider_reference as payment_id, reference, account from provider_payments
    where intent_id = ${intent.intentId}`;
  await provider.takeOver(world);
  return { place, intent, paid: { ...payment, amount: "12.03", currency: "EUR", status: "paid" } };
}

/** Makes the next poll due, and waits until the service has made it. */
async function poll({ intentId }: Intent): Promise<{ readonly outcome: string | null }> {
  const read = async () => {
    const [row] = await world.database<[{ attempts: number; outcome: string | null; is_due: boolean }]>`
      select attempts, outcome, due_at <= now() + interval '3 seconds' or due_at > now() + interval '12 seconds' as is_due
      from provider_tasks where intent_id = ${intentId} and kind = 'poll'`;
    return row;
  };
  const { attempts } = await read();
  await world.database`update provider_tasks set due_at = now() where intent_id = ${intentId} and kind = 'poll'`;
  return await waitFor("the poll", async () => {
    const row = await read();
    return row.attempts > attempts && (row.outcome !== null || !row.is_due) && row;
  });
}

test.each([{ account: "A-thief" }, { amount: "0.01" }])(
  "polls are answered with the wrong %j: a later poll finds the correct payment, which settles",
  async (wrong) => {
    const { place, intent, paid } = await open();
    provider.answer = () => ({ ...paid, ...wrong });
    for (const _ of [1, 2]) expect((await poll(intent)).outcome).toBeNull();
    const issue = await scenes.onlyIssueOf(place);
    expect(issue).toMatchObject({ status: "open", intentId: intent.intentId });
    expect(issue.evidence["further"]).toBeUndefined();
    provider.answer = () => paid;
    expect((await poll(intent)).outcome).toBe("paid");
    await waitFor("the sale", async () => (await scenes.salesOf(intent)).length === 1);
  },
  40_000,
);

test("the poll after the deadline: it is the last one, also when the amount is wrong", async () => {
  const { place, intent, paid } = await open();
  provider.answer = () => ({ ...paid, amount: "0.01" });
  await world.database`
    update provider_payments set expires_at = now() - interval '10 seconds' where intent_id = ${intent.intentId}`;
  expect((await poll(intent)).outcome).toBe("amount_under");
  expect(await scenes.onlyIssueOf(place)).toMatchObject({ kind: "amount_under" });
});

test("a poll is answered with a decline, and the payment has arrived meanwhile: the intent does not end", async () => {
  const { place, intent, paid } = await open();
  const { intentId } = intent;
  world.stations.answer(intentId, "provider_confirm", "silence");
  const polling = Promise.withResolvers<void>();
  const answering = Promise.withResolvers<void>();
  provider.answer = async () => {
    polling.resolve();
    await answering.promise;
    return { ...paid, status: "declined" };
  };
  await world.database`update provider_tasks set due_at = now() where intent_id = ${intentId} and kind = 'poll'`;
  await polling.promise;
  await world.database.begin(async (sql) => {
    const reference = { intentId, providerReference: String(paid["payment_id"]) };
    expect(await takeAsPaid(sql, { ...reference, dueInMs: 60_000 })).toBeDefined();
  });
  answering.resolve();
  await delay(1_000);
  expect(scenes.commandTypes(intent)).not.toContain("provider_failed");
  expect(await scenes.issuesOf(place)).toEqual([]);
});
