/** Issues at a real station: whether their intents are unclear, and that each payment settles once. */

import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decodeCommit } from "../../machines/station/commit.ts";
import { moneyKey, moneyName, prepareIntent, settleIntent } from "../../services/bus/messages/intents.ts";
import { closeIssue } from "../../services/bus/messages/issues.ts";
import { openOrder } from "../../services/bus/messages/orders.ts";
import type { RequestedCommand } from "../../services/bus/messages/station-commands.ts";
import { askStation } from "../../services/bus/station-client.ts";
import { insertOutbox, stationKey } from "../../services/db/outbox.ts";
import { STATION_LOG, stationLogSubject } from "../support/one-log.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Scene, Scenes } from "./emvco-scene.ts";
import { type Intent, type Place, type ProvidersWorld, refusalOf, startProvidersWorld } from "./providers-world.ts";

let world: ProvidersWorld;
const scenes = new Scenes(() => world);
beforeAll(async () => {
  world = await startProvidersWorld({ hasRealStations: true });
});
afterAll(() => world.stop());

let commands = 0;
async function act({ stationId, cashier }: Place, command: RequestedCommand) {
  commands += 1;
  const actor = { kind: "cashier", id: cashier.userId, name: cashier.name } as const;
  return (await askStation(world.bus.nc, stationId, { commandId: `test:${commands}`, actor, command })).reply;
}

async function openPlace(): Promise<{ place: Place; configId: number }> {
  const place = await world.openPlace();
  const { stationId, organizationId, filialId } = place;
  const description = {
    organizationId,
    filialId,
    name: "Counter",
    currency: "EUR",
    status: "active",
    revision: 1,
  } as const;
  await world.database.begin((sql) =>
    insertOutbox(sql, {
      key: stationKey(stationId),
      kind: "station_command",
      stationId,
      actor: { kind: "owner", id: place.owner.userId },
      command: { type: "station_put", stationId, station: description },
    }),
  );
  const configId = await scenes.openConfig(place);
  await waitFor("the lease", async () => (await act(place, { type: "lease_acquire" })).ok);
  return { place, configId };
}

async function openOrderOf({ cashier: caller, stationId }: Place): Promise<Intent> {
  const lines = [{ name: "Soup", quantity: 1, unitAmountMinor: "1250" }];
  const { order } = await world.ask(openOrder, { caller, stationId, lines });
  const { orderId, orderDisplayNumber, totalMinor: amountMinor, currency } = order;
  return { intentId: 0, orderId, orderDisplayNumber, amountMinor, currency, expiresAtMs: 0 };
}

/** An order whose QR the guest sees. */
async function present({ place, configId }: { place: Place; configId: number }): Promise<Scene> {
  const order = await openOrderOf(place);
  const intentId = await waitFor("a collection", async () => {
    const command = { type: "intent_create", route: "dynamic_qr", orderId: order.orderId, lifetimeMs: 60_000 } as const;
    const reply = await act(place, command);
    return reply.ok && reply.type === "intent" && reply.intentId;
  });
  const reference = await waitFor("the QR", async () => {
    const [row] = await world.database<{ reference: string }[]>`
      select reference from provider_payments where intent_id = ${intentId} and status = 'ready'`;
    return row?.reference;
  });
  return { place, configId, intent: { ...order, intentId }, reference };
}

async function expire(scene: Scene, id = "e"): Promise<void> {
  const body = JSON.stringify({ id, type: "payment.expired", data: { reference: scene.reference } });
  expect((await scenes.send(scene, body)).status).toBe(200);
}

const collectAgain = ({ place, intent }: Scene) =>
  act(place, { type: "intent_create", route: "cash", orderId: intent.orderId });

