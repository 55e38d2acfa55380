/** The till's list of today: of a short day and of a day with ten thousand collections. */

import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { drawn, expectAccessible, expectNoSideways, startBrowser } from "./chromium.ts";
import { button, click, isShown, SHOWN, signIn } from "./till-steps.ts";

const DAY = 10_000;
const PAGE = 50;
/** The number of collections that the station itself keeps. */
const KEPT = 8;
/** The longest time from the click until a page of the list is on the screen. The best of several turns counts. */
const TURN_MS = 300;
const TURNS = 5;
/** Other tests may delay a turn, so the test repeats slow turns up to this number. */
const MAX_TURNS = 30;
/** The most DOM nodes of the till with a page of the list: a row has about ten nodes. */
const MAX_NODES = 1_200;

let system: TestSystem;
let browser: Browser;
let owner: Person;
let cashier: Person;
let storageState: Awaited<ReturnType<BrowserContext["storageState"]>>;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem({ sandboxProvider: true }), startBrowser()]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const context = await browser.newContext({ locale: "en-GB" });
  const page = await context.newPage();
  await page.goto(`${system.baseUrl}/till/`);
  await signIn(page, system.cashier);
  await page.locator(".station-list").waitFor(SHOWN);
  storageState = await context.storageState();
  await context.close();
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

interface Station {
  readonly stationId: number;
  readonly path: string;
}
async function newStation(): Promise<Station> {
  const name = `Day ${Math.round(performance.now())}`;
  const body = { filial_id: system.sandbox.filialId, name, currency: "EUR" };
  const { station_id: stationId } = await owner.good<{ station_id: number }>("POST", "stations/", { body });
  const path = `stations/${stationId}`;
  await cashier.good("POST", `${path}/lease/`);
  return { stationId, path };
}

interface Begun {
  readonly intent_id: number;
  readonly order_display_number: number;
}
async function begin({ path }: Station, unit_amount: string): Promise<Begun> {
  const order_id = await newOrder(cashier, path, unit_amount, "Tea");
  return await cashier.good<Begun>("POST", `${path}/intents/`, { body: { order_id, route: "cash" } });
}
const settle = async ({ path }: Station, { intent_id }: Begun) =>
  await cashier.good("POST", `${path}/intents/${intent_id}/attest/`);

/** Collects in cash; returns when the list of payments has all of them. */
async function collect(station: Station, count: number): Promise<void> {
  for (let nth = 1; nth <= count; nth += 1) await settle(station, await begin(station, `${nth}.00`));
  await vi.waitFor(async () => {
    const { payments } = await cashier.good<{ payments: unknown[] }>("GET", `${station.path}/payments/`);
    expect(payments).toHaveLength(count);
  }, SHOWN);
}

/** Adds collections of earlier today, from midnight until shortly before the first one that the station made. */
async function addEarlier({ stationId }: Station, count: number): Promise<void> {
  const sql = postgres(system.database.url, { max: 1 });
  await sql`
    insert into payments (intent_id, organization_id, filial_id, station_id, sandbox, version, route, status, amount_minor,
      currency, order_id, order_display_number, cashier_id, reference, created_at, ended_at)
    select 1000000000 + ${stationId}::bigint * ${DAY}::bigint + n, first.organization_id, first.filial_id, ${stationId}, first.sandbox, 1,
      'cash', case when n % 20 = 0 then 'cancelled' else 'succeeded' end, 100 + n, 'EUR', 1000000000 + n, 100000 + n,
      first.cashier_id, 'SLIP-' || n, at, at + interval '1 millisecond'
    from (select * from payments where station_id = ${stationId} order by created_at limit 1) first,
      lateral (select ${midnight()}::timestamptz as begun) day,
      generate_series(1, ${count}::int) n,
      lateral (select begun + (first.created_at - begun) * n / ${count + 1}::int as at) moments`;
  await sql.end();
}
const midnight = (): Date => new Date(new Date().setHours(0, 0, 0, 0));

