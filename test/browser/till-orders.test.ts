/** The till in a real browser: orders that the cashier turns to while another one ends. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { logIn } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { startBrowser } from "./chromium.ts";
import { addLine, button, click, isShown, SHOWN, signIn } from "./till-steps.ts";

let system: TestSystem;
let browser: Browser;
beforeAll(async () => {
  [system, browser] = await Promise.all([startSystem(), startBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

test("a new order that was begun beside the end of the one before stays when the cashier goes on", async () => {
  const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const stationId = system.sandbox.stations[0]?.stationId ?? 0;
  const context = await browser.newContext({ locale: "en-GB" });
  const page = await context.newPage();
  await page.goto(`${system.baseUrl}/till/?station=${stationId}`);
  await signIn(page, system.cashier);
  await click(page, "Take the station");
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
