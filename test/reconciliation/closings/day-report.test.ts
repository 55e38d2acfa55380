/** The report of a filial's day: its totals are those of real payments and lines, and its parts add up to them. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { DayTotals } from "../../../services/bus/messages/day-report.ts";
import { canonicalTimeZone } from "../../../services/bus/time-zones.ts";
import { reportDay } from "../../../services/reconciliation/day-report.ts";
import { DAY, type RunDatabase, type RunWorld, startRunDatabase } from "../matching/run-world.ts";
import { operator, refusalOf } from "./closing-world.ts";

let databases: RunDatabase;
let world: RunWorld;
beforeAll(async () => {
  databases = await startRunDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  world = await databases.openWorld();
});

const unique = (): string => randomUUID();
type Route = "cash" | "attested_terminal" | "smart_pos" | "dynamic_qr";

/** An order that the payment seam has settled. */
async function settle(route: Route, amountMinor: number, reference = unique()): Promise<string> {
  const { organizationId, stationId, database, configId } = world;
  const [order] = await database<[{ order_id: number; intent_id: number }]>`
    insert into orders (organization_id, station_id, display_number, status, currency, total_minor, opened_by)
    values (${organizationId}, ${stationId}, ${(orders += 1)}, 'open', 'EUR', ${amountMinor}, 7)
    returning order_id, order_id + 500000 as intent_id`;
  let moneyKey: string | null = null;
  if (route === "dynamic_qr") {
    const soon = new Date(Date.now() + 60_000);
    moneyKey = `provider:${configId}:money:${reference}`;
    await database`
      insert into provider_payments (intent_id, config_id, organization_id, station_id, order_display_number, reference, account,
        amount_minor, currency, expires_at, asked_until)
      values (${order.intent_id}, ${configId}, ${organizationId}, ${stationId}, ${orders}, ${reference}, 'M-1', ${amountMinor}, 'EUR',
        ${soon}, ${soon})`;
  }
  const [settled] = await database<[{ settled_as: number | null; refusal: string | null }]>`
    select settled_as, refusal from settle_intent(${order.intent_id}::bigint, ${unique()}, ${stationId}::bigint, ${order.order_id}::bigint,
      ${route}, ${amountMinor}::bigint, 'EUR', ${reference}, 7::bigint, ${moneyKey}::text)`;
  expect(settled.refusal).toBe(null);
  return reference;
}
let orders = 0;

async function report(asked: {
  readonly day: string;
  readonly mode?: "test" | "live";
  readonly startsAtMinute?: number;
}) {
  const { mode = "live", startsAtMinute = 0, day } = asked;
  return await reportDay(world, { caller: operator(world), filialId: world.filialId, day, mode, startsAtMinute });
}

const sumOf = (parts: Readonly<Record<string, { readonly count: number; readonly minor: string }>>) => {
  const { total: _, ...rest } = parts;
  const each = Object.values(rest);
  return {
    count: each.reduce((sum, { count }) => sum + count, 0),
    minor: String(each.reduce((sum, { minor }) => sum + BigInt(minor), 0n)),
  };
};

function expectToAddUp({ settled, electronic, statement, openDifferences }: DayTotals): void {
  expect(sumOf(settled)).toEqual(settled.total);
  expect(sumOf(electronic)).toEqual(electronic.total);
  expect(sumOf({ cash: settled.cash, electronic: electronic.total })).toEqual(settled.total);
  expect(sumOf(statement)).toEqual(statement.total);
  expect(sumOf(Object.fromEntries(openDifferences.kinds.map((kind) => [kind.kind, kind])))).toEqual(
    openDifferences.total,
  );
}

