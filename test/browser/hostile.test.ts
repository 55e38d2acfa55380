/** The pages in a real browser with hostile text, several people at one browser, and wrong clocks. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { addDevice, reportOnce } from "../support/devices.ts";
import { logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { expectNoSideways, startBrowser } from "./chromium.ts";
import { addLine, button, click, isShown, SHOWN, signIn } from "./till-steps.ts";

const PASSWORD = "a long enough password";
const PHONE = { width: 360, height: 740 };
/** The browser's clock is a day and two hours slow, so its date is wrong at any hour. */
const SLOW_CLOCK = `
  const Real = Date;
  const behind = () => Real.now() - 26 * 3_600_000;
  globalThis.Date = class extends Real {
    constructor(...given) { given.length === 0 ? super(behind()) : super(...given); }
    static now() { return behind(); }
  };`;

let system: TestSystem;
let browser: Browser;
let owner: Person;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem(), startBrowser()]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  for (const [name, role] of [
    ["Lee", "cashier"],
    ["Rita", "reconciliation_operator"],
    ["Sam", "reconciliation_operator"],
  ])
    await owner.good("POST", "users/", {
      body: { email: `${name}@sandbox.example`, password: PASSWORD, name, role },
    });
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

async function newStation(name: string, currency = "EUR"): Promise<number> {
  const body = { filial_id: system.sandbox.filialId, name, currency };
  return (await owner.good<{ station_id: number }>("POST", "stations/", { body })).station_id;
}

async function open(address: string, options: Parameters<Browser["newContext"]>[0] = {}, script = ""): Promise<Page> {
  const context = await browser.newContext({ locale: "en-GB", reducedMotion: "reduce", ...options });
  if (script !== "") await context.addInitScript(script);
  const page = await context.newPage();
  await page.goto(system.baseUrl + address);
  return page;
}

async function openTill(stationId: number, options: Parameters<Browser["newContext"]>[0] = {}): Promise<Page> {
  const page = await open(`/till/?station=${stationId}`, options);
  await signIn(page, system.cashier);
  await click(page, "Take the station");
  await button(page, "Leave the station").waitFor(SHOWN);
  return page;
}

const of = (name: string) => ({ email: `${name.toLowerCase()}@sandbox.example`, password: PASSWORD });

describe("two people at one browser", () => {
  test.each([
    ["/till/", () => system.cashier, "Sandbox Cashier", "Lee"],
    ["/reconcile/", () => of("Rita"), "Rita", "Sam"],
  ] as const)(
    "%s: a tab never works for the next person under the name of the previous person",
    async (address, first, name, next) => {
      const tab = await open(address);
      await signIn(tab, first());
      await tab.locator("header").getByText(name).waitFor(SHOWN);
      const other = await tab.context().newPage();
      await other.goto(system.baseUrl + address);
      await click(other, "Sign out");
      await signIn(other, of(next));
      await other.locator("header").getByText(next).waitFor(SHOWN);
      await tab.locator("header").getByText(next).waitFor(SHOWN);
      expect(await tab.locator("header").getByText(name).count()).toBe(0);
      await tab.context().close();
    },
  );

  test.each([
    ["/till/", "cashier", () => system.cashier],
    ["/back/", "backoffice", () => system.owner],
    ["/reconcile/", "reconciliation", () => of("Rita")],
  ] as const)("%s: a sign-in on one tab is enough for all tabs", async (address, api, who) => {
    const tab = await open(address);
    const other = await tab.context().newPage();
    await other.goto(system.baseUrl + address);
    await other.getByLabel("Password").waitFor(SHOWN);
    await signIn(tab, who());
    const signOuts = [tab, other].map((one) => button(one, "Sign out"));
    for (const signOut of signOuts) await signOut.waitFor(SHOWN);
    // Now the session ends below both tabs.
    await tab.evaluate(`fetch("/api/${api}/v1/session/", { method: "DELETE" })`);
    const questions = [tab, other].map((one) => one.getByRole("dialog", { name: "Your session has ended" }));
    for (const question of questions) await question.waitFor(SHOWN);
    await signIn(other, who(), questions[1]);
    for (const question of questions) await question.waitFor({ state: "detached", ...SHOWN });
    await tab.context().close();
  });

  test("till: a slow sign-out does not ask the person who signs out to sign in again", async () => {
    const page = await openTill(await newStation("Bar of one"));
    const held = Promise.withResolvers<void>();
    await page.route("**/session/", async (route) => {
      const response = await route.fetch();
      await held.promise;
      await route.fulfill({ response });
    });
    const closed = page.evaluate("new Promise((onEnd) => setTimeout(onEnd, 1500))");
    await click(page, "Sign out");
    // Meanwhile the service closes the live connection, because the session has ended.
    await closed;
    expect(await page.getByRole("dialog").count()).toBe(0);
    held.resolve();
    await page.getByLabel("Password").waitFor(SHOWN);
    await page.context().close();
  });

  test("till: lines that one cashier could not send are not sent for the next cashier", async () => {
    const page = await openTill(await newStation("Bar of two"));
    const sent: string[] = [];
    await page.route("**/orders/", async (route) => {
      const method = route.request().method();
      // The page also reads the list of open orders from time to time.
      if (method === "GET") return await route.continue();
      sent.push(method);
      await route.fulfill({ status: 503, json: { code: "busy", detail: "", request_id: "r" } });
    });
    await addLine(page);
    await expect.poll(() => sent.length, SHOWN).toBe(1);
    await click(page, "Sign out");
    await signIn(page, of("Lee"));
    await page.locator(".station-list").waitFor(SHOWN);
    await page.context().setOffline(true);
    await isShown(page, "No connection. Buttons work again when it is back.");
    await page.context().setOffline(false);
    await page.locator(".offline-bar").waitFor({ state: "detached", ...SHOWN });
    await page.getByRole("button", { name: "Deutsch" }).click();
    expect(sent).toHaveLength(1);
    await page.context().close();
  });
});

