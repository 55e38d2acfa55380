/**
 * The list of payments and the overview. The list has all copied payments, and every filter finds exactly the matching ones.
 * Both are fast with very many payments. `PAYMENT_ROWS=1000000` is the long form.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { getOverview, listPayments, type Payment, type PaymentsFilter } from "../../services/bus/messages/payments.ts";
import { closeDatabase, openDatabase } from "../../services/db/pool.ts";
import { type AuditWorld, startAuditWorld } from "./audit-world.ts";
import { orderSnapshot } from "./scripted-station.ts";

const ROWS = Number(process.env["PAYMENT_ROWS"] ?? 20_000);
/** The rows of one statement: so few that no statement reaches its time limit on a busy machine. */
const PIECE = 20_000;
const BOUND_MS = 200;
const DAY = "2026-11-19";

let world: AuditWorld;
beforeAll(async () => {
  world = await startAuditWorld();
  await world.startAudit();
});
afterAll(() => world.stop());

async function walk(caller: Caller, filter: PaymentsFilter, limit: number, pages = Number.POSITIVE_INFINITY) {
  const found: Payment[] = [];
  for (let turn = 0, hasMore = true; hasMore && turn < pages; turn += 1) {
    const page = await world.ask(listPayments, { caller, ...filter, limit, beforeId: found.at(-1)?.intentId });
    found.push(...page.payments);
    ({ hasMore } = page);
  }
  return found;
}

describe("the list of payments", () => {
  test("has each collection from its creation to its end, newest first, and only for its owner", async () => {
    const station = await world.openStation();
    const caller = world.ownerOf(station);
    const listed = async () => {
      await world.untilCopied();
      return (await world.ask(listPayments, { caller })).payments;
    };
    await station.collect(9_001, orderSnapshot(9_001));
    const { stationId, companionId } = station.facts;
    expect(await listed()).toMatchObject([
      {
        intentId: 9_001,
        stationId,
        stationName: "Counter 1",
        filialName: "Filial",
        status: "created",
        endedAtMs: null,
      },
    ]);
    await station.report(9_001, { providerReference: "RRN-9001" });
    expect(await listed()).toMatchObject([
      { status: "processing", deviceId: companionId, reference: "RRN-9001", moneyMayHaveMoved: "success_reported" },
    ]);
    await station.do({ type: "intent_cancel", intentId: 9_001 }, station.cashier);
    await station.collectCash(9_002);
    const { cashier } = station.facts;
    expect(await listed()).toMatchObject([
      { intentId: 9_002, status: "succeeded", route: "cash", amountMinor: "1250", cashierId: cashier.id },
      { intentId: 9_001, status: "cancelled", moneyMayHaveMoved: "success_reported", endedAtMs: expect.any(Number) },
    ]);
    const stranger = world.ownerOf(await world.openStation());
    expect((await world.ask(listPayments, { caller: stranger })).payments).toEqual([]);
    expect((await world.ask(listPayments, { caller: stranger, stationId })).payments).toEqual([]);
    const powerless = { ...caller, permissions: [] };
    await expect(world.ask(listPayments, { caller: powerless })).rejects.toThrow("permission_denied");
  });

  test("its overview counts open collections and available devices, and sums up a day by route and hour", async () => {
    const station = await world.openStation();
    const caller = world.ownerOf(station);
    await station.collectCash(9_101);
    await station.collect(9_102, orderSnapshot(9_102));
    await world.untilCopied();
    expect((await world.ask(listPayments, { caller, isOpen: true })).payments).toMatchObject([{ intentId: 9_102 }]);
    expect((await world.ask(listPayments, { caller, isOpen: false })).payments).toMatchObject([{ intentId: 9_101 }]);
    const request = { caller, day: "2026-11-20", timeZone: "Europe/Berlin" };
    // The scripted station's clock is at noon UTC.
    const hours = [{ hour: 13, route: "cash", collections: 1, succeeded: 1, medianMs: 2_000 }];
    const counts = { stations: 1, devicesOnline: 1, devicesOffline: 0, openCollections: 1, openIssues: 0 };
    const routes = [{ route: "cash", medianMs: 2_000 }];
    const now = { ...counts, leasedStations: expect.any(Number) };
    expect(await world.ask(getOverview, request)).toEqual({ ...now, hours, routes });
    await station.companionSilence();
    await world.untilCopied();
    const later = await world.ask(getOverview, { ...request, day: "2026-11-21" });
    expect(later).toMatchObject({ devicesOnline: 0, devicesOffline: 1, hours: [], routes: [] });
    for (const timeZone of ["Mars", "+02:00"]) {
      await expect(world.ask(getOverview, { ...request, timeZone })).rejects.toMatchObject({
        refusal: { code: "invalid_request", errors: [{ pointer: "/time_zone" }] },
      });
    }
  });
});

