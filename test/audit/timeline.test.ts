import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { getIntentTimeline } from "../../services/bus/messages/timelines.ts";
import { RefusedError } from "../../services/bus/refusals.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { type AuditWorld, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot, type ScriptedStation } from "./scripted-station.ts";

let world: AuditWorld;
beforeAll(async () => {
  world = await startAuditWorld();
  await world.startAudit();
});
afterAll(() => world.stop());

const openStation = async () => await (await world.newStation()).open();

async function timelineOf(station: ScriptedStation, intentId: number) {
  return await world.ask(getIntentTimeline, { caller: world.ownerOf(station), intentId });
}

/** A timeline as a person reads it: money, then the sentence. */
function told(timeline: Awaited<ReturnType<typeof timelineOf>>): string[] {
  return timeline.entries.map((entry) => `${entry.moneyMoved}: ${entry.sentence}`);
}

/** The order and the transaction as the payment seam writes them; returns the transaction's id. */
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
  test("tells a whole smart POS collection at once after its end", async () => {
    const station = await openStation();
    await station.collect(101, orderSnapshot(1));
    await station.do({ type: "intent_present", intentId: 101 }, station.companion);
    await station.report(101);
    await station.do({ type: "intent_attest", intentId: 101 }, station.cashier);
    const transactionId = await settle(station, 101, "RRN-77");
    await station.settled(101, transactionId);
    const timeline = await timelineOf(station, 101);
    expect(told(timeline)).toEqual([
      "no: Ada started to collect EUR 12.50 for order 7 by smart POS on Counter terminal.",
      "no: Counter terminal fetched the collection.",
      "maybe: Counter terminal reported an approval, reference RRN-77, code 00; this is evidence and settles nothing.",
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

  test("tells late evidence and that money may have moved", async () => {
    const station = await openStation();
    await station.collect(201, orderSnapshot(1));
    await station.do({ type: "intent_cancel", intentId: 201 }, station.cashier);
    expect(await timelineOf(station, 201)).toMatchObject({
      status: "cancelled",
      moneyMoved: "no",
      summary: "EUR 12.50 for order 7 was not collected by smart POS: Ada cancelled.",
    });
    await station.report(201);
    const timeline = await timelineOf(station, 201);
    expect(told(timeline).slice(1)).toEqual([
      "no: Ada cancelled the collection.",
      "maybe: Counter terminal reported an approval, reference RRN-77, code 00 after the collection had ended as cancelled; the report was refused and kept as evidence, because money may have moved.",
    ]);
    expect(timeline).toMatchObject({
      status: "cancelled",
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 was not collected by smart POS: Ada cancelled. Money may have moved all the same: compare with the payment application's own records.",
    });
  });

  test("a companion that fetched and reported nothing: money may have moved, until it reports a decline", async () => {
    const station = await openStation();
    await station.collect(211, orderSnapshot(1));
    await station.do({ type: "intent_present", intentId: 211 }, station.companion);
    await station.do({ type: "intent_cancel", intentId: 211 }, station.cashier);
    const silent = await timelineOf(station, 211);
    expect(told(silent).slice(2)).toEqual([
      "maybe: Ada cancelled the collection. Its device had fetched it and no outcome was recorded, so money may have moved.",
    ]);
    expect(silent).toMatchObject({
      moneyMoved: "maybe",
      summary:
        "EUR 12.50 for order 7 was not collected by smart POS: Ada cancelled. Money may have moved all the same: compare with the payment application's own records.",
    });
    await station.report(211, { outcome: "reported_declined", providerReference: "", providerCode: "05" });
    const declined = await timelineOf(station, 211);
    expect(told(declined).slice(3)).toEqual([
      "no: Counter terminal reported a decline, code 05 after the collection had ended as cancelled; the report was refused and kept as evidence.",
      "no: After this report there is no sign left that money moved for this collection.",
    ]);
    expect(declined).toMatchObject({
      moneyMoved: "no",
      summary: "EUR 12.50 for order 7 was not collected by smart POS: Ada cancelled.",
    });
  });

  test("tells a refused settlement, and the change of the order that caused it", async () => {
    const station = await openStation();
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
    expect(told(timeline).slice(1)).toEqual([
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

  test("tells an expiry as nobody's doing, and a decline as no money", async () => {
    const station = await openStation();
    await station.collect(401, orderSnapshot(1));
    await station.report(401, { outcome: "reported_declined", providerReference: "", providerCode: "51" });
    station.nowMs += 3_600_000;
    await station.collect(402, orderSnapshot(2));
    const timeline = await timelineOf(station, 401);
    expect(told(timeline).slice(1)).toEqual([
      "no: Counter terminal reported a decline, code 51; this is evidence and settles nothing.",
      "no: The collection reached its deadline and expired.",
    ]);
    expect(timeline.entries.at(-1)?.actor).toEqual({ kind: "system", id: 0, name: "the system" });
    expect(timeline.summary).toBe("EUR 12.50 for order 7 was not collected by smart POS: the collection expired.");
    expect(timeline.moneyMoved).toBe("no");
  });

  test.each([
    ["attested_terminal", 451, "the terminal's slip"],
    ["cash", 461, "the cash drawer"],
  ] as const)("names the record of %s that may show whether money moved", async (route, intentId, record) => {
    const station = await openStation();
    const { cashier } = station;
    await station.do({ type: "intent_create", route, intentId, order: orderSnapshot(1) }, cashier);
    await station.do({ type: "intent_attest", intentId, reference: "SLIP-1" }, cashier);
    const refusal = { type: "settlement_refused", intentId, code: "order_changed" } as const;
    await station.do(refusal, { kind: "settlement", id: 0 });
    await station.do({ type: "intent_cancel", intentId }, cashier);
    const { status, moneyMoved, summary } = await timelineOf(station, intentId);
    expect({ status, moneyMoved }).toEqual({ status: "cancelled", moneyMoved: "maybe" });
    expect(summary).toMatch(new RegExp(`Money may have moved all the same: compare with ${record}\\.$`));
  });

  test("knows of a settlement that the station has yet to take note of", async () => {
    const station = await openStation();
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

  test("warns of a second approval after a settlement", async () => {
    const station = await openStation();
    await station.collect(601, orderSnapshot(1));
    await station.report(601);
    await station.do({ type: "intent_attest", intentId: 601 }, station.cashier);
    await station.settled(601, await settle(station, 601, "RRN-77"));
    await station.report(601, { providerReference: "RRN-78" }, "2");
    const timeline = await timelineOf(station, 601);
    expect(timeline.moneyMoved).toBe("yes");
    expect(timeline.summary).toContain("so money may have moved a second time");
  });

  test("has the creation and the newest steps of a collection with more than 500", async () => {
    const station = await openStation();
    const order = orderSnapshot(1);
    const create = { type: "intent_create", route: "smart_pos", intentId: 701, order, lifetimeMs: 1_800_000 } as const;
    await station.do(create, station.cashier);
    for (let index = 0; index < 520; index += 1) {
      await station.report(701, { providerReference: `N-${index}` }, String(index));
      // The log keeps 64 commits of a station; a copier that falls further behind notes a gap.
      if (index % 32 === 31) await world.untilCopied();
    }
    const timeline = await timelineOf(station, 701);
    expect(timeline.entries).toHaveLength(500);
    expect(timeline.entries[0]?.type).toBe("intent_created");
    expect(timeline.entries.at(-1)?.data["providerReference"]).toBe("N-519");
    expect(timeline.entries[1]?.data["providerReference"]).toBe("N-21");
  });

  test("is complete although the copier was held up, because it waits for the newest commit", async () => {
    const station = await openStation();
    await station.collect(801, orderSnapshot(1));
    await world.untilCopied();
    const { asked } = await world.database.begin(async (sql) => {
      // The copier writes this row first, so it waits for as long as it is locked here.
      await sql`select from audit_position for update`;
      await station.report(801);
      const asking = timelineOf(station, 801);
      await new Promise((resolve) => setTimeout(resolve, 300));
      return { asked: asking };
    });
    expect((await asked).entries.map((entry) => entry.type)).toEqual(["intent_created", "outcome_reported"]);
  });

  test("says so when the newest steps could not be waited for", async () => {
    const station = await openStation();
    await station.collect(851, orderSnapshot(1));
    await world.untilCopied();
    // Longer than the service's own transactions may be idle.
    const holding = openDatabase({ url: world.databaseUrl, maxConnections: 1, idleInTransactionMs: 20_000 });
    await holding.begin(async (sql) => {
      await sql`select from audit_position for update`;
      await station.report(851);
      const timeline = await timelineOf(station, 851);
      expect(timeline.summary).toContain("The newest steps are still being copied; ask again in a moment.");
      // An intent that the copy has not seen yet may exist: it is not said that it does not.
      const asked = timelineOf(station, 999_999);
      await expect(asked).rejects.toMatchObject({ refusal: { code: "unavailable" } });
    });
    await closeDatabase(holding);
  });

  test("is the organization's own", async () => {
    const station = await openStation();
    const foreign = await openStation();
    await station.collect(901, orderSnapshot(1));
    const notFound = new RefusedError({ code: "not_found" });
    await expect(timelineOf(foreign, 901)).rejects.toThrow(notFound);
    await expect(timelineOf(station, 999_999)).rejects.toThrow(notFound);
    const nobody = { ...world.ownerOf(station), permissions: [] };
    const asked = world.ask(getIntentTimeline, { caller: nobody, intentId: 901 });
    await expect(asked).rejects.toMatchObject({ refusal: { code: "permission_denied" } });
  });
});
