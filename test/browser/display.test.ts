/** The customer display in a real browser, against the whole system. */
import { setTimeout as delay } from "node:timers/promises";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { KIT_LIMITS } from "../../clients/device-kit/limits.ts";
import { PAID_SHOWN_MS } from "../../machines/settings.ts";
import { fromAnotherAddress, newCode } from "../support/devices.ts";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { expectAccessible, expectNoSideways, startBrowser } from "./chromium.ts";

/** The display polls every two seconds, and the machine may be slow. */
const SHOWN = { timeout: 15_000 };

/** The display polls every two seconds, and renders at once. */
const POLL_PIXEL_MS = 2_100;

let system: TestSystem;
let browser: Browser;
let owner: Person;
let cashier: Person;
let station: string;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem({ sandboxProvider: true, claims: true }), startBrowser()]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  station = `stations/${system.sandbox.stations[0]?.stationId}`;
  await cashier.good("POST", `${station}/lease/`);
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

interface NewDisplay {
  readonly deviceId: number;
  readonly code: string;
}
async function register(at = station): Promise<NewDisplay> {
  const body = { station_id: Number(at.split("/")[1]), name: `Display ${performance.now()}`, kind: "customer_display" };
  const { device_id: deviceId } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
  return { deviceId, code: await newCode(owner, deviceId) };
}

/** A station for a test that runs beside others. */
async function newStation(): Promise<string> {
  const body = { filial_id: system.sandbox.filialId, name: `Station ${performance.now()}`, currency: "EUR" };
  const { station_id } = await owner.good<{ station_id: number }>("POST", "stations/", { body });
  const at = `stations/${station_id}`;
  await cashier.good("POST", `${at}/lease/`);
  // A new station gets the filial's provider within a second.
  await expect
    .poll(() => cashier.good("GET", `${at}/routes/`))
    .toMatchObject({
      routes: expect.arrayContaining([expect.objectContaining({ route: "dynamic_qr", offered: true })]) as unknown,
    });
  return at;
}

/** The address that the back office's QR code contains. */
const addressWith = (code: string): string => `${system.baseUrl}/display/#code=${code}`;
const isShown = (page: Page, screen: string) =>
  page.locator(`[data-screen="${screen}"]`).waitFor({ state: "visible", ...SHOWN });

interface Paired extends NewDisplay {
  readonly context: BrowserContext;
  readonly page: Page;
}
interface PairOptions {
  readonly at?: string;
  /** The page's clock can be moved ahead. */
  readonly isClockMovable?: boolean;
}

async function pair(
  options: Parameters<Browser["newContext"]>[0] = {},
  { at = station, isClockMovable = false }: PairOptions = {},
): Promise<Paired> {
  const device = await register(at);
  const context = await browser.newContext({ locale: "en-GB", extraHTTPHeaders: fromAnotherAddress(), ...options });
  if (isClockMovable) await context.clock.install();
  const page = await context.newPage();
  await page.goto(addressWith(device.code));
  await isShown(page, "idle");
  return { ...device, context, page };
}

const openOrder = (unit_amount = "12.50", at = station) => newOrder(cashier, at, unit_amount, "Tea");
const collect = async (order_id: number, route: string, at = station) =>
  (await cashier.good<{ intent_id: number }>("POST", `${at}/intents/`, { body: { order_id, route } })).intent_id;

