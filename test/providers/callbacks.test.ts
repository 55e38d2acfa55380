/** Callbacks: their signatures, repetitions, payments and issues, and which of them count after a deadline. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { moneyKey, moneyName, settleIntent } from "../../services/bus/messages/intents.ts";
import { findRecordedConfirmation } from "../../services/bus/messages/provider-payments.ts";
import { PROVIDER_LIMITS } from "../../services/providers/limits.ts";
import { signature } from "../support/emvco-settings.ts";
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

const send = ({ configId }: Scene, body: string, more: Partial<Parameters<typeof sendCallback>[1]> = {}) =>
  sendCallback(world, { configId, body, secret: SECRET, ...more });

const transactions = (orderId: number) =>
  world.database<{ intent_id: number; reference: string; amount_minor: number }[]>`
    select intent_id, reference, amount_minor from transactions where order_id = ${orderId}`;

describe("the provider payment of a registered intent", () => {
  test("settles its order through the seam, with the provider's reference", async () => {
    const scene = await scenes.open();
    const answer = await send(scene, paidBody(scenes.money(scene)));
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toEqual({ received: true, callback_id: expect.any(Number) });
    const { intentId, orderId } = scene.intent;
    const [paid] = await waitFor("a transaction", async () => {
      const rows = await transactions(orderId);
      return rows.length > 0 && rows;
    });
    expect(paid).toEqual({ intent_id: intentId, reference: `T-${intentId}`, amount_minor: 1250 });
    const [confirm] = world.stations.about(intentId);
    expect(confirm).toMatchObject({
      stationId: scene.place.stationId,
      actor: { kind: "provider", id: scene.configId },
      command: { type: "provider_confirm", intentId, providerReference: `T-${intentId}` },
    });
    expect(await scenes.issuesOf(scene.place)).toEqual([]);
  });

  test("50 callbacks at once: one confirmation, and the same answer byte for byte", async () => {
    const scene = await scenes.open();
    const body = paidBody(scenes.money(scene));
    const header = signature(body, SECRET);
    const answers = await Promise.all(Array.from({ length: 50 }, () => send(scene, body, { header })));
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(answers[0]?.status).toBe(200);
    await waitFor("a transaction", async () => (await transactions(scene.intent.orderId)).length > 0);
    const confirms = world.stations.about(scene.intent.intentId);
    expect(confirms).toHaveLength(1);
    // The answer is the same after the order is paid and another process runs the service.
    await world.restartProviders();
    expect(await send(scene, body, { header })).toEqual(answers[0]);
    expect(await send(scene, body)).toEqual(answers[0]);
    expect(world.stations.about(scene.intent.intentId)).toHaveLength(1);
    expect(await transactions(scene.intent.orderId)).toHaveLength(1);
  });

  test("a known event again, with a signature that is too old: gets its first answer", async () => {
    const scene = await scenes.open();
    const body = paidBody(scenes.money(scene));
    const atMs = Date.now() - PROVIDER_LIMITS.callbackToleranceMs + 10_000;
    const first = await send(scene, body, { atMs });
    expect(first.status).toBe(200);
    const stale = { atMs: Date.now() - PROVIDER_LIMITS.callbackToleranceMs - 10_000 };
    expect(await send(scene, body, stale)).toEqual(first);
    expect((await send(scene, paidBody(scenes.money(scene)), stale)).status).toBe(401);
  });

  test("an event without an id: the same bytes are the same event, and other bytes are another event", async () => {
    const scene = await scenes.open();
    const body = JSON.stringify({ type: "payment.paid", data: scenes.money(scene) });
    const first = await send(scene, body);
    expect(first.status).toBe(200);
    expect(await send(scene, body)).toEqual(first);
    // The same payment in other bytes is another event about the same payment.
    const again = await send(scene, JSON.stringify({ data: scenes.money(scene), type: "payment.paid" }));
    expect(again.status).toBe(200);
    expect(again).not.toEqual(first);
    await waitFor("a transaction", async () => (await transactions(scene.intent.orderId)).length > 0);
    expect(world.stations.about(scene.intent.intentId)).toHaveLength(1);
    expect(await scenes.issuesOf(scene.place)).toEqual([]);
  });

  test("a station that does not answer: the payment is confirmed after a restart, when the station answers again", async () => {
    const scene = await scenes.open();
    world.stations.answer(scene.intent.intentId, "provider_confirm", "silence");
    expect((await send(scene, paidBody(scenes.money(scene)))).status).toBe(200);
    await waitFor("a first attempt", () => world.stations.about(scene.intent.intentId).length > 0);
    await world.restartProviders();
    expect(await transactions(scene.intent.orderId)).toHaveLength(0);
    world.stations.answer(scene.intent.intentId, "provider_confirm", () => ({ ok: true, type: "accepted" }));
    // A task of the stopped process is due when that process's claim ends. The test makes it due now.
    await world.database`update provider_tasks set due_at = now() where intent_id = ${scene.intent.intentId}`;
    await waitFor("a finished task", async () => {
      const [row] = await world.database<{ outcome: string | null }[]>`
        select outcome from provider_tasks where intent_id = ${scene.intent.intentId} and kind = 'confirm'`;
      return row?.outcome === "settled";
    });
    const ids = new Set(world.stations.about(scene.intent.intentId).map((received) => received.commandId));
    expect(ids).toEqual(new Set([`provider:confirm:${scene.intent.intentId}`]));
  });
});

describe("a provider payment that does not match", () => {
  test.each([
    ["amount_over", { amount: "12.51" }],
    ["amount_unknown", { amount: "not an amount" }],
    ["currency_mismatch", { currency: "USD" }],
    ["account_mismatch", { merchant_id: "M-2" }],
    ["unmatched_money", { reference: "NEVERREGISTERED", transaction_id: "T-never" }],
  ] as const)("pays nothing and raises %s: %o", async (kind, wrong) => {
    const scene = await scenes.open();
    const body = paidBody(scenes.money(scene, wrong));
    expect((await send(scene, body)).status).toBe(200);
    // The same payment as another event raises no second issue.
    expect((await send(scene, paidBody(scenes.money(scene, wrong)))).status).toBe(200);
    const issues = await scenes.issuesOf(scene.place);
    expect(issues).toHaveLength(1);
    const isKnown = kind !== "unmatched_money";
    expect(issues[0]).toMatchObject({
      kind,
      status: "open",
      configId: scene.configId,
      intentId: isKnown ? scene.intent.intentId : null,
      orderId: isKnown ? scene.intent.orderId : null,
      evidence: {
        learnedFrom: "payment.paid",
        asserted: { reference: (scenes.money(scene, wrong) as { readonly reference: string }).reference },
      },
    });
    expect(await transactions(scene.intent.orderId)).toHaveLength(0);
    const received = world.stations.about(scene.intent.intentId).map(({ command }) => command.type);
    expect(received).not.toContain("provider_confirm");
    // The correct payment still pays.
    const right = scenes.money(scene, { transaction_id: "T-right" });
    expect((await send(scene, paidBody(right))).status).toBe(200);
    await waitFor("a transaction", async () => (await transactions(scene.intent.orderId)).length > 0);
  });

  test("raises reference_mismatch: the provider's reference is of a paid intent, and ours is unknown", async () => {
    const scene = await scenes.open();
    await send(scene, paidBody(scenes.money(scene)));
    expect((await send(scene, paidBody(scenes.money(scene, { reference: "SOMETHINGELSE" })))).status).toBe(200);
    expect(await scenes.issuesOf(scene.place)).toMatchObject([
      { kind: "reference_mismatch", intentId: scene.intent.intentId, providerReference: `T-${scene.intent.intentId}` },
    ]);
  });

  test("raises duplicate_money: it is a second payment of the same QR", async () => {
    const scene = await scenes.open();
    await send(scene, paidBody(scenes.money(scene)));
    await send(scene, paidBody(scenes.money(scene, { transaction_id: "T-second" })));
    expect(await scenes.issuesOf(scene.place)).toMatchObject([
      { kind: "duplicate_money", providerReference: "T-second" },
    ]);
    await waitFor("a transaction", async () => (await transactions(scene.intent.orderId)).length > 0);
    expect(await transactions(scene.intent.orderId)).toHaveLength(1);
  });

  test.each([
    ["late_money", { ok: false, code: "intent_not_actionable", status: "cancelled" }],
    ["late_money", { ok: false, code: "intent_not_actionable", status: "expired" }],
    ["duplicate_money", { ok: false, code: "intent_not_actionable", status: "succeeded" }],
    ["settlement_refused", { ok: false, code: "order_changed" }],
    ["settlement_refused", { ok: false, code: "order_already_paid" }],
  ] as const)("raises %s when the station answers %o", async (kind, answer) => {
    const scene = await scenes.open();
    world.stations.answer(scene.intent.intentId, "provider_confirm", answer);
    await send(scene, paidBody(scenes.money(scene)));
    await waitFor("an issue", async () => (await scenes.issuesOf(scene.place)).length > 0);
    expect(await scenes.issuesOf(scene.place)).toMatchObject([
      {
        kind,
        intentId: scene.intent.intentId,
        orderId: scene.intent.orderId,
        amountMinor: "1250",
        currency: "EUR",
        providerReference: `T-${scene.intent.intentId}`,
        evidence: {
          asserted: { reference: scenes.money(scene).reference, amountMinor: scene.intent.amountMinor },
          station: { code: answer.code },
        },
      },
    ]);
    expect(await transactions(scene.intent.orderId)).toHaveLength(0);
  });

  test.each([
    { ok: false, code: "intent_not_actionable", status: "succeeded" },
    { ok: false, code: "intent_not_actionable", status: "expired" },
    { ok: false, code: "intent_unknown" },
  ] as const)("a payment that has settled, and a station that has lost it and answers %o: no issue", async (answer) => {
    const scene = await scenes.open();
    const { intent, configId, place } = scene;
    const { intentId, orderId, amountMinor, currency } = intent;
    world.stations.answer(intentId, "provider_confirm", async () => {
      await world.ask(settleIntent, {
        intentId,
        attestationId: `confirm:${intentId}`,
        stationId: place.stationId,
        orderId,
        route: "dynamic_qr",
        amountMinor,
        currency,
        reference: `T-${intentId}`,
        attestedBy: 0,
        moneyKey: moneyKey({ configId, name: moneyName(`T-${intentId}`, "") }),
      });
      return answer;
    });
    await send(scene, paidBody(scenes.money(scene)));
    expect(await scenes.taskEnd(intent, "confirm")).toBe("settled");
    expect(await scenes.issuesOf(place)).toEqual([]);
  });

  test("a station that is settling: it is asked again, and the payment raises no issue", async () => {
    const scene = await scenes.open();
    let attempts = 0;
    world.stations.answer(scene.intent.intentId, "provider_confirm", () => {
      attempts += 1;
      return attempts < 3
        ? { ok: false, code: "settlement_in_progress", status: "processing" }
        : { ok: true, type: "accepted" };
    });
    await send(scene, paidBody(scenes.money(scene)));
    await waitFor("a third attempt", () => attempts === 3);
    expect(await scenes.issuesOf(scene.place)).toEqual([]);
  });
});

describe("events without a payment", () => {
  test.each([
    ["payment.declined", "payment_declined"],
    ["payment.cancelled", "buyer_cancelled"],
    ["payment.expired", "provider_expired"],
  ])("%s reports %s to the station", async (type, reason) => {
    const scene = await scenes.open();
    const body = JSON.stringify({ id: `e-${type}`, type, data: { reference: scene.reference } });
    expect((await send(scene, body)).status).toBe(200);
    const [failed] = await waitFor("a command", () => {
      const about = world.stations.about(scene.intent.intentId);
      return about.length > 0 && about;
    });
    expect(failed?.command).toEqual({ type: "provider_failed", intentId: scene.intent.intentId, reason });
  });

  test("events of unknown kinds are accepted and recorded, and repetitions get the first answer", async () => {
    const scene = await scenes.open();
    for (const type of ["payment.scanned", "constructor", "payment.refund.created"]) {
      const body = JSON.stringify({ id: `e-${type}`, type, data: { reference: scene.reference } });
      const first = await send(scene, body);
      expect(first.status).toBe(200);
      expect(await send(scene, body)).toEqual(first);
    }
    const rows = await world.database<{ outcome: string }[]>`
      select outcome from provider_callbacks where config_id = ${scene.configId}`;
    expect(rows.map((row) => row.outcome)).toEqual(["ignored", "ignored", "ignored"]);
    expect(world.stations.about(scene.intent.intentId)).toEqual([]);
  });

  test("a decline after the payment changes nothing", async () => {
    const scene = await scenes.open();
    await send(scene, paidBody(scenes.money(scene)));
    const declined = JSON.stringify({ id: "older", type: "payment.declined", data: { reference: scene.reference } });
    expect((await send(scene, declined)).status).toBe(200);
    await waitFor("a transaction", async () => (await transactions(scene.intent.orderId)).length > 0);
    expect(world.stations.about(scene.intent.intentId).map(({ command }) => command.type)).toEqual([
      "provider_confirm",
    ]);
  });
});

const pay = (scene: Scene) => send(scene, paidBody(scenes.money(scene)));
const check = ({ intent }: Scene) => world.ask(findRecordedConfirmation, { intentId: intent.intentId });
const endNow = async ({ intent }: Scene): Promise<void> => {
  await world.database`update provider_payments set expires_at = clock_timestamp() where intent_id = ${intent.intentId}`;
};

// The database's clock decides whether a confirmation was recorded before the intent's deadline.
describe("the check for a recorded confirmation", () => {
  test("before the deadline: it reports that the deadline has not passed", async () => {
    const scene = await scenes.open();
    expect(await check(scene)).toEqual({ isOver: false, providerReference: null });
  });

  test("an intent without a provider payment: it reports that the deadline has passed without a confirmation", async () => {
    expect(await world.ask(findRecordedConfirmation, { intentId: 77_777 })).toEqual({
      isOver: true,
      providerReference: null,
    });
  });

  test("one confirmation before the deadline and one after it: the check finds only the first", async () => {
    const [early, late] = await Promise.all([scenes.open(), scenes.open()]);
    for (const { intent } of [early, late]) world.stations.answer(intent.intentId, "provider_confirm", "silence");
    await pay(early);
    await Promise.all([early, late].map(endNow));
    await pay(late);
    expect(await check(early)).toEqual({ isOver: true, providerReference: `T-${early.intent.intentId}` });
    expect(await check(late)).toEqual({ isOver: true, providerReference: null });
  });

  test("a recording that begins before the deadline and locks the payment after it: no check finds it", async () => {
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
