/** Pages that stay open all day: after it they hold as much memory as before. */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { logIn } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { startBrowser } from "./chromium.ts";
import { DISPLAY_SERVICE, FAST_DAY, type Memory, memoryOf } from "./fast-day.ts";
import { addLine, button, click, isShown, SHOWN, signIn } from "./till-steps.ts";

const HOUR_MS = 3_600_000;
const SHORT_HOURS = 1;
const { DAY_HOURS } = process.env;
/** The hours of each page that pass; `DAY_HOURS=24` is the long form, with all pages. The daily one has the page that polls most. */
const HOURS = Number(DAY_HOURS ?? SHORT_HOURS);
/** Each state was shown often by then, so that its code is compiled and the browser's caches are full. */
const EARLY_SHARE = 0.4;
/** An hour of a page takes seconds of a busy machine. */
const HOUR_TAKES_MS = 60_000;
/** How far two readings of a page that keeps nothing differ: code that is compiled later, and the browser's own lists. */
const NOISE: Memory = { heapBytes: 300_000, nodes: 60, listeners: 20 };

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
  const context = await browser.newContext({ locale: "en-GB", reducedMotion: "reduce", serviceWorkers: "block" });
  const page = await context.newPage();
  await page.addInitScript(FAST_DAY + also);
  await page.goto(system.baseUrl + path);
  return { context, page };
}

/** What the page holds after the first hours, and after all of them. */
async function memoryOver(hours: number, name: string, page: Page): Promise<readonly [Memory, Memory]> {
  const session = await page.context().newCDPSession(page);
  await page.evaluate("beginDay()");
  const after = async (passed: number): Promise<Memory> => {
    const until = { timeout: hours * HOUR_TAKES_MS, interval: 50 };
    const isOver = async () => expect(await page.evaluate<number>("passedMs()")).toBeGreaterThan(passed * HOUR_MS);
    await vi.waitFor(isOver, until);
    return await memoryOf(page, session);
  };
  const memory = [await after(EARLY_SHARE * hours), await after(hours)] as const;
  const text = memory.map(
    ({ heapBytes, nodes, listeners }) => `${heapBytes} bytes, ${nodes} nodes, ${listeners} listeners`,
  );
  const polls = await page.evaluate<number>("day.polls");
  process.stdout.write(`${name}, ${hours} hours, ${polls} answers: ${text.join(" → ")}\n`);
  return memory;
}

const isFlat = ([early, late]: readonly [Memory, Memory]): boolean =>
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

describe("a day of polls leaves the heap as it was", () => {
  test.each(PAGES)(
    "%s",
    async (name, open) => {
      const { context, page } = await open();
      const memory = await memoryOver(HOURS, name, page);
      expect(isFlat(memory)).toBe(true);
      await context.close();
    },
    2 * HOURS * HOUR_TAKES_MS,
  );

  test.each(PAGES)(
    "%s: one that keeps each answer is noticed",
    async (name, open) => {
      const { context, page } = await open();
      await page.evaluate("day.isLeaking = true");
      const memory = await memoryOver(SHORT_HOURS, `${name} that keeps its answers`, page);
      expect(isFlat(memory)).toBe(false);
      await context.close();
    },
    2 * SHORT_HOURS * HOUR_TAKES_MS,
  );
});