describe("pairing", () => {
  test("a typed code: it pairs the display, a wrong code says why, and after a reload the display is still paired", async () => {
    const { code } = await register();
    const context = await browser.newContext({ locale: "de-DE", viewport: { width: 360, height: 640 } });
    const page = await context.newPage();
    await page.goto(`${system.baseUrl}/display/`);
    await isShown(page, "pair");
    await expectAccessible(page, "display-pair");
    await expectNoSideways(page);
    await page.getByLabel("Kopplungscode").fill("7k3qx9m2tb");
    expect(await page.getByLabel("Kopplungscode").inputValue()).toBe("7K3QX-9M2TB");
    await page.keyboard.press("Enter");
    await page.getByText("Dieser Code ist unbekannt").waitFor(SHOWN);
    await expectAccessible(page, "display-unknown-code");
    await page.getByRole("button", { name: "English" }).click();
    await page.getByLabel("Pairing code").fill(code.toLowerCase().replace("-", ""));
    await page.getByRole("button", { name: "Pair" }).click();
    await isShown(page, "idle");
    await page.reload();
    await isShown(page, "idle");
    await context.close();
  });

  test("a code in the address pairs, leaves the address bar at once, and reaches no server", async () => {
    const { code } = await register();
    const context = await browser.newContext();
    const page = await context.newPage();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(addressWith(code));
    await isShown(page, "idle");
    expect(page.url()).toBe(`${system.baseUrl}/display/`);
    expect(asked.filter((url) => url.includes(code))).toEqual([]);
    expect(new Set(asked.map((url) => new URL(url).origin))).toEqual(new Set([system.baseUrl]));
    await page.goBack().catch(() => null);
    expect(page.url()).not.toContain(code);
    await context.close();
  });

  test("the address with a code is opened where the page asks for it: the display is paired", async () => {
    const { code } = await register();
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(`${system.baseUrl}/display/`);
    await isShown(page, "pair");
    await page.goto(addressWith(code));
    await isShown(page, "idle");
    expect(page.url()).toBe(`${system.baseUrl}/display/`);
    await context.close();
  });

  test("a code of a companion is refused with a reason, and the display can be paired again", async () => {
    const companion = await owner.good<{ device_id: number }>("POST", "devices/", {
      body: { station_id: system.sandbox.stations[0]?.stationId, name: "A companion", kind: "smart_pos_companion" },
    });
    const context = await browser.newContext({ locale: "en-GB" });
    const page = await context.newPage();
    await page.goto(addressWith(await newCode(owner, companion.device_id)));
    await isShown(page, "stopped");
    await page.getByText("This code belongs to another kind of device").waitFor();
    await expectAccessible(page, "display-other-kind");
    await page.getByRole("button", { name: "Pair again" }).click();
    await isShown(page, "pair");
    await context.close();
  });

  test("a second tab waits, and continues when the first tab closes", async () => {
    const { context, page } = await pair();
    const second = await context.newPage();
    await second.goto(`${system.baseUrl}/display/`);
    await isShown(second, "elsewhere");
    await expectAccessible(second, "display-elsewhere");
    await page.close();
    await isShown(second, "idle");
    await context.close();
  });
});

/** Phones, tablets and monitors in both orientations, square screens, and the frame of the first minute. */
const SCREENS = [
  [360, 640],
  [568, 320],
  [1_080, 1_920],
  [1_920, 1_080],
  [768, 1_024],
  [1_024, 768],
  [800, 900],
  [900, 800],
  [480, 480],
  [460, 384],
  [400, 384],
] as const;
const NEARLY_SQUARE = [
  [320, 400],
  [390, 500],
  [440, 500],
  [480, 640],
  [600, 800],
] as const;
/** How much of the page is below the window. */
const hiddenPx = (page: Page) => page.evaluate<number>("document.documentElement.scrollHeight - innerHeight");

