/** Pages that stay open for a day: at the end they use no more memory than early in the day. */
import type { Browser, BrowserContext, CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { logIn } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { startBrowser } from "./chromium.ts";
import { DISPLAY_SERVICE, FAST_DAY, type Memory, memoryOf } from "./fast-day.ts";
import { addLine, button, click, isShown, SHOWN, signIn } from "./till-steps.ts";

const HOUR_MS = 3_600_000;
const { DAY_HOURS } = process.env;
/** How many hours each page runs. `DAY_HOURS=24` is the long form with all pages. The short form has the page that polls most. */
const HOURS = Number(DAY_HOURS ?? 0.8);
/** When the test takes the first reading: by then the code of each page is compiled and the browser's caches are full. */
const EARLY_SHARE = 0.4;
/**
 * How long the page leaks ten copies of each answer afterwards, on purpose: one copy of each would be as much in a time that is
 * not longer than between the short form's readings.
 */
const LEAKING_HOURS = 0.045;
const ALL_HOURS = HOURS + LEAKING_HOURS;
/** The longest that an hour of a page takes on a busy machine. */
const HOUR_TAKES_MS = 60_000;
/**
 * By how much two readings of a page without a leak may differ: the engine compiles more code, and the browser keeps lists.
 * The short form has fewer answers to leak, so it allows less.
 */
const NOISE: Memory = { heapBytes: DAY_HOURS === undefined ? 200_000 : 300_000, nodes: 60, listeners: 20 };

let system: TestSystem;
let browser: Browser;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem(), startBrowser()]);
  const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  await cashier.good("POST", `stations/${system.sandbox.stations[0]?.stationId}/lease/`);
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

async function openFast(path: string, also = ""): Promise<{ readonly context: BrowserContext; readonly page: Page }> {
  const context = await browser.newContext({
    locale: "en-GB",
    reducedMotion: "reduce",
    serviceWorkers: "block",
    // The viewport is small because the test checks no pixels.
    viewport: { width: 360, height: 640 },
  });
  const page = await context.newPage();
  await page.addInitScript(FAST_DAY + also);
  await page.goto(system.baseUrl + path);
  return { context, page };
}

/** Waits until this many hours of the page's day have passed, and reads the page's memory. */
async function memoryAt(hours: number, name: string, page: Page, session: CDPSession): Promise<Memory> {
  // Each check takes the page as much time as one of its polls.
  const until = { timeout: ALL_HOURS * HOUR_TAKES_MS, interval: 200 };
  const isOver = async () => expect(await page.evaluate<number>("passedMs()")).toBeGreaterThan(hours * HOUR_MS);
  await vi.waitFor(isOver, until);
  const memory = await memoryOf(page, session);
  const { heapBytes, nodes, listeners } = memory;
  const polls = await page.evaluate<number>("day.polls");
  process.stdout.write(
    `${name}, ${hours.toFixed(3)} hours, ${polls} answers: ${heapBytes} bytes, ${nodes} nodes, ${listeners} listeners\n`,
  );
  return memory;
}

const isFlat = (early: Memory, late: Memory): boolean =>
  late.heapBytes <= early.heapBytes + NOISE.heapBytes &&
  late.nodes <= early.nodes + NOISE.nodes &&
  late.listeners <= early.listeners + NOISE.listeners;

const ALL_PAGES: Readonly<Record<string, () => Promise<{ readonly context: BrowserContext; readonly page: Page }>>> = {
  async display() {
    const opened = await openFast("/display/#code=7K3QX-9M2TB", DISPLAY_SERVICE);
    await opened.page.locator('[data-screen="idle"]').waitFor(SHOWN);
    return opened;
  },
  async till() {
    const opened = await openFast(`/till/?station=${system.sandbox.stations[0]?.stationId}`);
    const { page } = opened;
    await signIn(page, system.cashier);
    await addLine(page);
    await click(page, "Cash");
    await click(page, "€12.50 received");
    await button(page, "Next order").waitFor(SHOWN);
    return opened;
  },
  async overview() {
    const opened = await openFast("/back/");
    await signIn(opened.page, system.owner);
    await isShown(opened.page, "Collections per hour");
    return opened;
  },
};

const PAGES = Object.entries(ALL_PAGES).filter(([name]) => DAY_HOURS !== undefined || name === "display");

test.each(PAGES)(
  "%s: a day of polls leaves the heap as it was, and the test notices a page that keeps each answer",
  async (name, open) => {
    const { context, page } = await open();
    const session = await context.newCDPSession(page);
    await page.evaluate("beginDay()");
    const early = await memoryAt(EARLY_SHARE * HOURS, name, page, session);
    const late = await memoryAt(HOURS, name, page, session);
    expect(isFlat(early, late)).toBe(true);
    // The page's day went on while the test read its memory, so the time of the leak counts from its beginning.
    const beganMs = await page.evaluate<number>("((day.isLeaking = true), passedMs())");
    const leaking = await memoryAt(beganMs / HOUR_MS + LEAKING_HOURS, `${name} that keeps its answers`, page, session);
    expect(isFlat(late, leaking)).toBe(false);
    await context.close();
  },
  3 * ALL_HOURS * HOUR_TAKES_MS,
);