describe("the overview of a day", () => {
  let lastIntentId = 8_000_000;
  const ended = (created: string, seconds: number, route: string, status = "succeeded") => ({
    intent_id: (lastIntentId += 1),
    created,
    seconds,
    route,
    status,
  });

  /** A new organization with these payments; returns its owner. */
  async function ownerWith(payments: readonly ReturnType<typeof ended>[]): Promise<Caller> {
    const station = await world.openStation();
    const { organizationId, filialId, stationId } = station.facts;
    await world.database`
      insert into payments (intent_id, organization_id, filial_id, station_id, sandbox, version, route, status,
        amount_minor, currency, order_id, order_display_number, created_at, ended_at)
      select p.intent_id, ${organizationId}, ${filialId}, ${stationId}, false, 1, p.route, p.status, 100, 'EUR', 1, 1,
        p.created, p.created + make_interval(secs => p.seconds)
      from jsonb_to_recordset(${JSON.stringify(payments)}::text::jsonb)
        as p (intent_id bigint, created timestamptz, seconds float8, route text, status text)`;
    return world.ownerOf(station);
  }

  test("the median time of a route: over all successes of the day, not over the medians of its hours", async () => {
    const at = (hour: number) => `2026-11-18T${hour}:00:00Z`;
    const caller = await ownerWith([
      // The hours' medians are 1 s and 10 s.
      ...[1, 1, 9, 10, 30].map((seconds, index) => ended(at(index < 2 ? 10 : 11), seconds, "cash")),
      ended(at(12), 500, "cash", "expired"),
      ...[4, 8].map((seconds) => ended(at(13), seconds, "dynamic_qr")),
      ended(at(14), 70, "smart_pos", "cancelled"),
    ]);
    expect((await world.ask(getOverview, { caller, day: "2026-11-18", timeZone: "UTC" })).routes).toEqual([
      { route: "cash", medianMs: 9_000 },
      { route: "dynamic_qr", medianMs: 6_000 },
      { route: "smart_pos", medianMs: null },
    ]);
  });

  test("clocks go back to midnight: the day begins at the first midnight, and its first hour has two hours", async () => {
    // In the Azores, 25 October 2026 begins at 00:00Z, has midnight again at 01:00Z, and ends at 01:00Z.
    const times = ["24T00:30", "25T00:30", "25T01:30", "26T00:30", "26T01:30"];
    const caller = await ownerWith(times.map((time) => ended(`2026-10-${time}:00Z`, 1, "cash")));
    const hoursOf = async (day: string) => {
      const { hours } = await world.ask(getOverview, { caller, day, timeZone: "Atlantic/Azores" });
      return hours.map(({ hour, collections }) => [hour, collections]);
    };
    expect(await Promise.all(["2026-10-24", "2026-10-25", "2026-10-26"].map(hoursOf))).toEqual([
      [[0, 1]],
      [
        [0, 2],
        [23, 1],
      ],
      [[0, 1]],
    ]);
  });
});

