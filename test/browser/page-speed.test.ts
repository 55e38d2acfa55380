/**
 * How fast the pages are: the first paint when a signed-in person reloads a page, a commit on the screen of a till, and the
 * display after an outage.
 */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLoginLink } from "../../services/bus/messages/login-links.ts";
import { call } from "../../services/bus/operation.ts";
import { newCode } from "../support/devices.ts";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { type LogIn, startSystem, type TestSystem } from "../support/system.ts";
import { startBrowser } from "./chromium.ts";
import { button, SHOWN, signIn } from "./till-steps.ts";

const FIRST_PAINT_MS = 1_000;
const BACK_MS = 3_000;
/** Other work on the machine can only lengthen a load, so the best of them counts. */
const LOADS = 3;
/** The longest time from a commit of the station, before it is stored, to the frame that shows it. */
const PIXEL_MS = 100;
/** `TILL_COMMITS=100` is the long form: 99 of 100 commits must be within the bound. Of fewer, the median must be. */
const COMMITS = Number(process.env["TILL_COMMITS"] ?? 16);
const SHARE = COMMITS < 100 ? 0.5 : 0.99;

let system: TestSystem;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let owner: Person;
const operator = { email: "rita@sandbox.example", password: "a long enough password" };
beforeAll(async () => {
  [system, browser] = await Promise.all([startSystem(), startBrowser()]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  await owner.good("POST", "users/", { body: { ...operator, name: "Rita", role: "reconciliation_operator" } });
  context = await browser.newContext({ locale: "en-GB" });
  page = await context.newPage();
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

async function openSignedIn(place: Page, address: string, person: LogIn): Promise<void> {
  await place.goto(`${system.baseUrl}/${address}`);
  await signIn(place, person);
  await place.getByLabel("Password").waitFor({ state: "detached", ...SHOWN });
}

async function openStart(): Promise<void> {
  const { organizationId, stations } = system.sandbox;
  const stationId = stations[1]?.stationId ?? 0;
  const { token } = await call(system.bus.nc, createLoginLink, { organizationId, stationId });
  await page.goto(`${system.baseUrl}/start/#${token}`);
  await page.locator('iframe[title="Till"]').waitFor(SHOWN);
}

async function pairDisplay(): Promise<void> {
  const display = system.sandbox.stations[0]?.devices.find(({ kind }) => kind === "customer_display");
  await page.goto(`${system.baseUrl}/display/#code=${display?.enrollmentCode}`);
  await page.locator('[data-screen="idle"]').waitFor(SHOWN);
}

test.each<[string, () => Promise<void>]>([
  ["display", pairDisplay],
  ["till", () => openSignedIn(page, "till/", system.cashier)],
  ["back", () => openSignedIn(page, "back/", system.owner)],
  ["reconcile", () => openSignedIn(page, "reconcile/", operator)],
  ["start", openStart],
])("/%s/: the first paint of a reload is within its bound", async (name, prepare) => {
  await prepare();
  const paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0";
  let paintMs = Number.POSITIVE_INFINITY;
  for (let load = 0; load < LOADS && paintMs > FIRST_PAINT_MS; load += 1) {
    await page.reload();
    await expect.poll(() => page.evaluate<number>(paint)).toBeGreaterThan(0);
    paintMs = await page.evaluate<number>(paint);
  }
  process.stdout.write(`/${name}/: first paint after ${Math.round(paintMs)} ms\n`);
  expect(paintMs).toBeLessThanOrEqual(FIRST_PAINT_MS);
});

test("a commit is on the screen within 100 ms", async () => {
  const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  const stationId = system.sandbox.stations[0]?.stationId;
  const station = `stations/${stationId}`;
  await cashier.good("POST", `${station}/lease/`);
  const till = await (await browser.newContext({ locale: "en-GB" })).newPage();
  await openSignedIn(till, `till/?station=${stationId}`, system.cashier);
  await button(till, "Leave the station").waitFor(SHOWN);
  const order_id = await newOrder(cashier, station, "1.00", "Tea");
  await till.evaluate(RECORD_PIXELS);
  const drawnAt = (label: string): Promise<number> => till.evaluate<number>(`drawnAt(${JSON.stringify(label)})`);
  type Timed = Record<"intent_id" | "intent_display_number", number> & Record<"created_at" | "ended_at", string>;
  const waits: number[] = [];
  for (let collection = 0; collection < COMMITS / 2; collection += 1) {
    const body = { order_id, route: "cash" };
    const begun = await cashier.good<Timed>("POST", `${station}/intents/`, { body });
    waits.push((await drawnAt(`Collection ${begun.intent_display_number}`)) - Date.parse(begun.created_at));
    const ended = await cashier.good<Timed>("POST", `${station}/intents/${begun.intent_id}/cancel/`);
    waits.push((await drawnAt(`none after ${begun.intent_display_number}`)) - Date.parse(ended.ended_at));
  }
  waits.sort((left, right) => left - right);
  const rank = (share: number): number => Math.round(waits[Math.ceil(waits.length * share) - 1] ?? Number.NaN);
  process.stdout.write(`commit to pixel, ${COMMITS} commits: p50 ${rank(0.5)} ms, p99 ${rank(0.99)} ms\n`);
  expect(rank(SHARE)).toBeLessThanOrEqual(PIXEL_MS);
});

test("the service is back after an outage: the display shows its state within 3 s", async () => {
  // The station of the test before still has its order.
  const newStation = { filial_id: system.sandbox.filialId, name: "Station of the outage", currency: "EUR" };
  const { station_id } = await owner.good<{ station_id: number }>("POST", "stations/", { body: newStation });
  const body = { station_id, name: "Display of the outage", kind: "customer_display" };
  const { device_id } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
  const display = await (await browser.newContext({ locale: "en-GB" })).newPage();
  await display.goto(`${system.baseUrl}/display/#code=${await newCode(owner, device_id)}`);
  await display.locator('[data-screen="idle"]').waitFor(SHOWN);
  const offline = display.getByText("No connection").first();
  await system.processes.gateway.kill9();
  await offline.waitFor(SHOWN);
  await system.processes.gateway.restart();
  const backAtMs = performance.now();
  await offline.waitFor({ state: "hidden", ...SHOWN });
  expect(performance.now() - backAtMs).toBeLessThan(BACK_MS);
});

/** A script that records when a frame first shows each collection, and when it has disappeared. */
const RECORD_PIXELS = `
  const drawn = new Map(), wanted = new Map();
  let shown = "", last = "";
  new MutationObserver(() => {
    const found = document.querySelector(".collection");
    const label = found ? found.getAttribute("aria-label") : "none after " + last.replace(/\\D/g, "");
    if (label === shown) return;
    shown = label;
    if (found) last = label;
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        drawn.set(label, performance.timeOrigin + performance.now());
        if (wanted.has(label)) wanted.get(label)(drawn.get(label));
      };
      channel.port2.postMessage(0);
    });
  }).observe(document.body, { subtree: true, childList: true, attributes: true });
  window.drawnAt = (label) =>
    drawn.has(label) ? drawn.get(label) : new Promise((resolve) => wanted.set(label, resolve));
`;
