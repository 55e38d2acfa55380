/** What the owner reads over HTTP about the day: orders, payments, the lease of each station, and active collections. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { activeIntentsSchema } from "../../../gateway/api/backoffice/intents.ts";
import type { stationLeasesSchema } from "../../../gateway/api/backoffice/leases.ts";
import type { overviewSchema } from "../../../gateway/api/backoffice/overview.ts";
import type { paymentsSchema } from "../../../gateway/api/backoffice/payments.ts";
import type { intentSchema } from "../../../gateway/api/cashier/intent-json.ts";
import type { orderSchema, ordersSchema } from "../../../gateway/api/cashier/orders.ts";
import { BOUNDS } from "../../../services/bus/bounds.ts";
import { send } from "../../support/http.ts";
import { logIn, type Person } from "../../support/people.ts";
import { addOrganization } from "../../support/second-organization.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

type Order = z.infer<typeof orderSchema>;

let system: TestSystem;
let owner: Person;
let stranger: Person;
let cashier: Person;
let stations: readonly number[];
const orders: Order[] = [];

beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  stranger = await logIn(system.baseUrl, "backoffice", (await addOrganization(system)).owner);
  stations = system.sandbox.stations.map(({ stationId }) => stationId);
  const body = { lines: [{ name: "Soup", quantity: 1, unit_amount: "5.00" }] };
  for (const stationId of [...stations, ...stations])
    orders.push(await cashier.good<Order>("POST", `stations/${stationId}/orders/`, { body }));
});
afterAll(() => system.stop());

const listed = async (query = "", who = owner) =>
  await who.good<z.infer<typeof ordersSchema>>("GET", `orders/${query}`);
const idsOf = (page: { readonly orders: readonly Order[] }) => page.orders.map(({ order_id }) => order_id);

describe("the owner's list of orders", () => {
  it("all stations: newest first, page by page, each as the cashier sees it", async () => {
    const newest = orders.map(({ order_id }) => order_id).toReversed();
    expect(idsOf(await listed())).toEqual(newest);
    const first = await listed("?limit=3");
    expect([idsOf(first), first.has_more]).toEqual([newest.slice(0, 3), true]);
    const second = await listed(`?limit=3&before_id=${newest[2]}`);
    expect([idsOf(second), second.has_more]).toEqual([newest.slice(3), false]);
    const [newestOrder] = orders.toReversed();
    expect(await owner.good("GET", `orders/${newestOrder?.order_id}/`)).toEqual(newestOrder);
  });

  it("one station or one status: only its orders", async () => {
    const [order] = orders;
    const stationId = order?.station_id;
    expect(idsOf(await listed(`?station_id=${stationId}`))).toEqual([orders[2]?.order_id, order?.order_id]);
    await cashier.good("POST", `orders/${order?.order_id}/void/`);
    expect(idsOf(await listed("?status=voided"))).toEqual([order?.order_id]);
    expect(idsOf(await listed(`?status=voided&station_id=${stationId}`))).toEqual([order?.order_id]);
    expect(idsOf(await listed("?status=open"))).not.toContain(order?.order_id);
    expect(idsOf(await listed("?status=paid"))).toEqual([]);
  });

  it("a void by the owner: refused", async () => {
    const [order] = orders;
    const path = `/api/cashier/v1/orders/${order?.order_id}/void/`;
    const answer = await send(system.baseUrl, "POST", path, { token: owner.token });
    expect(answer).toMatchObject({ status: 403, body: { code: "permission_denied" } });
  });
});

describe("the owner's lists of leases and active collections", () => {
  it("all stations: the leased ones, and those with an active collection; others are left out", async () => {
    const [stationId = 0, otherId = 0] = stations;
    await cashier.good("POST", `stations/${stationId}/lease/`);
    await cashier.good("POST", `stations/${otherId}/lease/`);
    const order = orders.findLast(({ station_id }) => station_id === stationId);
    const body = { order_id: order?.order_id, route: "cash" };
    const intent = await cashier.good<z.infer<typeof intentSchema>>("POST", `stations/${stationId}/intents/`, { body });
    const leases = await owner.good<z.infer<typeof stationLeasesSchema>>("GET", "leases/");
    expect(leases).toMatchObject({
      leases: [
        { station_id: stationId, lease: { cashier_id: cashier.userId, mine: false } },
        { station_id: otherId, lease: { cashier_name: cashier.name } },
      ],
      has_more: false,
    });
    const active = await owner.good<z.infer<typeof activeIntentsSchema>>("GET", "active-intents/");
    expect(active.active_intents).toMatchObject([{ station_id: stationId, intent: { intent_id: intent.intent_id } }]);
    expect(active.through_id).toBeGreaterThanOrEqual(otherId);

    const first = await owner.good<z.infer<typeof activeIntentsSchema>>("GET", "active-intents/?limit=1");
    expect(first).toMatchObject({ has_more: true, through_id: stationId });
    const next = `?limit=1&since_id=${first.through_id}`;
    const second = await owner.good<z.infer<typeof activeIntentsSchema>>("GET", `active-intents/${next}`);
    expect(second).toMatchObject({ active_intents: [], through_id: otherId });
    expect(await owner.good("GET", `leases/${next}`)).toMatchObject({ leases: [{ station_id: otherId }] });

    const { filialId } = system.sandbox;
    expect(await owner.good("GET", `leases/?filial_id=${filialId}`)).toEqual(leases);
    await owner.good("DELETE", `stations/${stationId}/lease/`);
    const left = await owner.good<z.infer<typeof stationLeasesSchema>>("GET", "leases/");
    expect(left.leases.map(({ station_id }) => station_id)).toEqual([otherId]);
  });
});

describe("the list of payments", () => {
  const paid = async (name: string, reference: string) => {
    const [, stationId = 0] = stations;
    await cashier.good("POST", `stations/${stationId}/lease/`);
    const lines = [{ name, quantity: 1, unit_amount: "7.30" }];
    const order = await cashier.good<Order>("POST", `stations/${stationId}/orders/`, { body: { lines } });
    const body = { order_id: order.order_id, route: "attested_terminal" };
    const path = `stations/${stationId}/intents/`;
    const intent = await cashier.good<z.infer<typeof intentSchema>>("POST", path, { body });
    await cashier.good("POST", `${path}${intent.intent_id}/attest/`, { body: { reference } });
    return { order, intent };
  };

  it("all stations: each with the facts of its transaction, with filters, and as a file without formulas", async () => {
    const { order, intent } = await paid("Wine", "=SLIP-1");
    const [, stationId] = stations;
    const list = async (query: string, who = owner) =>
      (await who.good<z.infer<typeof paymentsSchema>>("GET", `payments/${query}`)).payments;
    await expect
      .poll(() => list("?status=succeeded&route=attested_terminal&search=%3Dslip"), { timeout: 10_000, interval: 50 })
      .toMatchObject([
        {
          intent_id: intent.intent_id,
          order_display_number: order.order_display_number,
          station_id: stationId,
          filial_id: system.sandbox.filialId,
          amount: "7.30",
          currency: "EUR",
          cashier_id: cashier.userId,
          cashier_name: cashier.name,
          device_id: null,
          reference: "=SLIP-1",
          transaction_id: expect.any(Number),
          sandbox: true,
        },
      ]);
    expect(await list(`?currency=EUR&min_amount=7.30&max_amount=7.30&station_id=${stationId}`)).toHaveLength(1);
    expect(await list("?currency=EUR&min_amount=7.31&search=%3DSLIP")).toEqual([]);
    expect(await list("?sandbox=false")).toEqual([]);
    expect(await list("", stranger)).toEqual([]);
    const wrong = await owner.refused("invalid_request", "GET", "payments/?min_amount=7");
    expect(wrong.body.errors).toMatchObject([{ pointer: "/min_amount" }]);
    await owner.refused("invalid_request", "GET", "payments/?from=yesterday");

    const file = await send(system.baseUrl, "GET", "/api/backoffice/v1/exports/payments/?search=%3DSLIP", {
      token: owner.token,
    });
    expect(file.headers.get("content-disposition")).toBe('attachment; filename="payments.csv"');
    const [head, row, rest] = file.text.trimEnd().split("\r\n");
    expect(head).toMatch(/^intent_id,order_id,.*,amount_minor$/);
    expect(row).toContain(",'=SLIP-1,");
    expect(row).toMatch(/,730$/);
    expect(rest).toBeUndefined();
  });

  it("the overview of a day: the current counts, and the collections of the day by route", async () => {
    const overview = await owner.good<z.infer<typeof overviewSchema>>("GET", "overview/?time_zone=Europe/Berlin");
    expect(overview.now).toMatchObject({ leased_stations: 1, devices_online: 0, open_issues: 0 });
    const hours = overview.routes.find(({ route }) => route === "attested_terminal")?.hours;
    expect(hours).toMatchObject([{ collections: 1, succeeded: 1, median_seconds: expect.any(Number) }]);
    const past = await owner.good<z.infer<typeof overviewSchema>>("GET", "overview/?day=2020-02-29");
    expect(past.routes.every((each) => each.hours.length === 0)).toBe(true);
    await owner.refused("invalid_request", "GET", "overview/?time_zone=Mars");
    await owner.refused("invalid_request", "GET", "overview/?day=2021-02-29");
  });

  it("one station: its cashiers read its payments, and cashiers of other organizations do not", async () => {
    const { intent } = await paid("Juice", "SLIP-2");
    const [otherId = 0, stationId = 0] = stations;
    const list = async (query: string, id = stationId) =>
      (await cashier.good<z.infer<typeof paymentsSchema>>("GET", `stations/${id}/payments/${query}`)).payments;
    const from = encodeURIComponent(new Date(Date.now() - 3_600_000).toISOString());
    await expect
      .poll(() => list(`?from=${from}`), { timeout: 10_000, interval: 50 })
      .toContainEqual(expect.objectContaining({ intent_id: intent.intent_id, station_id: stationId, amount: "7.30" }));
    const older = await list(`?before_id=${intent.intent_id}&limit=1`);
    expect(older.map(({ intent_id: id }) => id < intent.intent_id)).toEqual([true]);
    expect(await list(`?to=${from}`)).toEqual([]);
    expect((await list("", otherId)).map(({ station_id: id }) => id)).not.toContain(stationId);
    const foreign = { email: "cashier@elsewhere.example", password: "a long enough password" };
    await stranger.good("POST", "users/", { body: { ...foreign, name: "Otto", role: "cashier" } });
    const other = await logIn(system.baseUrl, "cashier", foreign);
    await other.refused("not_found", "GET", `stations/${stationId}/payments/`);
  });
});

describe("another organization's owner", () => {
  it("sees no order, lease or collection of the first organization", async () => {
    expect(await listed("", stranger)).toEqual({ orders: [], has_more: false });
    expect(await stranger.good("GET", "leases/")).toEqual({ leases: [], has_more: false, through_id: 0 });
    expect(await stranger.good("GET", "active-intents/")).toMatchObject({ active_intents: [] });
    await stranger.refused("not_found", "GET", `orders/?station_id=${stations[0]}`);
    const foreign = `leases/?filial_id=${system.sandbox.filialId}`;
    expect(await stranger.good("GET", foreign)).toMatchObject({ leases: [], has_more: false });
    await stranger.refused("not_found", "GET", `orders/${orders[0]?.order_id}/`);
  });

  it("is suspended while an export is sent: the answer breaks off, and has no payment of after that", async () => {
    const details = { email: "second@elsewhere.example", password: "a long enough password" };
    const body = { ...details, name: "Second", role: "owner" };
    const { user_id } = await stranger.good<{ user_id: number }>("POST", "users/", { body });
    const second = await logIn(system.baseUrl, "backoffice", details);
    const { filial_id } = await stranger.good<{ filial_id: number }>("POST", "filials/", { body: { name: "Far" } });
    const place = { filial_id, name: "Far counter", currency: "EUR" };
    const { station_id } = await stranger.good<{ station_id: number }>("POST", "stations/", { body: place });
    const sql = postgres(system.database.url, { max: 2 });
    const { count } = await sql`
      insert into payments (intent_id, organization_id, filial_id, station_id, sandbox, version, route, status,
        amount_minor, currency, order_id, order_display_number, created_at, ended_at)
      select 7000000000 + n, organization_id, filial_id, station_id, false, 1, 'cash', 'succeeded', 100, 'EUR', n, 1,
        now(), now() from stations, generate_series(1, ${2 * BOUNDS.listed}::int) n where station_id = ${station_id}`;
    const exported = () =>
      send(system.baseUrl, "GET", "/api/backoffice/v1/exports/payments/", { token: second.token }).then(
        ({ status, text }) => [status, text.trimEnd().split("\r\n").length],
        () => "broken off",
      );
    expect(await exported()).toEqual([200, 1 + count]);
    const { cut } = await sql.begin(async (tx) => {
      // The first page waits for this lock, so the session ends before the second page.
      await tx`lock table payments in access exclusive mode`;
      const asked = exported();
      const waits = async () =>
        (await sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%with page as%'`).length;
      await expect.poll(waits, { timeout: 10_000, interval: 20 }).toBe(1);
      await stranger.good("POST", `users/${user_id}/suspend/`);
      return { cut: asked };
    });
    expect(await cut).toBe("broken off");
    await sql.end();
  });
});