interface Till {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly today: Locator;
  readonly rows: Locator;
}
async function openTill({ stationId }: Station): Promise<Till> {
  const context = await browser.newContext({ locale: "en-GB", reducedMotion: "reduce", storageState });
  const page = await context.newPage();
  await page.goto(`${system.baseUrl}/till/?station=${stationId}`);
  const today = page.getByRole("region", { name: "Collections of today" });
  const rows = today.locator("details.past");
  await rows.first().waitFor(SHOWN);
  return { context, page, today, rows };
}
const textOf = async (row: Locator): Promise<string> => (await row.locator("summary").textContent()) ?? "";

test("a short day: all collections are listed with their steps, also those that the station itself no longer has", async () => {
  const station = await newStation();
  await collect(station, KEPT + 3);
  const { context, page, today, rows } = await openTill(station);
  await expect.poll(() => rows.count(), SHOWN).toBe(KEPT + 3);
  const amounts = await today.locator(".past strong").allTextContents();
  expect(amounts).toEqual(Array.from({ length: KEPT + 3 }, (_unused, index) => `€${KEPT + 3 - index}.00`));
  expect(await today.getByRole("button").count()).toBe(0);
  await rows.last().locator("summary").click();
  await rows.last().getByText(`Attested by ${cashier.name}`).waitFor(SHOWN);
  await expectAccessible(page, "till-today");
  // A new collection moves an older one out of the newest ones. The open row stays open.
  await settle(station, await begin(station, "99.00"));
  await expect.poll(() => rows.count(), SHOWN).toBe(KEPT + 4);
  expect(await rows.last().getByText(`Attested by ${cashier.name}`).isVisible()).toBe(true);
  await context.close();
});

