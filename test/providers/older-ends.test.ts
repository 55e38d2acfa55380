/** A provider's answer that no money moved is as old as the request: a payment asserted after the request is newer. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { closeIssue } from "../../services/bus/messages/issues.ts";
import { withdrawProviderPayment } from "../../services/bus/messages/provider-payments.ts";
import type { Transaction } from "../../services/db/pool.ts";
import { raiseIssue } from "../../services/providers/issue-recording.ts";
import { findPayment, lockPayment, recordEnd } from "../../services/providers/sql/payments.ts";
import { waitFor } from "../support/wait-for.ts";
import { type AnsweringProvider, startAnsweringProvider } from "./answering-provider.ts";
import { Scenes } from "./emvco-scene.ts";
import { type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";

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

/** Raises an issue for one payment with a differing amount. Each `said` is another assertion of it. */
async function assertMoney(sql: Transaction, intentId: number, said: string): Promise<void> {
  const payment = await lockPayment(sql, intentId);
  if (payment === undefined) throw new Error("There is no payment.");
  const { reference, account, currency, config_id: configId, organization_id: organizationId } = payment;
  const money = { reference, providerReference: "DIFFERS", account, amountMinor: "1", currency, said };
  const source = { configId, organizationId, eventKey: "e", learnedFrom: "payment.paid" };
  await raiseIssue(sql, "amount_under", { source, money, payment });
}

async function asked(intentId: number): Promise<{ intentId: number; assertions: number }> {
  const payment = await findPayment(world.database, intentId);
  if (payment === undefined) throw new Error("There is no payment.");
  return { intentId, assertions: payment.assertions };
}

async function hasEnded(intentId: number): Promise<boolean> {
  return (await findPayment(world.database, intentId))?.ended_at instanceof Date;
}

test("an end requested after the payment: stored, and discarded when the provider asserts the payment again", async () => {
  const { intentId } = (await scenes.open()).intent;
  await world.database.begin((sql) => assertMoney(sql, intentId, "first"));
  const after = await asked(intentId);
  await world.database.begin((sql) => recordEnd(sql, after));
  expect(await hasEnded(intentId)).toBe(true);
  await world.database.begin((sql) => assertMoney(sql, intentId, "again, in other words"));
  expect(await hasEnded(intentId)).toBe(false);
});

test("a payment that is being stored when the end arrives: it is newer, and the end is not stored", async () => {
  const { intentId } = (await scenes.open()).intent;
  const before = await asked(intentId);
  let ending: Promise<unknown> = Promise.resolve();
  await world.database.begin(async (sql) => {
    await assertMoney(sql, intentId, "first");
    ending = world.database.begin((other) => recordEnd(other, before));
    await waitFor("the end that waits for the payment", async () => {
      const waiting = await world.database`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
          and query like '%ended_at = coalesce(ended_at%'`;
      return waiting.length === 1;
    });
  });
  await ending;
  expect(await hasEnded(intentId)).toBe(false);
});

/** A payment with a differing amount. The provider answers its cancellation when the test allows it. */
async function openCancellation() {
  await provider.giveBack(world);
  const place = await world.openPlace();
  const configId = await world.addSandboxConfig(place);
  const [{ account }] = await world.database<[{ account: string }]>`
    select settings ->> 'account' as account from provider_configs where config_id = ${configId}`;
  await provider.takeOver(world);
  const made = { payment_id: "P-1", account, amount: "12.03", currency: "EUR", qr_payload: "https://pay.example/P-1" };
  const answering = Promise.withResolvers<void>();
  let reference: unknown;
  let cancellations = 0;
  provider.answer = async ({ path, body }) => {
    if (path.endsWith("/cancel")) {
      cancellations += 1;
      await answering.promise;
      return { ...made, reference, status: "cancelled" };
    }
    reference = body["reference"] ?? reference;
    return { ...made, reference, status: "pending" };
  };
  const intent = await world.openIntent(place, 1203);
  const { intentId } = intent;
  expect(await world.askProvider(place, configId, intent)).toMatchObject({ created: true });
  await world.database.begin((sql) => assertMoney(sql, intentId, "first"));
  await world.ask(withdrawProviderPayment, { intentId });
  await waitFor("the cancellation", () => cancellations === 1);
  await world.database.begin((sql) => assertMoney(sql, intentId, "again, in other words"));
  return { place, intent, answering, cancellations: () => cancellations };
}

test("a payment asserted again during a cancellation: the service sends a second cancellation", async () => {
  const { place, intent, answering, cancellations } = await openCancellation();
  answering.resolve();
  await waitFor("the second cancellation", () => cancellations() === 2);
  expect(await scenes.taskEnd(intent, "withdraw")).toBe("cancelled");
  expect(await scenes.taskEnd(intent, "clear")).toBe("issue_open");
  expect(await hasEnded(intent.intentId)).toBe(true);
  expect(scenes.commandTypes(intent)).not.toContain("provider_cleared");
  const { issueId } = await scenes.onlyIssueOf(place);
  await world.ask(closeIssue, { caller: place.operator, issueId, reason: "paid back" });
  await waitFor("the provider's report", () => scenes.commandTypes(intent).includes("provider_cleared"));
});

test("an answer older than the payment: the station is cleared only after a second one, also with a closed issue", async () => {
  const { place, intent, answering, cancellations } = await openCancellation();
  const { issueId } = await scenes.onlyIssueOf(place);
  await world.ask(closeIssue, { caller: place.operator, issueId, reason: "paid back" });
  const askedBefore: number[] = [];
  world.stations.answer(intent.intentId, "provider_cleared", () => {
    askedBefore.push(cancellations());
    return { ok: true, type: "accepted" };
  });
  answering.resolve();
  await waitFor("the provider's answer", () => askedBefore.length > 0);
  expect(askedBefore).toEqual([2]);
});

test.each([
  ["a differing payment", { amount: "9.00" }],
  ["a correct payment", {}],
])("an end that waits for its station, and then %s: the end is not sent", async (_, money) => {
  const scene = await scenes.open();
  const { intent, place } = scene;
  const { intentId } = intent;
  world.stations.answer(intentId, "provider_failed", {
    ok: false,
    code: "intent_not_actionable",
    status: "cancelled",
  });
  const expired = JSON.stringify({ id: "e", type: "payment.expired", data: { reference: scene.reference } });
  expect((await scenes.send(scene, expired)).status).toBe(200);
  expect(await scenes.taskEnd(intent, "clear")).toBe("cleared");
  world.stations.answer(intentId, "provider_confirm", {
    ok: false,
    code: "intent_not_actionable",
    status: "cancelled",
  });
  await scenes.pay(scene, money);
  expect(await scenes.taskEnd(intent, "differ")).toBe("notified");
  await waitFor("the end of all else", async () => {
    const open = await world.database`
      select from provider_tasks where intent_id = ${intentId} and done_at is null`;
    return open.length === 0;
  });
  await scenes.close(place, await scenes.onlyIssueOf(place));
  // This is the state when the station has not answered in all this time.
  await world.database`
    update provider_tasks set done_at = null, outcome = null, due_at = now() where intent_id = ${intentId} and kind = 'clear'`;
  expect(await scenes.taskEnd(intent, "clear")).toBe("superseded");
  expect(scenes.commandTypes(intent).filter((type) => type === "provider_cleared")).toHaveLength(1);
});