describe("a payment that differs", () => {
  test("makes the collection unclear; after the provider's expiry, it is cleared when the last issue is closed", async () => {
    const scene = await present(await openPlace());
    await scenes.pay(scene, { amount: "9.00" });
    await scenes.pay(scene, { amount: "8.00", transaction_id: "SECOND" });
    expect(await scenes.taskEnd(scene.intent, "differ")).toBe("notified");
    await expire(scene);
    expect(await scenes.taskEnd(scene.intent, "fail")).toBe("provider_expired");
    expect(await collectAgain(scene)).toMatchObject({ ok: false, code: "money_may_have_moved" });
    const [last, first] = await scenes.issuesOf(scene.place);
    if (first === undefined || last === undefined) throw new Error("There are no two issues.");
    await scenes.close(scene.place, first);
    await delay(300);
    expect(scenes.commandTypes(scene.intent)).not.toContain("provider_cleared");
    await scenes.close(scene.place, last);
    expect(await scenes.taskEnd(scene.intent, "clear")).toBe("cleared");
    expect(await collectAgain(scene)).toMatchObject({ ok: true });
  });

  test("two issues closed at the same time leave no unclear collection", async () => {
    const scene = await present(await openPlace());
    await scenes.pay(scene, { amount: "9.00" });
    await scenes.pay(scene, { amount: "8.00", transaction_id: "SECOND" });
    await expire(scene);
    expect(await scenes.taskEnd(scene.intent, "fail")).toBe("provider_expired");
    const issues = await scenes.issuesOf(scene.place);
    await Promise.all(issues.map((issue) => scenes.close(scene.place, issue)));
    expect(await scenes.taskEnd(scene.intent, "clear")).toBe("cleared");
  });

  test("an end arrived while its issue was open: sent after the payment is attributed to another order", async () => {
    const scene = await present(await openPlace());
    await scenes.pay(scene, { merchant_id: "M-2" });
    const { intentId } = scene.intent;
    expect(await act(scene.place, { type: "intent_cancel", intentId })).toMatchObject({ ok: true });
    await expire(scene);
    expect(await scenes.taskEnd(scene.intent, "clear")).toBe("issue_open");
    const other = await openOrderOf(scene.place);
    await scenes.attribute(scene.place, await scenes.onlyIssueOf(scene.place), other);
    await waitFor("the report to the station", () => scenes.commandTypes(scene.intent).includes("provider_cleared"));
    expect(await collectAgain(scene)).toMatchObject({ ok: true });
  });

  test.each([
    ["without an end from the provider", false],
    ["with an end from before the payment", true],
  ])("an intent %s: unclear also after its issue is closed", async (_, hasEnded) => {
    const scene = await present(await openPlace());
    if (hasEnded) await expire(scene);
    else {
      const { intentId } = scene.intent;
      expect(await act(scene.place, { type: "intent_cancel", intentId })).toMatchObject({ ok: true });
    }
    await scenes.pay(scene, { amount: "9.00" });
    expect(await scenes.taskEnd(scene.intent, "differ")).toBe("notified");
    await scenes.close(scene.place, await scenes.onlyIssueOf(scene.place));
    await delay(500);
    expect(scenes.commandTypes(scene.intent)).not.toContain("provider_cleared");
    expect(await collectAgain(scene)).toMatchObject({ ok: false, code: "money_may_have_moved" });
    // A newer end from the provider counts.
    await expire(scene, "e2");
    expect(await scenes.taskEnd(scene.intent, "clear")).toBe("cleared");
    expect(await collectAgain(scene)).toMatchObject({ ok: true });
  });

  test("cannot be attributed to an order while it is being collected", async () => {
    const opened = await openPlace();
    const scene = await present(opened);
    await scenes.pay(scene, { reference: "UNKNOWN" });
    const issue = await scenes.onlyIssueOf(scene.place);
    const refusal = await refusalOf(scenes.attribute(scene.place, issue, scene.intent));
    expect(refusal.detail).toContain("being collected");
    expect(await scenes.salesOf(scene.intent)).toEqual([]);
    const { intentId } = scene.intent;
    expect(await act(scene.place, { type: "intent_cancel", intentId })).toMatchObject({ ok: true });
    const { issue: resolved } = await scenes.attribute(scene.place, issue, scene.intent);
    expect(resolved.status).toBe("attributed");
    await waitFor("the station knows", async () => {
      const reply = await collectAgain(scene);
      return !reply.ok && reply.code === "order_already_paid";
    });
  });
});

