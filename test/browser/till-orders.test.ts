/** The till in a real browser: the cashier opens an order while another one ends. */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { REGISTRY_LIMITS } from "../../services/registry/limits.ts";
import { logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { drawn, expectAccessible, startBrowser } from "./chromium.ts";
import { addLine, button, click, isShown, SHOWN, signIn } from "./till-steps.ts";

let system: TestSystem;
let browser: Browser;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem(), startBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

test("an order that begins while the till shows the end of the previous one: it stays when the cashier continues", async () => {
  const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const stationId = system.sandbox.stations[0]?.stationId ?? 0;
  const context = await browser.newContext({ locale: "en-GB" });
  const page = await context.newPage();
  await page.goto(`${system.baseUrl}/till/?station=${stationId}`);
  await signIn(page, system.cashier);
  await button(page, "Take the station").press("Enter");
  await button(page, "Leave the station").waitFor(SHOWN);
  // The clicked button has disappeared, so the focus is on the station's name.
  await expect.poll(() => page.locator(":focus").textContent(), SHOWN).toBe("Sandbox Counter");
  await addLine(page);
  await click(page, "Cash");
  await click(page, "€12.50 received");
  await button(page, "Next order").waitFor(SHOWN);
  await page.locator("summary", { hasText: "Open orders" }).click(SHOWN);
  await click(page, "New order");
  await addLine(page, "Juice", "4.00");
  await isShown(page, "€4.00");
  await click(page, "Next order");
  await isShown(page, "Choose how the guest pays.");
  expect(await page.locator(".line-name").allTextContents()).toEqual(["Juice"]);
  const { orders } = await cashier.good<{ orders: unknown[] }>("GET", `stations/${stationId}/orders/?status=open`);
  expect(orders).toHaveLength(1);
  await context.close();
});

test("a session that ends leaves what is typed: the reference of a slip, a line, and an order that was not saved", async () => {
  const stationId = system.sandbox.stations[1]?.stationId ?? 0;
  const context = await browser.newContext({ locale: "en-GB" });
  const page = await context.newPage();
  await page.goto(`${system.baseUrl}/till/?station=${stationId}`);
  await signIn(page, system.cashier);
  await click(page, "Take the station");
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  await click(page, "Card terminal");
  await page.getByLabel("Reference").fill("SLIP-4711", SHOWN);
  const form = page.getByRole("form", { name: "Free line" });
  await endSession(context);
  const again = page.getByRole("dialog", { name: "Your session has ended" });
  await again.waitFor(SHOWN);
  await expectAccessible(page, "till-session-ended");
  await signIn(page, system.cashier, again);
  await again.waitFor({ state: "hidden", ...SHOWN });
  expect(await page.getByLabel("Reference").inputValue()).toBe("SLIP-4711");
  // The end of the session has released the station.
  await takeStationAgain(page, stationId);
  await click(page, "Settle €12.50");
  await click(page, "Next order");
  await addLine(page, "Tea", "2.00");
  await isShown(page, "Choose how the guest pays.");
  await form.getByLabel("Name").fill("Cake");
  await context.clearCookies();
  await click(page, "One more Tea");
  await again.waitFor(SHOWN);
  await signIn(page, system.cashier, again);
  await again.waitFor({ state: "hidden", ...SHOWN });
  expect(await form.getByLabel("Name").inputValue()).toBe("Cake");
  await isShown(page, "Choose how the guest pays.");
  const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const path = `stations/${stationId}/orders/?status=open`;
  const { orders } = await cashier.good<{ orders: { total: string }[] }>("GET", path);
  expect(orders).toMatchObject([{ total: "4.00" }]);
  await context.close();
});

test("the open orders: another till's order appears, more than a page are listed, and unsent lines are not lost", async () => {
  const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  const station = { filial_id: system.sandbox.filialId, name: "Terrace", currency: "EUR" };
  const { station_id: stationId } = await owner.good<{ station_id: number }>("POST", "stations/", { body: station });
  const orders = `stations/${stationId}/orders/`;
  const open = async (name: string): Promise<number> => {
    const body = { lines: [{ name, quantity: 1, unit_amount: "3.00" }] };
    return (await cashier.good<{ order_display_number: number }>("POST", orders, { body })).order_display_number;
  };
  const first = await open("Tea");
  const context = await browser.newContext({ locale: "en-GB" });
  const page = await context.newPage();
  await page.goto(`${system.baseUrl}/till/?station=${stationId}`);
  await signIn(page, system.cashier);
  await click(page, "Take the station");
  await page.getByRole("heading", { name: `Order ${first}` }).waitFor(SHOWN);
  const menu = page.locator("summary", { hasText: "Open orders" });
  const entry = (number: number) => page.getByRole("button", { name: new RegExp(`^Order ${number} `) });
  await menu.click(SHOWN);
  const second = await open("Cake");
  await entry(second).waitFor(SHOWN);
  await open("Juice");
  // With one order in each page, the oldest one is on the third.
  await page.route(/\/orders\/\?.*limit=/, (route) => {
    return route.continue({
      url: route
        .request()
        .url()
        .replace(/limit=\d+/, "limit=1"),
    });
  });
  await page.reload();
  await menu.click(SHOWN);
  await entry(first).waitFor(SHOWN);

  await entry(second).click(SHOWN);
  await page.locator(".line-name", { hasText: "Cake" }).waitFor(SHOWN);
  const isLost = Promise.withResolvers<void>();
  await page.route(/\/lines\/$/, async (route) => {
    await isLost.promise;
    await route.abort();
  });
  const sent = page.waitForRequest(/\/lines\/$/);
  await addLine(page, "Milk", "1.00");
  await sent;
  await drawn(page);
  expect(await button(page, "Leave the station").getAttribute("aria-disabled")).toBe("true");
  isLost.resolve();
  await isShown(page, "The service cannot be reached.");
  await menu.click(SHOWN);
  await expect.poll(() => button(page, "New order").getAttribute("aria-disabled"), SHOWN).toBe("true");
  expect(await button(page, "Leave the station").getAttribute("aria-disabled")).toBe("true");
  await expectAccessible(page);
  await page.unroute(/\/lines\/$/);
  await expect.poll(() => button(page, "New order").getAttribute("aria-disabled"), SHOWN).toBe("false");
  await click(page, "New order");
  const stored = await cashier.good<{ orders: { order_display_number: number; total: string }[] }>("GET", orders);
  const changed = stored.orders.filter(({ total }) => total !== "3.00");
  expect(changed).toMatchObject([{ order_display_number: second, total: "4.00" }]);
  await context.close();
});

describe("the catalogue", () => {
  let owner: Person;
  let context: BrowserContext;
  let page: Page;
  let stationId: number;
  beforeAll(async () => {
    owner = await logIn(system.baseUrl, "backoffice", system.owner);
    const body = { filial_id: system.sandbox.filialId, name: "Garden", currency: "EUR" };
    stationId = (await owner.good<{ station_id: number }>("POST", "stations/", { body })).station_id;
    context = await browser.newContext({ locale: "en-GB" });
    page = await context.newPage();
    await page.goto(`${system.baseUrl}/till/?station=${stationId}`);
    await signIn(page, system.cashier);
    await click(page, "Take the station");
    await button(page, "Leave the station").waitFor(SHOWN);
  });
  afterAll(() => context.close());
  const itemButton = (name: string) => page.getByRole("button", { name: new RegExp(`^${name} `) });

  test("an item that the owner has removed: its line is marked, and the order is saved without it", async () => {
    const ids: Record<string, number> = {};
    for (const name of ["Elderflower", "Cider"]) {
      const body = { filial_id: system.sandbox.filialId, name, category: "", unit_amount: "3.00", currency: "EUR" };
      ids[name] = (await owner.good<{ item_id: number }>("POST", "catalogue-items/", { body })).item_id;
    }
    await page.reload();
    const tapRemoved = async (name: string): Promise<void> => {
      await itemButton(name).waitFor(SHOWN);
      await owner.good("DELETE", `catalogue-items/${ids[name]}/`);
      await itemButton(name).click();
      const line = page.locator(".line", { hasText: name });
      await line.getByText("This item is not in the catalogue any more.").waitFor(SHOWN);
      // The page has read the catalogue again.
      await itemButton(name).waitFor({ state: "hidden", ...SHOWN });
    };
    await tapRemoved("Elderflower");
    await expectAccessible(page);
    await click(page, "One Elderflower less");
    await expect.poll(() => page.getByRole("alert").count(), SHOWN).toBe(0);
    expect(await page.getByRole("heading", { name: "New order" }).count()).toBe(1);
    await addLine(page);
    await isShown(page, "Choose how the guest pays.");
    await tapRemoved("Cider");
    expect(await page.locator(".line-fault").count()).toBe(1);
    // By keyboard, because the page ignores a tap where a button has just appeared.
    await button(page, "One Cider less").press("Enter");
    await isShown(page, "Choose how the guest pays.");
    const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
    const { orders } = await cashier.good<{ orders: unknown[] }>("GET", `stations/${stationId}/orders/`);
    expect(orders).toMatchObject([{ total: "12.50", lines: [{ name: "Soup" }] }]);
  });

  test("as many items as a catalogue may have: the till finds the last one", async () => {
    const count = REGISTRY_LIMITS.catalogueItems;
    await page.route(/\/catalogue-items\/\?/, (route) => {
      const query = new URL(route.request().url()).searchParams;
      const [since, limit] = [Number(query.get("since_id")), Number(query.get("limit"))];
      const items = Array.from({ length: Math.min(limit, count - since) }, (_unused, nth) => {
        const item_id = since + nth + 1;
        return { item_id, name: `Item ${item_id}`, category: "", unit_amount: "1.00", currency: "EUR" };
      });
      return route.fulfill({ json: { items, has_more: since + limit < count } });
    });
    await page.reload();
    await page.getByLabel("Find an item").fill(`Item ${count}`, SHOWN);
    await itemButton(`Item ${count}`).waitFor(SHOWN);
  });
});

async function endSession(context: BrowserContext): Promise<void> {
  const { origin } = new URL(system.baseUrl);
  await context.request.delete(`${system.baseUrl}/api/cashier/v1/session/`, { headers: { origin } });
}

/** Takes the station again. This may happen shortly before or after the sign-in completes. */
async function takeStationAgain(page: Page, stationId: number): Promise<void> {
  await expect
    .poll(
      async () => {
        const take = button(page, "Take the station");
        if ((await take.count()) > 0) await take.click({ timeout: 2_000 });
        return await button(page, "Settle €12.50").getAttribute("aria-disabled");
      },
      { ...SHOWN, message: `station ${stationId}` },
    )
    .toBe("false");
}