describe(`a list of ${ROWS} payments`, () => {
  let caller: Caller;
  let stationIds: number[];
  let filialIds: number[];
  let all: Payment[];

  beforeAll(async () => {
    const station = await world.openStation();
    const { organizationId, filialId } = station.facts;
    caller = world.ownerOf(station);
    const [other] = await world.database<[{ filial_id: number }]>`
      insert into filials (organization_id, name) values (${organizationId}, 'Small') returning filial_id`;
    filialIds = [filialId, other.filial_id];
    // The last station, the small filial, has a thousandth of the payments.
    const stations = await world.database<{ station_id: number }[]>`
      insert into stations (organization_id, filial_id, name, currency, sandbox)
      select ${organizationId}, case when n = 10 then ${other.filial_id}::bigint else ${filialId}::bigint end,
        'Station ' || n, 'EUR', n = 10
      from generate_series(1, 10) n returning station_id`;
    stationIds = stations.map(({ station_id }) => station_id);
    // The indexes are created again at the end, because building an index is far faster than filling it row by row.
    const indexes = await world.database<{ name: string; definition: string }[]>`
      select indexname as name, indexdef as definition from pg_indexes
      where tablename = 'payments' and indexname <> 'payments_pkey'`;
    const builder = openDatabase({ url: world.databaseUrl, maxConnections: 1, longestWorkMs: 300_000 });
    for (const { name } of indexes) await builder.unsafe(`drop index ${name}`);
    for (let from = 1; from <= ROWS; from += PIECE) {
      await builder`
        insert into payments (intent_id, organization_id, filial_id, station_id, sandbox, version, route, status,
          amount_minor, currency, order_id, order_display_number, cashier_id, device_id, reference, created_at, ended_at)
        select 1000000 + n, ${organizationId}, s.filial_id, s.station_id, s.sandbox, 1,
          case when n % 997 = 0 then 'attested_terminal' when n % 3 = 0 then 'cash' else 'smart_pos' end,
          case when n % 1009 = 0 then 'processing' when n % 50 = 0 then 'expired' when n % 20 = 0 then 'cancelled' else 'succeeded' end,
          100 + (n * 37) % 90000, 'EUR', n, 1 + n % 5000, 5 + n % 300, null,
          case when n % 3 = 0 then '' when n % 2 = 0 then 'VIRT-' || n else 'rrn_' || n end,
          -- Ids and times do not grow together everywhere.
          timestamptz '2026-11-19 00:00Z' + make_interval(secs => (n / 7 * 7 - n % 7) * 172800.0 / ${ROWS}),
          case when n % 1009 = 0 then null else timestamptz '2026-11-19 00:00Z' + make_interval(secs => n * 172800.0 / ${ROWS} + n % 40) end
        from generate_series(${from}::int, ${Math.min(from + PIECE - 1, ROWS)}::int) n
        join stations s on s.station_id = (${stationIds}::bigint[])[case when n % 1000 = 0 then 10 else 1 + n % 9 end]`;
    }
    for (const { definition } of indexes) await builder.unsafe(definition);
    await builder`analyze payments`;
    await closeDatabase(builder);
  }, 600_000);

  const filters = (): Readonly<Record<string, PaymentsFilter>> => ({
    nothing: {},
    "a filial": { filialId: filialIds[0] },
    "a small filial": { filialId: filialIds[1] },
    "a station": { stationId: stationIds[0] },
    "a route": { route: "cash" },
    "a rare route": { route: "attested_terminal" },
    "a status": { status: "succeeded" },
    "a rare status": { status: "processing" },
    "a status without payments": { status: "presented" },
    "an hour long ago": { fromMs: Date.parse(`${DAY}T01:00:00Z`), toMs: Date.parse(`${DAY}T02:00:00Z`) },
    "a cashier": { cashierId: 17 },
    "a narrow range of amounts": { currency: "EUR", leastMinor: "5000", mostMinor: "5010" },
    "a wide range of amounts": { currency: "EUR", leastMinor: "5000" },
    "the beginning of many references": { search: "virt-" },
    "a whole reference": { search: `RRN_${ROWS - 1 - ((ROWS - 1) % 6) + 5 - 6}` },
    "an order number": { search: "4711" },
    "a character of SQL patterns": { search: "rrn%" },
    "open payments": { isOpen: true },
    "ended payments": { isOpen: false },
    "test stations": { sandbox: true },
    "live stations": { sandbox: false },
    "a cashier's cancelled payments at a station": { cashierId: 25, status: "cancelled", stationId: stationIds[2] },
  });

  const isNamed = (payment: Payment, filter: PaymentsFilter): boolean =>
    (filter.filialId ?? payment.filialId) === payment.filialId &&
    (filter.stationId ?? payment.stationId) === payment.stationId &&
    (filter.cashierId ?? payment.cashierId) === payment.cashierId &&
    (filter.route ?? payment.route) === payment.route &&
    (filter.status ?? payment.status) === payment.status &&
    (filter.sandbox ?? payment.sandbox) === payment.sandbox &&
    (filter.isOpen ?? payment.endedAtMs === null) === (payment.endedAtMs === null) &&
    Number(filter.leastMinor ?? 0) <= Number(payment.amountMinor) &&
    Number(payment.amountMinor) <= Number(filter.mostMinor ?? Number.MAX_SAFE_INTEGER) &&
    (filter.fromMs ?? 0) <= payment.createdAtMs &&
    payment.createdAtMs < (filter.toMs ?? Number.MAX_SAFE_INTEGER) &&
    (filter.search === undefined ||
      payment.reference.toLowerCase().startsWith(filter.search.toLowerCase()) ||
      String(payment.orderDisplayNumber) === filter.search);

  test("all pages: each payment is listed once, newest first", async () => {
    if (ROWS > PIECE) return;
    all = await walk(caller, {}, 500);
    expect(all).toHaveLength(ROWS);
    expect(new Set(all.map(({ intentId }) => intentId)).size).toBe(ROWS);
    const order = all.map(({ createdAtMs, intentId }) => createdAtMs * 1e7 + intentId);
    expect(order).toEqual(order.toSorted((a, b) => b - a));
  });

  test(`each filter finds exactly the matching payments, within ${BOUND_MS} ms`, async () => {
    const results: Record<string, number> = {};
    for (const [name, filter] of Object.entries(filters())) {
      const times: number[] = [];
      let page: Payment[] = [];
      for (let turn = 0; turn < 3; turn += 1) {
        const fromMs = performance.now();
        page = (await world.ask(listPayments, { caller, ...filter, limit: 100 })).payments;
        times.push(performance.now() - fromMs);
      }
      // The fastest of three counts, to leave out the time of other work on the machine.
      results[name] = Math.round(Math.min(...times));
      const expected = ROWS > PIECE ? page : all.filter((payment) => isNamed(payment, filter)).slice(0, 100);
      expect(
        page.every((payment) => isNamed(payment, filter)),
        name,
      ).toBe(true);
      expect(
        page.map(({ intentId }) => intentId),
        name,
      ).toEqual(expected.map(({ intentId }) => intentId));
    }
    process.stdout.write(`${JSON.stringify({ rows: ROWS, ms: results })}\n`);
    expect(Object.entries(results).filter(([, ms]) => ms > BOUND_MS)).toEqual([]);
  });

  test("an old page, and the overview of a day: fast too, and the overview has all payments of the day", async () => {
    const [oldest] = await world
      .ask(listPayments, { caller, limit: 1, toMs: Date.parse(`${DAY}T03:00:00Z`) })
      .then(({ payments }) => payments);
    const fromMs = performance.now();
    const page = await walk(caller, { status: "succeeded" }, 100, 1);
    await world.ask(listPayments, { caller, status: "succeeded", beforeId: oldest?.intentId, limit: 100 });
    expect(page).toHaveLength(100);
    expect(performance.now() - fromMs).toBeLessThan(2 * BOUND_MS);
    const overviewFromMs = performance.now();
    const { hours, routes, openCollections } = await world.ask(getOverview, { caller, day: DAY, timeZone: "UTC" });
    const overviewMs = Math.round(performance.now() - overviewFromMs);
    process.stdout.write(`${JSON.stringify({ rows: ROWS, overviewMs })}\n`);
    expect(routes.map(({ route }) => route)).toEqual(["attested_terminal", "cash", "smart_pos"]);
    expect(hours.reduce((sum, { collections }) => sum + collections, 0)).toBeGreaterThan(ROWS / 2 - ROWS / 100);
    expect(openCollections).toBe(Math.floor(ROWS / 1_009));
    expect(new Set(hours.map(({ hour }) => hour)).size).toBe(24);
  });
});