test("a collection that began during an attribution to its order: ends when the order is paid", async () => {
  const scene = await present(await openPlace());
  await scenes.pay(scene, { reference: "UNKNOWN" });
  const { issueId, providerReference: reference } = await scenes.onlyIssueOf(scene.place);
  const { stationId, operator } = scene.place;
  const { orderId, amountMinor, currency } = scene.intent;
  // The stored attribution of a process that died; it began before the collection.
  const { intentId } = await world.ask(prepareIntent, { stationId, orderId });
  const by = { userId: operator.userId, name: operator.name, role: operator.role };
  const attribution = { intentId, stationId, orderId, amountMinor, currency, reference, reason: "the receipt", by };
  const asked = { ...attribution, attestationId: `issue:${issueId}:${intentId}` };
  await world.database`
    update issues set attribution = ${world.database.json(asked)}, attributed_since = now() - interval '1 hour'
    where issue_id = ${issueId}`;
  await waitFor("the order is paid", async () => (await scenes.salesOf(scene.intent)).length === 1);
  const ended = await waitFor("the collection's end", async () => {
    const message = await world.bus.jsm.streams.getMessage(STATION_LOG.name, {
      last_by_subj: stationLogSubject(stationId),
    });
    const { state } = decodeCommit(message?.string() ?? "");
    return state.ended.find((intent) => intent.intentId === scene.intent.intentId);
  });
  expect(ended).toMatchObject({ status: "cancelled", endReason: "order_already_paid" });
});

describe("a payment that has settled elsewhere", () => {
  test("is confirmed or attested for another intent: settles nothing, and is duplicate_money", async () => {
    const scene = await present(await openPlace());
    const { stationId } = scene.place;
    const other = await openOrderOf(scene.place);
    const { intentId } = await world.ask(prepareIntent, { stationId, orderId: other.orderId });
    const name = moneyName(`T-${scene.intent.intentId}`, "");
    const { orderId, amountMinor, currency } = other;
    // The confirmation waits for the order's lock. Meanwhile, an attribution settles the payment.
    await world.database.begin(async (sql) => {
      await sql`select 1 from orders where order_id = ${scene.intent.orderId} for update`;
      await scenes.pay(scene);
      const settled = await world.ask(settleIntent, {
        intentId,
        stationId,
        orderId,
        amountMinor,
        currency,
        reference: "T",
        attestedBy: 1,
        route: "dynamic_qr",
        attestationId: "issue:1",
        moneyKey: moneyKey({ configId: scene.configId, name }),
      });
      expect(settled.settled).toBe(true);
    });
    expect(await scenes.onlyIssueOf(scene.place)).toMatchObject({
      kind: "duplicate_money",
      intentId: scene.intent.intentId,
      evidence: { station: { code: "money_already_used" } },
    });
    const attested = await act(scene.place, { type: "intent_attest", intentId: scene.intent.intentId });
    expect(attested).toMatchObject({ ok: false, code: "money_already_used" });
    expect(await scenes.salesOf(scene.intent)).toEqual([]);
    expect(await act(scene.place, { type: "intent_cancel", intentId: scene.intent.intentId })).toMatchObject({
      ok: true,
    });
    expect(await collectAgain(scene)).toMatchObject({ ok: false, code: "money_may_have_moved" });
  });
});

test("the last issue is closed, and the end is unknown: the service asks the provider again", async () => {
  const place = await world.openPlace();
  const configId = await world.addSandboxConfig(place);
  // An amount for which the sandbox provider waits.
  const intent = await world.openIntent(place, 1203);
  expect((await world.askProvider(place, configId, intent)).created).toBe(true);
  const [{ issue_id: issueId }] = await world.database<[{ issue_id: number }]>`
    insert into issues (organization_id, account_key, config_id, kind, subject_key, intent_id, provider_reference, evidence,
      evidence_hash, money_names)
    values (${place.organizationId}, ${`provider:${configId}`}, ${configId}, 'amount_over', 'money:X', ${intent.intentId},
      'X', '{}', sha256('X'), '{X}')
    returning issue_id`;
  // The station has reported the end, and the provider gave no answer then.
  await world.database`
    update provider_payments set withdrawn_at = now() where intent_id = ${intent.intentId}`;
  await world.database`
    insert into provider_tasks (intent_id, kind, attempts, done_at, outcome)
    values (${intent.intentId}, 'withdraw', 1, now(), 'unknown')`;
  await world.ask(closeIssue, { caller: place.operator, issueId, reason: "paid back" });
  await waitFor("the provider's answer", async () => (await scenes.taskEnd(intent, "withdraw")) === "cancelled");
  await waitFor("the report to the station", () => scenes.commandTypes(intent).includes("provider_cleared"));
});
