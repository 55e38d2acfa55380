/** A station's orders, newest first and page by page: each order once, and no page larger than a message. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { BOUNDS } from "../../services/bus/bounds.ts";
import type { Caller } from "../../services/bus/messages/caller.ts";
import { listOrders, openOrder } from "../../services/bus/messages/orders.ts";
import { type SettlementWorld, startSettlementWorld } from "./settlement-world.ts";

const MANY = 1_200;
const PIECE = 100;
/** Other stations, so that the orders of each station are stored between those of others. */
const NEIGHBOURS = 60;

let world: SettlementWorld;
beforeAll(async () => {
  world = await startSettlementWorld();
});
afterAll(() => world.stop());

const SOUP = { name: "Soup", quantity: 1, unitAmountMinor: "500" };

async function walk(
  request: { readonly caller: Caller; readonly stationId: number; readonly status?: "open" | "paid" },
  limit: number,
  between = async () => {},
): Promise<number[]> {
  const seen: number[] = [];
  for (let hasMore = true; hasMore; ) {
    const page = await world.ask(listOrders, { ...request, beforeId: seen.at(-1), limit });
    expect(page.orders.length > 0 || !page.hasMore).toBe(true);
    expect(page.orders.length).toBeLessThanOrEqual(limit);
    seen.push(...page.orders.map((order) => order.orderId));
    ({ hasMore } = page);
    if (hasMore) await between();
  }
  return seen;
}

describe("a station's many orders", () => {
  test("are listed once each, newest first, while another order is opened", async () => {
    const { stationId, cashier: caller } = await world.openStation();
    for (let index = 0; index < NEIGHBOURS; index += 1) await world.openStation();
    // The test inserts in pieces, so that no statement reaches its time limit on a busy machine.
    for (let from = 1; from <= MANY; from += PIECE) {
      await world.database`
        insert into orders (organization_id, station_id, display_number, status, currency, total_minor, opened_by)
        select organization_id, station_id, n, case when n % 10 = 0 then 'open' else 'voided' end, 'EUR', 500, 7
        from generate_series(${from}::int, ${from + PIECE - 1}::int) as n, stations order by n`;
    }
    await world.database`
      insert into order_counters (station_id, last_number) values (${stationId}, ${MANY})`;
    await world.database`analyze orders`;
    const ids = async (status: string) =>
      (
        await world.database<{ order_id: number }[]>`
          select order_id from orders where station_id = ${stationId} and status like ${status} order by display_number desc`
      ).map((row) => row.order_id);
    const before = await ids("%");
    let pages = 0;
    const seen = await walk({ caller, stationId }, BOUNDS.listed, async () => {
      pages += 1;
      if (pages === 1) await world.ask(openOrder, { caller, stationId, lines: [SOUP] });
    });
    expect(seen).toEqual(before);
    expect(await walk({ caller, stationId, status: "open" }, 100)).toEqual(await ids("open"));
    expect((await world.ask(listOrders, { caller, stationId })).orders).toHaveLength(BOUNDS.listedUnlessAsked);
    for (const status of [world.database``, world.database`and status = 'open'`]) {
      const plan = JSON.stringify(
        await world.database`
          explain select * from orders where station_id = ${stationId} ${status} and order_id < ${seen[900] ?? 0}
          order by order_id desc limit 501`,
      );
      expect(plan).toMatch(/orders_(?:by_station|of_status)/);
      expect(plan).not.toContain("Seq Scan");
    }
  });

  test("with many long lines: each page fits into its message", async () => {
    const { stationId, cashier: caller } = await world.openStation();
    const lines = Array.from({ length: BOUNDS.orderLines }, () => ({ ...SOUP, name: "€".repeat(200) }));
    const opened: number[] = [];
    for (let index = 0; index < 12; index += 1) {
      opened.push((await world.ask(openOrder, { caller, stationId, lines })).order.orderId);
    }
    const first = await world.ask(listOrders, { caller, stationId, limit: BOUNDS.listed });
    expect(first.orders.length).toBeLessThan(12);
    expect(first.hasMore).toBe(true);
    expect(await walk({ caller, stationId }, BOUNDS.listed)).toEqual(opened.toReversed());
  });

  test("with many long lines: a query reads few orders beyond its page, so that it does not delay settlements", async () => {
    const { stationId, cashier: caller } = await world.openStation();
    const lines = Array.from({ length: BOUNDS.orderLines }, () => ({ ...SOUP, name: "€".repeat(200) }));
    const { order } = await world.ask(openOrder, { caller, stationId, lines });
    const many = 90;
    await world.database`
      with made as (
        insert into orders (organization_id, station_id, display_number, status, currency, total_minor, opened_by)
        select organization_id, station_id, 1 + n, 'open', 'EUR', 500, 7
        from generate_series(1, ${many}::int) as n, stations where station_id = ${stationId}
        returning order_id
      )
      insert into order_lines (order_id, ordinal, name, quantity, unit_amount_minor)
      select made.order_id, l.ordinal, l.name, l.quantity, l.unit_amount_minor
      from made, order_lines l where l.order_id = ${order.orderId}`;
    const parse = vi.spyOn(JSON, "parse");
    const page = await world.ask(listOrders, { caller, stationId, limit: BOUNDS.listed });
    const read = parse.mock.calls.filter(([text]) => text.startsWith("[{"));
    parse.mockRestore();
    expect(page.hasMore).toBe(true);
    expect(read.length).toBeLessThan(many / 2);
    expect(await walk({ caller, stationId }, BOUNDS.listed)).toHaveLength(many + 1);
  });
});