describe("a day with ten thousand collections", () => {
  let station: Station;
  beforeAll(async () => {
    station = await newStation();
    await collect(station, KEPT + 2);
    await addEarlier(station, DAY);
  });

  test("is read page by page: each page appears quickly, and the document does not grow", async () => {
    const { context, page, today, rows } = await openTill(station);
    await expect.poll(() => rows.count(), SHOWN).toBe(PAGE);
    const seen = new Set<string>();
    const note = async (): Promise<void> => {
      for (const text of await rows.locator("summary").allTextContents()) seen.add(text);
    };
    await note();
    const turnsMs: number[] = [];
    while (turnsMs.length < TURNS || (Math.min(...turnsMs) > TURN_MS && turnsMs.length < MAX_TURNS)) {
      const before = await textOf(rows.first());
      const began = performance.now();
      await click(page, "Earlier ones");
      await expect.poll(() => textOf(rows.first()), { ...SHOWN, interval: 10 }).not.toBe(before);
      turnsMs.push(performance.now() - began);
      expect(await rows.count()).toBe(PAGE);
      await note();
      // The focus is on the list, so that a keyboard user continues at the first row.
      expect(await today.locator("ul:focus").count()).toBe(1);
      expect((await rows.first().boundingBox())?.y).toBeGreaterThanOrEqual(0);
    }
    expect(seen.size).toBe((turnsMs.length + 1) * PAGE);
    const nodes = await page.evaluate<number>("document.getElementsByTagName('*').length");
    process.stdout.write(`a page of today: ${Math.round(Math.min(...turnsMs))} ms, ${nodes} nodes\n`);
    expect(Math.min(...turnsMs)).toBeLessThanOrEqual(TURN_MS);
    expect(nodes).toBeLessThanOrEqual(MAX_NODES);
    await expectAccessible(page, "till-today-earlier");
    await page.setViewportSize({ width: 360, height: 740 });
    await expectNoSideways(page);
    await expectAccessible(page);
    await click(page, "Later ones");
    await click(page, "The newest ones");
    await expect.poll(() => textOf(rows.first()), SHOWN).toContain(`€${KEPT + 2}.00`);
    await context.close();
  });

  test("is searched by order number and by reference", async () => {
    const { context, page, today, rows } = await openTill(station);
    const search = today.getByLabel("Number of the order, or reference");
    const searches: string[] = [];
    page.on("request", (request) => {
      const searched = new URL(request.url()).searchParams.get("search");
      if (searched !== null) searches.push(searched);
    });
    await search.waitFor(SHOWN);
    await search.pressSequentially("100001");
    await expect.poll(() => rows.count(), SHOWN).toBe(1);
    expect(searches.length, "not every letter is a request").toBeLessThan("100001".length);
    expect(await textOf(rows.first())).toContain("Order 100001");
    await search.fill("slip-999");
    await expect.poll(() => rows.count(), SHOWN).toBe(11);
    await search.fill("no such reference");
    await isShown(page, "No collection of today has this number or reference.");
    expect(await page.evaluate("document.activeElement.type")).toBe("search");
    await expectAccessible(page, "till-today-no-match");
    await search.fill("");
    await expect.poll(() => rows.count(), SHOWN).toBe(PAGE);
    await context.close();
  });

  test("a collection that begins and ends: the reader keeps the page and the position", async () => {
    const { context, page, rows } = await openTill(station);
    await click(page, "Earlier ones");
    await page.locator("ul:focus").waitFor(SHOWN);
    const row = rows.nth(30);
    const before = await textOf(row);
    await row.locator("summary").click();
    await row.scrollIntoViewIfNeeded();
    const placeOf = async (of: Locator) => Math.round((await of.boundingBox())?.y ?? Number.NaN);
    const [place, asked] = [await placeOf(row), [] as string[]];
    page.on("request", (request) => asked.push(request.url()));
    const begun = await begin(station, "7.50");
    await button(page, "€7.50 received").waitFor(SHOWN);
    expect([await textOf(row), await placeOf(row)]).toEqual([before, place]);
    await settle(station, begun);
    await button(page, "Next order").waitFor(SHOWN);
    await drawn(page);
    expect([await textOf(row), await placeOf(row), await rows.count()]).toEqual([before, place, PAGE]);
    expect(await row.getAttribute("open")).not.toBeNull();
    expect(asked.filter((url) => url.includes("/payments/"))).toEqual([]);

    // On the newest page the rows of the reader stay below the new one, at the same place of the window.
    await click(page, "The newest ones");
    await expect.poll(() => textOf(rows.first()), SHOWN).toContain("€7.50");
    const read = page.locator("details.past", { hasText: await textOf(rows.nth(20)) });
    await read.scrollIntoViewIfNeeded();
    await page.mouse.wheel(0, 200);
    await drawn(page);
    const newestPlace = await placeOf(read);
    await settle(station, await begin(station, "8.50"));
    await expect.poll(() => textOf(rows.first()), SHOWN).toContain("€8.50");
    await drawn(page);
    expect(await placeOf(read)).toBe(newestPlace);
    await context.close();
  });

  test("a search shows a collection as the station reports it, also when the list of payments lacks it", async () => {
    const { context, page, today, rows } = await openTill(station);
    const searchFor = async (text: string) => today.getByLabel("Number of the order, or reference").fill(text, SHOWN);
    for (const lacksIt of [false, true]) {
      const empty = { payments: [], has_more: false };
      if (lacksIt) await page.route(/\/payments\/\?.*search=/, (route) => route.fulfill({ json: empty }));
      const begun = await begin(station, "6.50");
      await searchFor(String(begun.order_display_number));
      await expect.poll(() => rows.count(), SHOWN).toBe(1);
      const found = rows.filter({ hasText: `Order ${begun.order_display_number}` });
      await expect.poll(() => textOf(found), SHOWN).toContain("Collecting");
      await settle(station, begun);
      await expect.poll(() => textOf(found), SHOWN).toContain("Paid");
    }
    await searchFor("no such reference");
    await isShown(page, "No collection of today has this number or reference.");
    await context.close();
  });
});
