import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Actor } from "../../machines/actor.ts";
import { listPayments } from "../../services/bus/messages/payments.ts";
import { getIntentTimeline, type Timeline } from "../../services/bus/messages/timelines.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { findCopiedIntent } from "../../services/db/intent-history.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { type AuditWorld, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot, type ScriptedStation } from "./scripted-station.ts";

let world: AuditWorld;
beforeAll(async () => {
  world = await startAuditWorld();
  await world.startAudit();
});
afterAll(() => world.stop());

const timelineOf = (station: ScriptedStation, intentId: number) => world.timelineOf(station, intentId);

/** The entries of a timeline, each as whether money moved and the sentence. */
function sentencesOf({ entries }: Timeline): string[] {
  return entries.map((entry) => `${entry.moneyMoved}: ${entry.sentence}`);
}

/** Writes order and transaction as the payment seam does. Returns the id of the transaction. */
async function settle(station: ScriptedStation, intentId: number, reference: string): Promise<number> {
  const { organizationId, stationId } = station.facts;
  const [order] = await world.database<{ order_id: number }[]>`
    insert into orders (organization_id, station_id, display_number, currency, total_minor, opened_by)
    values (${organizationId}, ${stationId}, ${intentId}, 'EUR', 1250, 7) returning order_id`;
  const [row] = await world.database<{ settled_as: number }[]>`
    select settled_as from settle_intent(${intentId}, 'attest:1', ${stationId}, ${order?.order_id ?? 0}, 'smart_pos', 1250, 'EUR', ${reference}, 7)`;
  return row?.settled_as ?? 0;
}

