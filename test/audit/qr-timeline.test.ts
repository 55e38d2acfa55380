import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Actor } from "../../machines/actor.ts";
import { getIntentTimeline } from "../../services/bus/messages/timelines.ts";
import { findCopiedIntent } from "../../services/db/intent-history.ts";
import { type AuditWorld, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot, type ScriptedStation } from "./scripted-station.ts";

let world: AuditWorld;
beforeAll(async () => {
  world = await startAuditWorld();
  await world.startAudit();
});
afterAll(() => world.stop());

const PROVIDER: Actor = { kind: "provider", id: 81 };
const REGISTRY: Actor = { kind: "registry", id: 0 };
const SETTLEMENT: Actor = { kind: "settlement", id: 0 };

async function openQrStation(): Promise<ScriptedStation> {
  const station = await (await world.newStation()).open();
  await station.do({ type: "provider_put", provider: { configId: PROVIDER.id, revision: 1 } }, REGISTRY);
  return station;
}

async function present(station: ScriptedStation, intentId: number, orderId = intentId): Promise<void> {
  const order = orderSnapshot(orderId);
  await station.do({ type: "intent_create", route: "dynamic_qr", intentId, order }, station.cashier);
  const qr = { type: "qr_ready", intentId, qrPayload: "000201", providerReference: "PAY-1" } as const;
  await station.do(qr, PROVIDER);
}

const confirm = async (station: ScriptedStation, intentId: number, providerReference = "PAY-1") =>
  await station.do({ type: "provider_confirm", intentId, providerReference }, PROVIDER, `confirm:${providerReference}`);

async function read(station: ScriptedStation, intentId: number) {
  const timeline = await world.ask(getIntentTimeline, { caller: world.ownerOf(station), intentId });
  const { status, moneyMoved, summary, entries } = timeline;
  return { status, moneyMoved, summary, told: entries.map((entry) => `${entry.moneyMoved}: ${entry.sentence}`) };
}

const CREATED = "no: Ada started to collect EUR 12.50 for order 7 by QR code.";
const SHOWN = "maybe: The QR code was shown for the guest to scan, reference PAY-1.";
const CONFIRMED = "yes: The payment provider confirmed that the guest paid, reference PAY-1.";

describe("an ended intent that has left the state of its station", () => {
  test("later evidence: the copied intent has the reason that it gives, until the provider takes it back", async () => {
    const station = await openQrStation();
    const intentId = 8_001;
    await present(station, intentId);
    await station.do({ type: "intent_cancel", intentId }, station.cashier);
    const copied = async () => {
      await world.untilCopied();
      const key = { stationId: station.facts.stationId, intentId };
      return (await findCopiedIntent(world.database, key))?.intent;
    };
    const recalled = await copied();
    for (let turn = 1; turn <= 8; turn += 1) {
      const other = intentId + turn;
      const order = orderSnapshot(other);
      await station.do({ type: "intent_create", route: "cash", intentId: other, order }, station.cashier);
      await station.do({ type: "intent_cancel", intentId: other }, station.cashier);
    }
    expect(station.state?.ended.some((intent) => intent.intentId === intentId)).toBe(false);
    expect([recalled?.reasonSinceEnd, (await copied())?.reasonSinceEnd]).toEqual(["qr_presented", "qr_presented"]);
    const confirmed = { type: "provider_confirm", intentId, providerReference: "PAY-1" } as const;
    await station.do(confirmed, PROVIDER, "late", recalled);
    expect(await copied()).toEqual({ ...recalled, reasonSinceEnd: "late_money" });
    await station.do({ type: "provider_cleared", intentId }, PROVIDER);
    expect((await copied())?.reasonSinceEnd).toBe("");
    const differs = { type: "provider_money_differs", intentId, issue: "amount_mismatch", issueId: 1 } as const;
    await station.do(differs, PROVIDER, "differs", recalled);
    await station.do(confirmed, PROVIDER, "late:2", recalled);
    expect((await copied())?.reasonSinceEnd, "the stronger one").toBe("money_differs");
  });
});