describe("what a guest sees", () => {
  test.concurrent("each state as the service has it: accessible, also at 360 pixels and with reduced motion", async () => {
    const at = await newStation();
    const { context, page } = await pair({ viewport: { width: 360, height: 640 }, reducedMotion: "reduce" }, { at });
    await expectAccessible(page, "display-idle");
    // For this amount the sandbox provider waits for the guest.
    const order = await openOrder("1234.03", at);
    await isShown(page, "total");
    await page.getByText("€1,234.03").waitFor();
    await expectAccessible(page, "display-total");
    await expectNoSideways(page);
    const intent = await collect(order, "dynamic_qr", at);
    await isShown(page, "qr");
    await expectAccessible(page, "display-qr");
    await expectNoSideways(page);
    // The whole code is in the window, large enough, on each shape of screen. No guest scrolls.
    for (const [width, height] of SCREENS) {
      await page.setViewportSize({ width, height });
      // The amount is as large as its place after the next render.
      await expect.poll(() => hiddenPx(page), { message: `${width} × ${height}` }).toBe(0);
      const box = await page.locator(".qr-code").boundingBox();
      expect(box?.width, `${width} × ${height}`).toBeGreaterThanOrEqual(240);
      await expectNoSideways(page);
    }
    await page.setViewportSize({ width: 360, height: 640 });
    // It is black on white also in dark mode.
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await page.locator(".qr-code path").first().getAttribute("fill")).toBe("#ffffff");
    await page.emulateMedia({ colorScheme: null });
    await cashier.good("POST", `${at}/intents/${intent}/cancel/`);
    await isShown(page, "total");
    const cash = await vi.waitFor(() => collect(order, "cash", at), SHOWN);
    await cashier.good("POST", `${at}/intents/${cash}/attest/`);
    await isShown(page, "paid");
    await page.getByText("Paid").waitFor();
    await expectAccessible(page, "display-paid");
    await expectNoSideways(page);
    await page.emulateMedia({ reducedMotion: "reduce" });
    const animation = await page.locator(".check path").evaluate((path) => getComputedStyle(path).animationName);
    expect(animation).toBe("none");
    await isShown(page, "idle");
    await context.close();
  });

  test.concurrent("a change of the order is on the screen with the next poll, within 2.1 s", async () => {
    const at = await newStation();
    const { context, page } = await pair({}, { at });
    const waits: number[] = [];
    for (let round = 1; round <= 5; round += 1) {
      // Each round starts at another time between two polls: the previous order appeared with a poll.
      await delay(round * 370);
      const order = await openOrder(`${round}.40`, at);
      const openedAtMs = performance.now();
      await page.getByText(`€${round}.40`).waitFor(SHOWN);
      waits.push(performance.now() - openedAtMs);
      await cashier.good("POST", `orders/${order}/void/`);
    }
    waits.sort((left, right) => left - right);
    process.stdout.write(`order to the display's pixel: ${waits.map(Math.round).join(", ")} ms\n`);
    // Checks the median, because other tests on the machine delay the slowest rounds.
    expect(waits[2]).toBeLessThanOrEqual(POLL_PIXEL_MS);
    await isShown(page, "idle");
    await context.close();
  });

  test("each time it becomes visible, it asks that the screen stays on, and continues when the browser refuses", async () => {
    const { code } = await register();
    const context = await browser.newContext({ locale: "en-GB" });
    const page = await context.newPage();
    // The headless browser has no screen, so it refuses. The page must continue.
    await page.addInitScript(`
      const request = navigator.wakeLock.request.bind(navigator.wakeLock);
      window.asked = [];
      navigator.wakeLock.request = (type) => {
        window.asked.push(type);
        return request(type);
      };`);
    const errors: string[] = [];
    page.on("pageerror", ({ message }) => errors.push(message));
    const becomes = (state: "hidden" | "visible") =>
      page.evaluate(`
        Object.defineProperty(document, "hidden", { configurable: true, value: ${state === "hidden"} });
        document.dispatchEvent(new Event("visibilitychange"));
        asked`);
    await page.goto(addressWith(code));
    await isShown(page, "idle");
    expect(await becomes("hidden")).toEqual(["screen"]);
    expect(await becomes("visible")).toEqual(["screen", "screen"]);
    await page.reload();
    await isShown(page, "idle");
    expect(errors).toEqual([]);
    await context.close();
  });

  test("the whole QR code is in the window in German too, beside a large amount", async () => {
    const at = await newStation();
    const { context, page } = await pair({ viewport: { width: 360, height: 640 }, locale: "de-DE" }, { at });
    await collect(await openOrder("123456.03", at), "dynamic_qr", at);
    await isShown(page, "qr");
    for (const [width, height] of [...SCREENS, ...NEARLY_SQUARE]) {
      await page.setViewportSize({ width, height });
      await expect.poll(() => hiddenPx(page), { message: `${width} × ${height}` }).toBe(0);
      const box = await page.locator(".qr-code").boundingBox();
      expect(box?.width, `${width} × ${height}`).toBeGreaterThanOrEqual(240);
      await expectNoSideways(page);
    }
    await context.close();
  });

  test("a long amount fits into a narrow window, portrait and landscape", async () => {
    const { context, page } = await pair({ viewport: { width: 320, height: 568 } });
    const order = await openOrder("98765.43");
    await isShown(page, "total");
    await expectNoSideways(page);
    await page.setViewportSize({ width: 568, height: 320 });
    await expectNoSideways(page);
    const [text, window] = await page
      .locator(".amount span")
      .evaluate((span) => [span.getBoundingClientRect().right, innerWidth]);
    expect(text).toBeLessThanOrEqual(window ?? 0);
    await cashier.good("POST", `orders/${order}/void/`);
    await context.close();
  });
});