describe("a timeline", () => {
  test("a smart POS collection has ended: it has each step from the creation to the transaction", async () => {
    const station = await world.openStation();
    await station.collect(101, orderSnapshot(1));
    await station.do({ type: "intent_present", intentId: 101 }, station.companion);
    await station.report(101);
    await station.do({ type: "intent_attest", intentId: 101 }, station.cashier);
    const transactionId = await settle(station, 101, "RRN-77");
    await station.settled(101, transactionId);
    const timeline = await timelineOf(station, 101);
    expect(sentencesOf(timeline)).toEqual([
      "no: Ada started to collect EUR 12.50 for order 7 by smart POS on Counter terminal.",
      "no: Counter terminal fetched the collection.",
      "maybe: Counter terminal reported an approval, reference RRN-77; this is evidence and settles nothing.",
      "maybe: Ada attested that the payment was received, reference RRN-77.",
      `yes: Order 7 was settled with EUR 12.50 as transaction ${transactionId}, reference RRN-77.`,
    ]);
    expect(timeline).toMatchObject({
      intentId: 101,
      stationId: station.facts.stationId,
      status: "succeeded",
      moneyMoved: "yes",
      summary: `EUR 12.50 for order 7 was collected by smart POS as transaction ${transactionId}, reference RRN-77.`,
    });
    const [created, , , , succeeded] = timeline.entries;
    expect(created).toMatchObject({ type: "intent_created", actor: { kind: "cashier", id: 7, name: "Ada" } });
    expect(timeline.entries[1]?.actor).toEqual({
      kind: "device",
      id: station.facts.companionId,
      name: "Counter terminal",
    });
    expect(succeeded).toMatchObject({
      atMs: station.nowMs,
      actor: { kind: "settlement", id: 0, name: "the payment seam" },
      data: { transactionId, reference: "RRN-77", amountMinor: "1250", currency: "EUR" },
    });
  });

  test("a report after the end: it has the evidence, and money may have moved", async () => {
    const station = await world.openStation();
    await station.collect(201, orderSnapshot(1));
    await station.do({ type: "intent_cancel", intentId: 201 }, station.cashier);
    expect(await timelineOf(station, 201)).toMatchObject({
      status: "cancelled",
      moneyMoved: "no",
      summary: "EUR 12.50 for order 7 was not collected by smart POS: Ada cancelled.",
    });
    await station.report(201);
    const timeline = await timelineOf(station, 201);
    expect(sentencesOf(timeline).slice(1)).toEqual([
      "no: Ada cancelled the collection.",
      "maybe: Counter terminal reported an approval, reference RRN-77 after the collection had ended as cancelled; the report was refused and kept as evidence, because money may have moved.",
    ]);
    expect(timeline).toMatchObject({
      status: "cancelled",
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 was not collected by smart POS: Ada cancelled. Money may still have moved: compare with the payment application's own records.",
    });
  });

  test("a companion fetched and reported nothing: money may have moved, until the companion reports a decline", async () => {
    const station = await world.openStation();
    await station.collect(211, orderSnapshot(1));
    await station.do({ type: "intent_present", intentId: 211 }, station.companion);
    await station.do({ type: "intent_cancel", intentId: 211 }, station.cashier);
    const silent = await timelineOf(station, 211);
    expect(sentencesOf(silent).slice(2)).toEqual([
      "maybe: Ada cancelled the collection. Its device had fetched it and no outcome was recorded, so money may have moved.",
    ]);
    expect(silent).toMatchObject({
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 was not collected by smart POS: Ada cancelled. Money may still have moved: compare with the payment application's own records.",
    });
    await station.report(211, { outcome: "reported_declined", providerReference: "", providerCode: "05" });
    const declined = await timelineOf(station, 211);
    expect(sentencesOf(declined).slice(3)).toEqual([
      "no: Counter terminal reported a decline after the collection had ended as cancelled; the report was refused and kept as evidence.",
      "no: After this report there is no sign left that money moved for this collection.",
    ]);
    expect(declined).toMatchObject({
      moneyMoved: "no",
      summary: "EUR 12.50 for order 7 was not collected by smart POS: Ada cancelled.",
    });
  });

  test("a refused settlement: it has the refusal, and the change of the order that caused it", async () => {
    const station = await world.openStation();
    await station.collect(301, orderSnapshot(1));
    await station.report(301, { providerReference: "", providerCode: "" });
    const owner = { kind: "owner", id: 98 } as const;
    await world.database`
      insert into users (organization_id, user_id, email, name, role, password_hash) overriding system value
      values (${station.facts.organizationId}, 98, 'olga@example.test', 'Olga', 'owner', '-')`;
    await station.do({ type: "order_put", order: orderSnapshot(1, { amountMinor: "1500", revision: 2 }) }, owner);
    await station.do({ type: "order_put", order: orderSnapshot(2, { amountMinor: "9900" }) }, owner);
    await station.do({ type: "intent_attest", intentId: 301 }, station.cashier);
    const settlement = { kind: "settlement", id: 0 } as const;
    await station.do({ type: "settlement_refused", intentId: 301, code: "order_changed" }, settlement);
    const timeline = await timelineOf(station, 301);
    expect(sentencesOf(timeline).slice(1)).toEqual([
      "maybe: Counter terminal reported an approval; this is evidence and settles nothing.",
      "no: Olga set order 7 to EUR 15.00.",
      "maybe: Ada attested that the payment was received.",
      "no: The settlement was refused, because the order's amount was no longer the one that the guest was shown; nothing was recorded.",
    ]);
    expect(timeline).toMatchObject({
      status: "processing",
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 is being collected by smart POS and is processing; the last attestation was refused, because the order's amount was no longer the one that the guest was shown. Money may have moved, but nothing is settled yet.",
    });
  });

  test("an expiry after a decline: the system ended it, and no money moved", async () => {
    const station = await world.openStation();
    await station.collect(401, orderSnapshot(1));
    await station.report(401, { outcome: "reported_declined", providerReference: "", providerCode: "51" });
    station.nowMs += 3_600_000;
    await station.collect(402, orderSnapshot(2));
    const timeline = await timelineOf(station, 401);
    expect(sentencesOf(timeline).slice(1)).toEqual([
      "no: Counter terminal reported a decline; this is evidence and settles nothing.",
      "no: The collection reached its deadline and expired.",
    ]);
    expect(timeline.entries.at(-1)?.actor).toEqual({ kind: "system", id: 0, name: "the system" });
    expect(timeline.summary).toBe("EUR 12.50 for order 7 was not collected by smart POS: the collection expired.");
    expect(timeline.moneyMoved).toBe("no");
  });

  test.each([
    ["attested_terminal", 451, "the terminal's slip"],
    ["cash", 461, "the cash drawer"],
  ] as const)(
    "an attestation by %s was refused: it names the record that shows whether money moved",
    async (route, intentId, record) => {
      const station = await world.openStation();
      const { cashier } = station;
      await station.do({ type: "intent_create", route, intentId, order: orderSnapshot(1) }, cashier);
      await station.do({ type: "intent_attest", intentId, reference: "SLIP-1" }, cashier);
      const refusal = { type: "settlement_refused", intentId, code: "order_changed" } as const;
      await station.do(refusal, { kind: "settlement", id: 0 });
      await station.do({ type: "intent_cancel", intentId }, cashier);
      const { status, moneyMoved, summary } = await timelineOf(station, intentId);
      expect({ status, moneyMoved }).toEqual({ status: "cancelled", moneyMoved: "maybe" });
      expect(summary).toMatch(new RegExp(`Money may still have moved: compare with ${record}\\.$`));
    },
  );

  test("a settlement that the station has not recorded yet: it has the transaction", async () => {
    const station = await world.openStation();
    await station.collect(501, orderSnapshot(1));
    await station.report(501);
    await station.do({ type: "intent_attest", intentId: 501 }, station.cashier);
    expect(await timelineOf(station, 501)).toMatchObject({ status: "processing", moneyMoved: "maybe" });
    const transactionId = await settle(station, 501, "RRN-77");
    const timeline = await timelineOf(station, 501);
    expect(timeline.moneyMoved).toBe("yes");
    expect(timeline.summary).toBe(
      `EUR 12.50 for order 7 was collected by smart POS as transaction ${transactionId}, reference RRN-77; the station has not recorded it yet.`,
    );
  });

  test("a second approval after settlement: the summary warns that money may have moved twice", async () => {
    const station = await world.openStation();
    await station.collect(601, orderSnapshot(1));
    await station.report(601);
    await station.do({ type: "intent_attest", intentId: 601 }, station.cashier);
    await station.settled(601, await settle(station, 601, "RRN-77"));
    await station.report(601, { providerReference: "RRN-78" }, "2");
    const timeline = await timelineOf(station, 601);
    expect(timeline.moneyMoved).toBe("yes");
    expect(timeline.summary).toContain("so money may have moved a second time");
  });

  test("a collection with more than 500 steps: it has the creation and the newest steps", async () => {
    const station = await world.openStation();
    const order = orderSnapshot(1);
    const create = { type: "intent_create", route: "smart_pos", intentId: 701, order, lifetimeMs: 1_800_000 } as const;
    await station.do(create, station.cashier);
    for (let index = 0; index < 520; index += 1) {
      await station.report(701, { providerReference: `N-${index}` }, String(index));
      // The log keeps 64 commits of a station. A copier that is later than that has a gap.
      if (index % 32 === 31) await world.untilCopied();
    }
    const timeline = await timelineOf(station, 701);
    expect(timeline.entries).toHaveLength(500);
    expect(timeline.entries[0]?.type).toBe("intent_created");
    expect(timeline.entries.at(-1)?.data["providerReference"]).toBe("N-519");
    expect(timeline.entries[1]?.data["providerReference"]).toBe("N-21");
  });

  test("the copier is late for a short time: the timeline waits for the newest commit and is complete", async () => {
    const station = await world.openStation();
    await station.collect(801, orderSnapshot(1));
    await world.untilCopied();
    const { asked } = await world.database.begin(async (sql) => {
      // The copier writes this row first, so it waits while the test locks the row.
      await sql`select from audit_position for update`;
      await station.report(801);
      const asking = timelineOf(station, 801);
      const blocked = () => world.database`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      await expect.poll(async () => (await blocked()).length).toBeGreaterThan(0);
      return { asked: asking };
    });
    expect((await asked).entries.map((entry) => entry.type)).toEqual(["intent_created", "outcome_reported"]);
  });

  test("the copier is late for too long: the timeline states that the newest steps are missing", async () => {
    const station = await world.openStation();
    await station.collect(851, orderSnapshot(1));
    await world.untilCopied();
    // This connection may be idle in a transaction for longer than those of the service.
    const holding = openDatabase({ url: world.databaseUrl, maxConnections: 1, idleInTransactionMs: 20_000 });
    await holding.begin(async (sql) => {
      await sql`select from audit_position for update`;
      await station.report(851);
      const timeline = await timelineOf(station, 851);
      expect(timeline.summary).toContain("The newest steps are still being copied; ask again in a moment.");
      // The intent may exist without being copied yet, so the answer is not `not_found`.
      const asked = timelineOf(station, 999_999);
      await expect(asked).rejects.toMatchObject({ refusal: { code: "unavailable" } });
    });
    await closeDatabase(holding);
  });

  test("another organization's or unknown intent: not_found; a caller without the permission: permission_denied", async () => {
    const station = await world.openStation();
    const foreign = await world.openStation();
    await station.collect(901, orderSnapshot(1));
    const notFound = new RefusedError({ code: "not_found" });
    await expect(timelineOf(foreign, 901)).rejects.toThrow(notFound);
    await expect(timelineOf(station, 999_999)).rejects.toThrow(notFound);
    const powerless = { ...world.ownerOf(station), permissions: [] };
    const asked = world.ask(getIntentTimeline, { caller: powerless, intentId: 901 });
    await expect(asked).rejects.toMatchObject({ refusal: { code: "permission_denied" } });
  });
});

const PROVIDER: Actor = { kind: "provider", id: 81 };
const REGISTRY: Actor = { kind: "registry", id: 0 };
const SETTLEMENT: Actor = { kind: "settlement", id: 0 };

async function openQrStation(): Promise<ScriptedStation> {
  const station = await world.openStation();
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
  const timeline = await timelineOf(station, intentId);
  const { status, moneyMoved, summary } = timeline;
  return { status, moneyMoved, summary, sentences: sentencesOf(timeline) };
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
    const listed = async () => {
      const { payments } = await world.ask(listPayments, { caller: world.ownerOf(station) });
      return payments.find((payment) => payment.intentId === intentId)?.moneyMayHaveMoved;
    };
    expect(await listed()).toBe("qr_presented");
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
    expect(await listed()).toBe("late_money");
    await station.do({ type: "provider_cleared", intentId }, PROVIDER);
    expect((await copied())?.reasonSinceEnd).toBe("");
    expect(await listed()).toBe("");
    const differs = { type: "provider_money_differs", intentId, issue: "amount_mismatch", issueId: 1 } as const;
    await station.do(differs, PROVIDER, "differs", recalled);
    await station.do(confirmed, PROVIDER, "late:2", recalled);
    expect((await copied())?.reasonSinceEnd, "the stronger one").toBe("money_differs");
  });
});

describe("a timeline of a QR collection", () => {
  test("paid: it has each step from the creation to the transaction", async () => {
    const station = await openQrStation();
    await present(station, 2301);
    expect(await read(station, 2301)).toMatchObject({
      status: "presented",
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 is being collected by QR code and is presented. Money may have moved, but nothing is settled yet.",
    });
    await confirm(station, 2301);
    expect((await read(station, 2301)).summary).toBe(
      "EUR 12.50 for order 7 is being settled after the provider's confirmation; the outcome is not recorded yet. The provider reports that the guest paid; nothing is settled yet.",
    );
    await station.do({ type: "settlement_succeeded", intentId: 2301, transactionId: 9_001 }, SETTLEMENT);
    expect(await read(station, 2301)).toEqual({
      status: "succeeded",
      moneyMoved: "yes",
      summary: "EUR 12.50 for order 7 was collected by QR code.",
      sentences: [
        CREATED,
        SHOWN,
        CONFIRMED,
        "yes: Order 7 was settled with EUR 12.50 as transaction 9001, reference PAY-1.",
      ],
    });
  });

  test("a cashier's command applies a recorded confirmation: the sentence names the provider, not the cashier", async () => {
    const station = await openQrStation();
    await present(station, 2351);
    station.nowMs += 3_600_000;
    station.recordedConfirmation = { providerReference: "PAY-1" };
    await station.do({ type: "intent_cancel", intentId: 2351 }, station.cashier);
    expect((await read(station, 2351)).sentences).toEqual([CREATED, SHOWN, CONFIRMED]);
  });

  test("the provider declines: it has the reason, and no money moved", async () => {
    const station = await openQrStation();
    await present(station, 2401);
    await station.do({ type: "provider_failed", intentId: 2401, reason: "payment_declined" }, PROVIDER);
    expect(await read(station, 2401)).toEqual({
      status: "cancelled",
      moneyMoved: "no",
      summary: "EUR 12.50 for order 7 was not collected by QR code: the provider declined the payment.",
      sentences: [CREATED, SHOWN, "no: The collection ended, because the provider declined the payment."],
    });
  });

  test("cancelled after the QR code was shown: money may have moved, until the provider reports the outcome", async () => {
    const station = await openQrStation();
    await present(station, 2501);
    await station.do({ type: "intent_cancel", intentId: 2501 }, station.cashier);
    expect(await read(station, 2501)).toMatchObject({
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 was not collected by QR code: Ada cancelled. Money may still have moved: compare with the payment provider's own records.",
    });
    await station.do({ type: "provider_cleared", intentId: 2501 }, PROVIDER);
    const cleared = await read(station, 2501);
    expect([cleared.moneyMoved, cleared.sentences.at(-1)]).toEqual([
      "no",
      "no: The payment provider reported for certain that no money moved for this collection.",
    ]);
    await confirm(station, 2501);
    expect(await read(station, 2501)).toMatchObject({
      moneyMoved: "yes",
      summary:
        "EUR 12.50 for order 7 was not collected by QR code: Ada cancelled. The provider reports that the guest paid, and nothing is settled: an issue names it.",
    });
  });

  test("the provider asserted a payment that differs: money may have moved, also after a decline", async () => {
    const station = await openQrStation();
    await present(station, 2801);
    const differs = { type: "provider_money_differs", intentId: 2801, issue: "amount_mismatch", issueId: 1 } as const;
    await station.do(differs, PROVIDER, "provider:differs:2801");
    await station.do({ type: "provider_failed", intentId: 2801, reason: "provider_expired" }, PROVIDER);
    await station.do({ type: "end_reported", intentId: 2801 }, { kind: "system", id: 0 });
    expect(await read(station, 2801)).toEqual({
      status: "cancelled",
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 was not collected by QR code: the payment expired at the provider. The provider asserts money that does not fit this collection; it settled nothing, and an issue names it.",
      sentences: [
        CREATED,
        SHOWN,
        "maybe: The payment provider asserted money for this collection of another amount; it settled nothing, and an issue names it.",
        "no: The collection ended, because the payment expired at the provider.",
        "no: The provider's side recorded that the collection had ended.",
      ],
    });
    await station.do({ type: "provider_cleared", intentId: 2801 }, PROVIDER);
    expect((await read(station, 2801)).moneyMoved, "the payment that differs existed, whatever its result").toBe(
      "maybe",
    );
    await station.do({ ...differs, issue: "a_kind_of_tomorrow" }, PROVIDER, "provider:differs:2801:2");
    const again = await read(station, 2801);
    expect([again.moneyMoved, again.sentences.at(-1)]).toEqual([
      "maybe",
      "maybe: The payment provider asserted money for this collection that does not fit (a_kind_of_tomorrow); it settled nothing, and an issue names it.",
    ]);
  });

  test("the order was paid in another way: this collection may have been paid too", async () => {
    const station = await openQrStation();
    await present(station, 2851);
    const order = { ...orderSnapshot(2851), status: "paid", revision: 9 } as const;
    await station.do({ type: "order_put", order }, SETTLEMENT);
    const { status, moneyMoved, summary, sentences } = await read(station, 2851);
    expect([status, moneyMoved]).toEqual(["cancelled", "maybe"]);
    expect(summary).toBe(
      "EUR 12.50 for order 7 was not collected by QR code: the order was paid in another way. Money may still have moved: compare with the payment provider's own records.",
    );
    expect(sentences.slice(-2)).toEqual([
      "no: The payment seam closed order 7 as paid.",
      "maybe: The collection ended, because the order was paid in another way; it had been handed over already, so money may have moved twice.",
    ]);
  });

  test("the cashier collects again: the second timeline has the confirmation about the first collection", async () => {
    const station = await openQrStation();
    await present(station, 2601);
    await station.do({ type: "intent_cancel", intentId: 2601 }, station.cashier);
    const order = orderSnapshot(2601);
    const again = {
      type: "intent_create",
      route: "cash",
      intentId: 2602,
      order,
      confirmsMoneyMayHaveMoved: true,
    } as const;
    await station.do(again, station.cashier);
    expect((await read(station, 2602)).sentences).toEqual([
      "no: Ada started to collect EUR 12.50 for order 7 by cash.",
      "no: Ada confirmed to collect although collection 2601 of the same order may have moved money.",
    ]);
  });

  test("the provider asserts a second payment after settlement: the timeline has the second payment", async () => {
    const station = await openQrStation();
    await present(station, 2701);
    await confirm(station, 2701);
    await station.do({ type: "settlement_succeeded", intentId: 2701, transactionId: 9_002 }, SETTLEMENT);
    await confirm(station, 2701, "PAY-2");
    const { sentences } = await read(station, 2701);
    expect(sentences.at(-1)).toBe(
      "yes: The payment provider asserted money that this collection, succeeded already, cannot take, reference PAY-2; it settled nothing and a person must check it.",
    );
  });
});