describe("a timeline of a QR collection", () => {
  test("tells the way to paid", async () => {
    const station = await openQrStation();
    await present(station, 301);
    expect(await read(station, 301)).toMatchObject({
      status: "presented",
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 is being collected by QR code and is presented. Money may have moved, but nothing is settled yet.",
    });
    await confirm(station, 301);
    expect((await read(station, 301)).summary).toBe(
      "EUR 12.50 for order 7 is being settled after the provider's confirmation; the outcome is not recorded yet. The provider says that the guest paid; nothing is settled yet.",
    );
    await station.do({ type: "settlement_succeeded", intentId: 301, transactionId: 9_001 }, SETTLEMENT);
    expect(await read(station, 301)).toEqual({
      status: "succeeded",
      moneyMoved: "yes",
      summary: "EUR 12.50 for order 7 was collected by QR code.",
      told: [
        CREATED,
        SHOWN,
        CONFIRMED,
        "yes: Order 7 was settled with EUR 12.50 as transaction 9001, reference PAY-1.",
      ],
    });
  });

  test("names the provider of a recorded confirmation that a cashier's command brought in", async () => {
    const station = await openQrStation();
    await present(station, 351);
    station.nowMs += 3_600_000;
    station.recordedConfirmation = { providerReference: "PAY-1" };
    await station.do({ type: "intent_cancel", intentId: 351 }, station.cashier);
    expect((await read(station, 351)).told).toEqual([CREATED, SHOWN, CONFIRMED]);
  });

  test("tells why the provider's side ended it, and that a decline moved nothing", async () => {
    const station = await openQrStation();
    await present(station, 401);
    await station.do({ type: "provider_failed", intentId: 401, reason: "payment_declined" }, PROVIDER);
    expect(await read(station, 401)).toEqual({
      status: "cancelled",
      moneyMoved: "no",
      summary: "EUR 12.50 for order 7 was not collected by QR code: the provider declined the payment.",
      told: [CREATED, SHOWN, "no: The collection ended, because the provider declined the payment."],
    });
  });

  test("leaves it open whether money moved until the provider says so", async () => {
    const station = await openQrStation();
    await present(station, 501);
    await station.do({ type: "intent_cancel", intentId: 501 }, station.cashier);
    expect(await read(station, 501)).toMatchObject({
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 was not collected by QR code: Ada cancelled. Money may have moved all the same: compare with the payment provider's own records.",
    });
    await station.do({ type: "provider_cleared", intentId: 501 }, PROVIDER);
    const cleared = await read(station, 501);
    expect([cleared.moneyMoved, cleared.told.at(-1)]).toEqual([
      "no",
      "no: The payment provider said for certain that no money moved for this collection.",
    ]);
    await confirm(station, 501);
    expect(await read(station, 501)).toMatchObject({
      moneyMoved: "yes",
      summary:
        "EUR 12.50 for order 7 was not collected by QR code: Ada cancelled. The provider says that the guest paid, and nothing is settled: an issue names it.",
    });
  });

  test("leaves it open whether money moved once the provider has asserted money that differs, whatever it says of a decline", async () => {
    const station = await openQrStation();
    await present(station, 801);
    const differs = { type: "provider_money_differs", intentId: 801, issue: "amount_mismatch", issueId: 1 } as const;
    await station.do(differs, PROVIDER, "provider:differs:801");
    await station.do({ type: "provider_failed", intentId: 801, reason: "provider_expired" }, PROVIDER);
    await station.do({ type: "end_reported", intentId: 801 }, { kind: "system", id: 0 });
    expect(await read(station, 801)).toEqual({
      status: "cancelled",
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 was not collected by QR code: the payment expired at the provider. The provider asserts money that does not fit this collection; it settled nothing, and an issue names it.",
      told: [
        CREATED,
        SHOWN,
        "maybe: The payment provider asserted money for this collection of another amount; it settled nothing, and an issue names it.",
        "no: The collection ended, because the payment expired at the provider.",
        "no: The provider's side recorded that the collection had ended.",
      ],
    });
    await station.do({ type: "provider_cleared", intentId: 801 }, PROVIDER);
    expect((await read(station, 801)).moneyMoved, "that money was there, whatever became of it").toBe("maybe");
    await station.do({ ...differs, issue: "a_kind_of_tomorrow" }, PROVIDER, "provider:differs:801:2");
    const again = await read(station, 801);
    expect([again.moneyMoved, again.told.at(-1)]).toEqual([
      "maybe",
      "maybe: The payment provider asserted money for this collection that does not fit (a_kind_of_tomorrow); it settled nothing, and an issue names it.",
    ]);
  });

  test("tells that the order was paid by another way, and that this one may have been paid as well", async () => {
    const station = await openQrStation();
    await present(station, 851);
    const order = { ...orderSnapshot(851), status: "paid", revision: 9 } as const;
    await station.do({ type: "order_put", order }, SETTLEMENT);
    const { status, moneyMoved, summary, told } = await read(station, 851);
    expect([status, moneyMoved]).toEqual(["cancelled", "maybe"]);
    expect(summary).toBe(
      "EUR 12.50 for order 7 was not collected by QR code: the order was paid by another way. Money may have moved all the same: compare with the payment provider's own records.",
    );
    expect(told.slice(-2)).toEqual([
      "no: The payment seam closed order 7 as paid.",
      "maybe: The collection ended, because the order was paid by another way; it had been handed over already, so money may have moved twice.",
    ]);
  });

  test("tells that the cashier collected again with open eyes", async () => {
    const station = await openQrStation();
    await present(station, 601);
    await station.do({ type: "intent_cancel", intentId: 601 }, station.cashier);
    const order = orderSnapshot(601);
    const again = {
      type: "intent_create",
      route: "cash",
      intentId: 602,
      order,
      confirmsMoneyMayHaveMoved: true,
    } as const;
    await station.do(again, station.cashier);
    expect((await read(station, 602)).told).toEqual([
      "no: Ada started to collect EUR 12.50 for order 7 by cash.",
      "no: Ada confirmed to collect although collection 601 of the same order may have moved money.",
    ]);
  });

  test("names a second payment of what is paid", async () => {
    const station = await openQrStation();
    await present(station, 701);
    await confirm(station, 701);
    await station.do({ type: "settlement_succeeded", intentId: 701, transactionId: 9_002 }, SETTLEMENT);
    await confirm(station, 701, "PAY-2");
    const { told } = await read(station, 701);
    expect(told.at(-1)).toBe(
      "yes: The payment provider asserted money that this collection, succeeded already, cannot take, reference PAY-2; it settled nothing and a person must check it.",
    );
  });
});