describe("a browser whose clock is a day slow", () => {
  test("reconciliation: the default days are those of the service's clock", async () => {
    const page = await open("/reconcile/?section=periods", { timezoneId: "UTC" }, SLOW_CLOCK);
    await signIn(page, of("Rita"));
    const today = (): string => new Date().toISOString().slice(0, 10);
    expect(await page.evaluate("new Date().toISOString().slice(0, 10)")).not.toBe(today());
    await expect.poll(() => page.getByLabel("To", { exact: true }).inputValue(SHOWN), SHOWN).toBe(today());
    await page.context().close();
  });
});

describe("text that could replace the page", () => {
  test("till, on a phone: a reference of a thousand lines does not move the decision", async () => {
    const stationId = await newStation("Bar of the long reference");
    const page = await openTill(stationId, { viewport: PHONE });
    const body = { station_id: stationId, name: "Companion", kind: "smart_pos_companion" };
    const companion = await addDevice(system.baseUrl, owner, body);
    await companion.good("POST", "heartbeat/", { body: { summary: {} } });
    await addLine(page);
    await click(page, "Smart POS");
    await isShown(page, "Wait for the report of the device.");
    const before = (await button(page, /^Settle/).boundingBox())?.y ?? 0;
    await reportOnce(companion, "reported_success", `REF${"\n".repeat(1_000)}END`);
    await isShown(page, "Approved");
    const after = (await button(page, /^Settle/).boundingBox())?.y ?? 0;
    expect(after - before).toBeLessThan(PHONE.height / 4);
    await page.context().close();
  });

  test("back office: a section with the name of a built-in property is not found, and the page stays", async () => {
    const page = await open("/back/__proto__/");
    await signIn(page, system.owner);
    await isShown(page, "There is no such section");
    await page.context().close();
  });
});

describe("on a phone", () => {
  test("till: the name of an item beside a large amount stays readable, and the header is low", async () => {
    const stationId = await newStation("Bar der sehr großen Beträge", "JPY");
    const page = await openTill(stationId, { viewport: PHONE });
    await addLine(page, "Hochzeitsgesellschaft mit Übernachtung", "999999999");
    await page.locator(".line-name").waitFor(SHOWN);
    expect((await page.locator(".line-name").boundingBox())?.width).toBeGreaterThan(120);
    expect((await page.locator("header").boundingBox())?.height).toBeLessThan(140);
    await expectNoSideways(page);
    await page.getByRole("button", { name: "Deutsch" }).click();
    expect((await page.locator("header").boundingBox())?.height).toBeLessThan(140);
    await expectNoSideways(page);
    await page.context().close();
  });

  test("reconciliation: the header is low, in both languages", async () => {
    const page = await open("/reconcile/", { viewport: PHONE });
    await signIn(page, of("Sam"));
    await page.locator("header").waitFor(SHOWN);
    for (const language of ["English", "Deutsch"]) {
      await page.getByRole("button", { name: language }).click();
      expect((await page.locator("header").boundingBox())?.height, language).toBeLessThan(140);
      await expectNoSideways(page);
    }
    await page.context().close();
  });
});