describe("a display that may not act", () => {
  test("a suspended one shows the reason and continues when resumed; a revoked one can be paired again", async () => {
    const { context, page, deviceId } = await pair({}, { isClockMovable: true });
    await owner.good("POST", `devices/${deviceId}/suspend/`);
    await isShown(page, "blocked");
    await page.getByText("The owner has suspended this display.").waitFor();
    await expectAccessible(page, "display-blocked");
    await owner.good("POST", `devices/${deviceId}/resume/`);
    await page.clock.fastForward(KIT_LIMITS.blockedMs);
    await isShown(page, "idle");
    await owner.good("POST", `devices/${deviceId}/reset/`);
    await isShown(page, "pair");
    await page.getByText("This display is not paired any more").waitFor();
    await expectAccessible(page, "display-unpaired");
    await page.goto(addressWith(await newCode(owner, deviceId)));
    await isShown(page, "idle");
    await context.close();
  });
});

describe("an outage", () => {
  test("`paid` disappears, the display says that it is stale, and the right state follows the service", async () => {
    const { context, page } = await pair();
    const order = await openOrder();
    const intent = await collect(order, "cash");
    await isShown(page, "total");
    await cashier.good("POST", `${station}/intents/${intent}/attest/`);
    const paidAtMs = performance.now();
    await isShown(page, "paid");
    await system.processes.gateway.kill9();
    await page.getByText("No connection").waitFor(SHOWN);
    await isShown(page, "wait");
    expect(await page.getByText("Paid").count()).toBe(0);
    await expectAccessible(page, "display-no-connection");
    // The shell needs no server: a kiosk that starts again shows the page and not the browser's error.
    await page.reload({ waitUntil: "domcontentloaded" });
    await page.locator("[data-screen]").waitFor(SHOWN);
    const screens = recordScreens(page);
    // Before this time the service itself would still answer `paid`.
    await delay(Math.max(0, paidAtMs + PAID_SHOWN_MS - performance.now()));
    await system.processes.gateway.restart();
    await isShown(page, "idle");
    expect(await screens()).not.toContain("paid");
    await context.close();
  });
});

/** Records every screen that the page shows from now on. */
function recordScreens(page: Page): () => Promise<readonly string[]> {
  const begun = page.evaluate(`
    window.screens = [];
    new MutationObserver(() => {
      const shown = document.querySelector("[data-screen]");
      if (shown) window.screens.push(shown.getAttribute("data-screen"));
    }).observe(document.body, { subtree: true, childList: true, attributes: true });`);
  return async () => {
    await begun;
    return await page.evaluate<string[]>("window.screens");
  };
}
