/** The till in a real browser: a cashier who taps twice, while the first tap changes what is under the finger. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { drawn, startBrowser } from "./chromium.ts";
import { addLine, button, click, isShown, SHOWN, signIn } from "./till-steps.ts";

let system: TestSystem;
let browser: Browser;
let cashier: Person;
let page: Page;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem(), startBrowser()]);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  page = await browser.newPage({ locale: "en-GB", reducedMotion: "reduce" });
  await page.goto(`${system.baseUrl}/till/`);
  await signIn(page, system.cashier);
  await page.locator(".station-list").waitFor(SHOWN);
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

/** A new station that this cashier drives. */
async function openTill(): Promise<number> {
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  const body = {
    filial_id: system.sandbox.filialId,
    name: `Station ${Math.round(performance.now())}`,
    currency: "EUR",
  };
  const { station_id: stationId } = await owner.good<{ station_id: number }>("POST", "stations/", { body });
  await cashier.good("POST", `stations/${stationId}/lease/`);
  await page.goto(`${system.baseUrl}/till/?station=${stationId}`);
  await button(page, "Leave the station").waitFor(SHOWN);
  return stationId;
}

test("a double tap: the second tap does not settle by the button that has appeared under the finger", async () => {
  const stationId = await openTill();
  let attested = 0;
  page.on("request", (request) => (attested += Number(request.url().endsWith("/attest/"))));
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  await page.evaluate(tapBoth("Cash", "€12.50 received"));
  await drawn(page);
  expect(attested).toBe(0);
  await click(page, "€12.50 received");
  await button(page, "Next order").waitFor(SHOWN);
  const { intents } = await cashier.good<{ intents: { status: string }[] }>("GET", `stations/${stationId}/intents/`);
  expect(intents.map(({ status }) => status)).toEqual(["succeeded"]);
});

test("a double tap on an item adds it twice, although the first line moves the items", async () => {
  await openTill();
  const item = page.locator("button.item").first();
  const name = await item.locator("span").first().textContent(SHOWN);
  const box = await item.boundingBox();
  const second = await page.evaluate<string>(tapTwice((box?.x ?? 0) + 40, (box?.y ?? 0) + 32));
  expect(second).not.toContain(name);
  await isShown(page, "Choose how the guest pays.");
  expect(await page.locator(".line-name").allTextContents()).toEqual([name]);
  expect(await page.locator(".quantity").textContent()).toBe("2");
});

test("a double tap that removes a line takes nothing from the next line, which has moved under the finger", async () => {
  await openTill();
  await addLine(page);
  await addLine(page, "Tea", "2.00");
  await isShown(page, "€14.50");
  const less = await button(page, "One Soup less").boundingBox();
  const [x, y] = [(less?.x ?? 0) + 10, (less?.y ?? 0) + 10];
  expect(await page.evaluate<string>(tapTwice(x, y))).toBe("One Tea less");
  await isShown(page, "€2.00");
  expect(await page.locator(".line-name").allTextContents()).toEqual(["Tea"]);
  // Two taps on the same button count as two.
  const more = await button(page, "One more Tea").boundingBox();
  await page.evaluate(tapTwice((more?.x ?? 0) + 10, (more?.y ?? 0) + 10));
  await isShown(page, "€6.00");
});

/** A script with a function that taps at a place, like the second tap of a double tap. */
const tap = (x: number, y: number): string => `
  const tap = () => {
    const options = { bubbles: true, cancelable: true, detail: 2, clientX: ${x}, clientY: ${y} };
    const tapped = document.elementFromPoint(${x}, ${y});
    tapped.dispatchEvent(new MouseEvent("click", options));
    return tapped.getAttribute("aria-label") || tapped.textContent;
  };`;
/** Taps the first button, and then its place when the second one appears there. The clock stops: a machine may be slow. */
const tapBoth = (first: string, second: string): string => `new Promise((resolve) => {
  const now = performance.now();
  performance.now = () => now;
  const named = (name) => [...document.querySelectorAll("button")].find((each) => each.textContent === name);
  const { x, y } = named("${first}").getBoundingClientRect();
  const at = { bubbles: true, cancelable: true, detail: 1, clientX: x + 5, clientY: y + 5 };
  named("${first}").dispatchEvent(new MouseEvent("click", at));
  const again = () => {
    const found = named("${second}");
    if (found === undefined) return requestAnimationFrame(again);
    found.dispatchEvent(new MouseEvent("click", at));
    delete performance.now;
    resolve();
  };
  again();
})`;
/** Taps, and taps again when the page has drawn the change; returns the name of the button of the second tap. */
const tapTwice = (x: number, y: number): string => `{${tap(x, y)}
  const now = performance.now();
  performance.now = () => now;
  tap();
  new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => {
      resolve(tap());
      delete performance.now;
    }));
  })}`;