describe("the report of a day", () => {
  test("contains the settlements of all four routes", async () => {
    // The business day begins twelve hours from now, so that it does not end while the orders are settled.
    const nowMs = Date.now();
    const startsAtMinute = (Math.floor(nowMs / 60_000) + 720) % 1_440;
    const day = new Date(nowMs - startsAtMinute * 60_000).toISOString().slice(0, 10);
    await settle("cash", 1_000);
    await settle("cash", 250);
    await settle("attested_terminal", 2_001);
    await settle("smart_pos", 402);
    await settle("dynamic_qr", 8_003);
    const [total] = (await report({ day, startsAtMinute })).totals;
    if (total === undefined) throw new Error("There is no currency.");
    expect(total.settled).toEqual({
      cash: { count: 2, minor: "1250" },
      attestedTerminal: { count: 1, minor: "2001" },
      smartPos: { count: 1, minor: "402" },
      dynamicQr: { count: 1, minor: "8003" },
      total: { count: 5, minor: "11656" },
    });
    expect(total.electronic).toMatchObject({ expected: { count: 3 }, total: { count: 3, minor: "10406" } });
    expectToAddUp(total);
  });

  test("contains the statement's payments, tips, fees and payouts, and the results of the payments", async () => {
    const fits = unique();
    const more = unique();
    const refund = unique();
    await world.pay({ route: "attested_terminal", reference: fits, amountMinor: 1_250 });
    await world.pay({ route: "smart_pos", reference: more, amountMinor: 2_000 });
    await world.pay({ route: "smart_pos", reference: unique(), amountMinor: 700 });
    await world.pay({ route: "cash", reference: "", amountMinor: 900 });
    const name = unique;
    await world.importLines(world.terminalAccountId, [
      { name: name(), providerReference: fits, amountMinor: 1_250, feeMinor: -20, netMinor: 1_230 },
      { name: name(), providerReference: more, amountMinor: 2_100, tipMinor: 100, feeMinor: -30, netMinor: 2_070 },
      { name: name(), kind: "refund", providerReference: refund, amountMinor: -300 },
      { name: name(), kind: "fee", amountMinor: -99 },
      { name: name(), kind: "payout", amountMinor: -2_900 },
      { name: name(), kind: "planned_payout", amountMinor: -5_000 },
      { name: name(), kind: "not_money", amountMinor: 4_000 },
      { name: name(), kind: "cash_payment", amountMinor: 900 },
      { name: name(), kind: "adjustment", amountMinor: 5 },
    ]);
    await world.run(world.terminalAccountId);
    const { totals, accounts } = await report({ day: DAY });
    expect(accounts.map(({ accountId }) => accountId)).toContain(world.terminalAccountId);
    const [total] = totals;
    if (total === undefined) throw new Error("There is no currency.");
    expect(total.statement).toEqual({
      payments: { count: 2, minor: "3350" },
      refunds: { count: 1, minor: "-300" },
      chargebacks: { count: 0, minor: "0" },
      fees: { count: 1, minor: "-149" },
      payouts: { count: 1, minor: "-2900" },
      bank: { count: 0, minor: "0" },
      other: { count: 1, minor: "5" },
      total: { count: 6, minor: "6" },
    });
    expect(total.tips).toEqual({ count: 1, minor: "100" });
    expect(total.electronic).toMatchObject({
      matched: { count: 1, minor: "1250" },
      differing: { count: 2, minor: "2700" },
      total: { count: 3, minor: "3950" },
    });
    expect(total.openDifferences.kinds.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(["missing_in_statement", "refund_not_registered", "tip"]),
    );
    expectToAddUp(total);
  });

  test("begins when the business day begins, and keeps test payments apart", async () => {
    await world.pay({ route: "cash", reference: "", amountMinor: 900 });
    const noon = 12 * 60;
    const count = async (asked: Parameters<typeof report>[0]) =>
      (await report(asked)).totals[0]?.settled.total.count ?? 0;
    expect(await count({ day: DAY, startsAtMinute: noon })).toBe(1);
    expect(await count({ day: DAY, startsAtMinute: noon + 1 })).toBe(0);
    expect(await count({ day: "2026-03-09", startsAtMinute: noon + 1 })).toBe(1);
    expect(await count({ day: DAY, mode: "test" })).toBe(0);
  });

  test("an unreadable row is open in the report of each day of its file", async () => {
    const importId = await world.importLines(world.terminalAccountId, [], { from: "2026-03-05", to: "2026-03-20" });
    await world.database`
      insert into statement_malformed (import_id, position, column_name, reason, raw)
      values (${importId}, 1, 'Amount', 'It is no amount.', 'x')`;
    await world.run(world.terminalAccountId);
    const open = async (day: string) => (await report({ day })).openWithoutAmount;
    const row = [{ kind: "malformed_line", count: 1 }];
    expect(await Promise.all(["2026-03-04", "2026-03-05", "2026-03-20", "2026-03-21"].map(open))).toEqual([
      [],
      row,
      row,
      [],
    ]);
  });

  test("a day in summer, in zones that PostgreSQL reads in its own way: it begins at the zone's midnight", async () => {
    const request = { caller: operator(world), filialId: world.filialId, mode: "live" as const, startsAtMinute: 0 };
    const beginning = async (timeZone: string) => {
      const { fromMs } = await reportDay(world, { ...request, day: "2026-07-01", timeZone });
      return new Date(fromMs).toISOString();
    };
    expect(await beginning("CET")).toBe("2026-06-30T22:00:00.000Z");
    expect(await beginning("europe/berlin")).toBe("2026-06-30T22:00:00.000Z");
    expect(await beginning("Etc/GMT-2")).toBe("2026-06-30T22:00:00.000Z");
    for (const offset of ["+02:00", "+0200"]) expect(await refusalOf(beginning(offset))).toBe("invalid_request");
  });

  test("clocks go back to midnight: the day begins at the first midnight, where the day before ends", async () => {
    const request = { caller: operator(world), filialId: world.filialId, mode: "live" as const, startsAtMinute: 0 };
    const instants = async (day: string) => {
      const { fromMs, toMs } = await reportDay(world, { ...request, day, timeZone: "Atlantic/Azores" });
      return [fromMs, toMs].map((ms) => new Date(ms).toISOString());
    };
    const first = "2026-10-25T00:00:00.000Z";
    expect(await instants("2026-10-24")).toEqual(["2026-10-24T00:00:00.000Z", first]);
    expect(await instants("2026-10-25")).toEqual([first, "2026-10-26T01:00:00.000Z"]);
  });

  test("each time zone that a request may name: PostgreSQL and the runtime have the same clock", async () => {
    const names = Intl.supportedValuesOf("timeZone").map((name) => canonicalTimeZone(name) ?? "");
    expect(names).not.toContain("");
    expect(["Asia/Kolkata", "asia/calcutta", "Europe/Kyiv", "Europe/Kiev"].map(canonicalTimeZone)).toEqual([
      "Asia/Kolkata",
      "Asia/Kolkata",
      "Europe/Kyiv",
      "Europe/Kyiv",
    ]);
    const clocks = await world.database<{ name: string; january: string; july: string }[]>`
      select name, to_char('2026-01-15T12:00Z'::timestamptz at time zone name, 'YYYY-MM-DD HH24:MI') as january,
        to_char('2026-07-15T12:00Z'::timestamptz at time zone name, 'YYYY-MM-DD HH24:MI') as july
      from unnest(${[...names, "UTC", "Etc/GMT-14", "Etc/GMT+12"]}::text[]) name`;
    const clock = (at: string, timeZone: string) =>
      new Date(at).toLocaleString("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" });
    for (const { name, january, july } of clocks) {
      expect([name, january, july]).toEqual([name, clock("2026-01-15T12:00Z", name), clock("2026-07-15T12:00Z", name)]);
    }
  });

  test("a filial of another organization, or an unknown time zone: refused", async () => {
    const other = await databases.openWorld();
    const request = {
      caller: operator(other),
      filialId: world.filialId,
      day: DAY,
      mode: "live" as const,
      startsAtMinute: 0,
    };
    expect(await refusalOf(reportDay(other, request))).toBe("not_found");
    const nowhere = { ...request, caller: operator(world), timeZone: "Mars/Olympus" };
    expect(await refusalOf(reportDay(world, nowhere))).toBe("invalid_request");
  });
});
