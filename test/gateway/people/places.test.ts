/** Filials, stations, devices and the catalogue over HTTP: names may repeat, and the number of each kind has a limit. */
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STATE_LIMITS } from "../../../machines/settings.ts";
import { logIn, type Person } from "../../support/people.ts";
import { sharedSystem } from "../../support/shared-system.ts";
import type { TestSystem } from "../../support/system.ts";

/** The registry's limit of filials. Tests of the gateway do not import limits of services. */
const FILIALS = 10_000;

let system: TestSystem;
let owner: Person;
let cashier: Person;

beforeAll(async () => {
  system = await sharedSystem();
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
});
afterAll(() => system.stop());

const station = async (): Promise<number> => {
  const body = { filial_id: system.sandbox.filialId, name: "Counter", currency: "EUR" };
  return (await owner.good<{ station_id: number }>("POST", "stations/", { body })).station_id;
};
const display = (stationId: number) => ({ station_id: stationId, name: "Display", kind: "customer_display" });

describe("the catalogue", () => {
  interface Item {
    readonly item_id: number;
    readonly name: string;
  }
  interface Order {
    readonly order_id: number;
    readonly total: string;
    readonly lines: readonly { readonly name: string; readonly unit_amount: string }[];
  }
  const cake = { name: "Carrot cake", category: "Food", unit_amount: "4.50", currency: "EUR" };
  const add = (body: object) => owner.good<Item>("POST", "catalogue-items/", { body });
  const sold = async (stationId: number) =>
    (await cashier.good<{ items: Item[] }>("GET", `stations/${stationId}/catalogue-items/`)).items;
  const open = (stationId: number, lines: object[], key?: string) =>
    cashier.good<Order>("POST", `stations/${stationId}/orders/`, { body: { lines }, ...(key && { key }) });

  it("has the sandbox's items; a station sells the items of its filial in its currency", async () => {
    const stationId = await station();
    const seeded = await sold(stationId);
    expect(seeded).toHaveLength(8);
    const { filial_id } = await owner.good<{ filial_id: number }>("POST", "filials/", { body: { name: "Elsewhere" } });
    const here = await add({ ...cake, filial_id: system.sandbox.filialId });
    const everywhere = await add(cake);
    const others = [await add({ ...cake, filial_id }), await add({ ...cake, unit_amount: "700", currency: "JPY" })];
    const ids = (await sold(stationId)).map(({ item_id }) => item_id);
    expect(ids.slice(seeded.length)).toEqual([here.item_id, everywhere.item_id]);
    for (const { item_id } of others) {
      const body = {
        lines: [
          { name: "Tea", quantity: 1, unit_amount: "2.00" },
          { item_id, quantity: 1 },
        ],
      };
      const { body: refused } = await cashier.refused("invalid_request", "POST", `stations/${stationId}/orders/`, {
        body,
      });
      expect(refused.errors).toMatchObject([{ pointer: "/lines/1/item_id" }]);
    }
    const elsewhere = await owner.good<{ items: Item[] }>("GET", `catalogue-items/?filial_id=${filial_id}`);
    const found = elsewhere.items.map(({ item_id }) => item_id);
    expect(found).toContain(others[0]?.item_id);
    expect(found).not.toContain(here.item_id);
  });

  it("an order with an item: keeps the item's name and price after any later change", async () => {
    const stationId = await station();
    const { item_id } = await add(cake);
    const lines = [
      { item_id, quantity: 2 },
      { name: "Tea", quantity: 1, unit_amount: "2.00" },
    ];
    const order = await open(stationId, lines, "by item");
    expect(order).toMatchObject({ total: "11.00", lines: [{ name: "Carrot cake", unit_amount: "4.50" }, {}] });
    const body = { name: "Cake", unit_amount: "5.00" };
    await owner.good("PATCH", `catalogue-items/${item_id}/`, { body });
    const path = `orders/${order.order_id}/`;
    expect(await cashier.good("GET", path)).toMatchObject({ total: "11.00", lines: order.lines });
    // The key identifies the request, so the answer is the same order, although the item costs more by now.
    expect((await open(stationId, lines, "by item")).order_id).toBe(order.order_id);
    const reused = { key: "by item", body: { lines: lines.slice(1) } };
    await cashier.refused("idempotency_key_reused", "POST", `stations/${stationId}/orders/`, reused);
    expect((await open(stationId, lines)).total).toBe("12.00");
    await owner.good("DELETE", `catalogue-items/${item_id}/`);
    await cashier.refused("invalid_request", "PUT", `${path}lines/`, { body: { lines } });
    expect(await cashier.good("GET", path)).toMatchObject({ total: "11.00", lines: order.lines });
    const { events } = await owner.good<{ events: { action: string; subject: object }[] }>("GET", "events/?limit=3");
    const changes = events.map(({ action }) => action);
    expect(changes).toEqual(["catalogue_item_deleted", "catalogue_item_changed", "catalogue_item_created"]);
  });

  it("a line with item and price, or with neither item nor name; an impossible price or currency: refused", async () => {
    const stationId = await station();
    const { item_id } = await add(cake);
    for (const [line, pointer] of [
      [{ item_id, quantity: 1, unit_amount: "1.00" }, "/lines/0/unit_amount"],
      [{ quantity: 1, unit_amount: "1.00" }, "/lines/0/name"],
    ] as const) {
      const body = { lines: [line] };
      const refused = await cashier.refused("invalid_request", "POST", `stations/${stationId}/orders/`, { body });
      expect(refused.body.errors).toMatchObject([{ pointer }]);
    }
    for (const [change, error] of [
      [{ currency: "JPY" }, { pointer: "/unit_amount", code: "not_of_currency" }],
      [{ currency: "XXX" }, { pointer: "/currency", code: "unknown_currency" }],
      [{ currency: "eur" }, { pointer: "/currency", code: "wrong_format" }],
    ] as const) {
      const body = { ...cake, ...change };
      const refused = await owner.refused("invalid_request", "POST", "catalogue-items/", { body });
      expect(refused.body.errors).toMatchObject([error]);
    }
    await owner.refused("not_found", "POST", "catalogue-items/", { body: { ...cake, filial_id: 987_654 } });
  });
});

describe("filials, stations and devices", () => {
  it("the same name: may be used twice", async () => {
    for (const _ of [1, 2]) await owner.good("POST", "filials/", { body: { name: "Old town" } });
    const stations = [await station(), await station()];
    expect(new Set(stations).size).toBe(2);
    for (const _ of [1, 2]) await owner.good("POST", "devices/", { body: display(stations[0] ?? 0) });
    await owner.good("PATCH", `stations/${stations[1]}/`, { body: { name: "Counter" } });
  });

  it("more than their limit: refused", async () => {
    const stationId = await station();
    const body = display(stationId);
    await Promise.all(Array.from({ length: STATE_LIMITS.devices }, () => owner.good("POST", "devices/", { body })));
    expect((await owner.refused("device_limit_reached", "POST", "devices/", { body })).status).toBe(409);
    const sql = postgres(system.database.url, { max: 1 });
    await sql`
      insert into filials (organization_id, name)
      select ${system.sandbox.organizationId}, 'Another' from generate_series(1, ${FILIALS}::int)`;
    await sql.end();
    const refused = await owner.refused("conflict", "POST", "filials/", { body: { name: "One too many" } });
    expect(refused.status).toBe(409);
  });
});
