/** The till in a real browser, against the whole system: a cashier's clicks, also repeated ones, and failures. */
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { addDevice, reportOnce, type TestDevice } from "../support/devices.ts";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { drawn, expectAccessible, expectNoSideways, startBrowser } from "./chromium.ts";
import { hostileText } from "./pictures.ts";
import { addLine, button, click, isShown, SHOWN, signIn } from "./till-steps.ts";

/** After this long without a message the page says that it is not live (`SILENCE_MS` of `live.ts`). */
const SILENCE_MS = 8_000;
/** Text that runs a script when a page inserts it as markup. The device's text also reverses the text direction. */
const HOSTILE = '<img src=x onerror="document.title=1">';
const LONG = "W".repeat(40);
const DISH = hostileText(HOSTILE, "Trout with almonds");
const DEVICE_REFERENCE = hostileText(`${HOSTILE} \u202Eterces`, "408213");
let system: TestSystem;
let browser: Browser;
let owner: Person;
let cashier: Person;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem({ sandboxProvider: true }), startBrowser()]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  await openBrowser();
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

interface Till {
  readonly page: Page;
  readonly stationId: number;
}

let stations = 0;
/** Each test has its own station, so that no test waits for the collection of another one. */
async function newStation(prefix = "Station"): Promise<{ readonly stationId: number; readonly name: string }> {
  stations += 1;
  const name = `${prefix} ${stations}`;
  const body = { filial_id: system.sandbox.filialId, name, currency: "EUR" };
  const { station_id: stationId } = await owner.good<{ station_id: number }>("POST", "stations/", { body });
  return { stationId, name };
}

/** The cashier's browser. The tests share it, because a sign-in, a context and a page take more time than most tests. */
let context: BrowserContext;
let cashierPage: Page;
async function openBrowser(): Promise<void> {
  context = await browser.newContext({ locale: "en-GB", reducedMotion: "reduce" });
  cashierPage = await context.newPage();
  await cashierPage.goto(`${system.baseUrl}/till/`);
  await button(cashierPage, "Sign in").waitFor(SHOWN);
  await expectAccessible(cashierPage, "till-sign-in");
  await signIn(cashierPage, system.cashier);
  await cashierPage.locator(".station-list").waitFor(SHOWN);
}
const WINDOW = { width: 1_280, height: 720 };

/** Loads the cashier's page again, at a new station that this cashier drives. */
async function openTill(page = cashierPage): Promise<Till> {
  const { stationId } = await newStation();
  await cashier.good("POST", `stations/${stationId}/lease/`);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.setViewportSize(WINDOW);
  await page.goto(`${system.baseUrl}/till/?station=${stationId}`);
  await button(page, "Leave the station").waitFor(SHOWN);
  return { page, stationId };
}

type IntentBody = Readonly<Record<"status", string>>;
/** Expects that without the lease all decisions wait, also in a question that is already open. */
async function withoutLease({ stationId }: Till, decision: Locator, meanwhile = () => Promise.resolve()) {
  await owner.good("DELETE", `stations/${stationId}/lease/`);
  await expect.poll(() => decision.getAttribute("aria-disabled"), SHOWN).toBe("true");
  await meanwhile();
  await cashier.good("POST", `stations/${stationId}/lease/`);
}

async function intentsOf({ stationId }: Till): Promise<readonly IntentBody[]> {
  const path = `stations/${stationId}/intents/`;
  return (await cashier.good<{ intents: readonly IntentBody[] }>("GET", path)).intents;
}

/** A companion of this station; the test sends its reports. */
async function newCompanion(till: Till): Promise<TestDevice> {
  const body = { station_id: till.stationId, name: "Companion", kind: "smart_pos_companion" };
  const device = await addDevice(system.baseUrl, owner, body);
  await device.good("POST", "heartbeat/", { body: { summary: {} } });
  return device;
}

describe("a collection", () => {
  test("cash: impatient clicks settle it once, and every state is accessible", async () => {
    const { stationId, name } = await newStation();
    const page = cashierPage;
    const till: Till = { page, stationId };
    await page.goto(`${system.baseUrl}/till/`);
    await page.getByText(name).waitFor(SHOWN);
    await expectAccessible(page, "till-stations");
    await page.getByText(name).click();
    await click(page, "Take the station");
    await button(page, "Leave the station").waitFor(SHOWN);
    await expectAccessible(page, "till-new-order");
    await addLine(page, DISH);
    await isShown(page, "€12.50");
    expect(await page.getByText(DISH).count()).toBe(1);
    await button(page, "Cash").dblclick(SHOWN);
    await isShown(page, "Take the money, then settle");
    await expectAccessible(page, "till-cash");
    await button(page, "€12.50 received").dblclick(SHOWN);
    await button(page, "Next order").waitFor(SHOWN);
    await expectAccessible(page, "till-paid");
    expect((await intentsOf(till)).map(({ status }) => status)).toEqual(["succeeded"]);
    // A tablet at 200 % zoom, which has half as many CSS pixels, and a phone.
    await page.setViewportSize({ width: 512, height: 384 });
    await expectNoSideways(page);
    await expectAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await expectNoSideways(page);
    await expectAccessible(page, "till-phone");
    await click(page, "de Deutsch");
    await button(page, "Nächste Bestellung").waitFor(SHOWN);
    await expectNoSideways(page);
    // No shown text has run as a script.
    expect(await page.title()).toBe("Kasse");
    await click(page, "en English");
  });

  test("smart POS: the companion's evidence is shown beside the decision, as text", async () => {
    const till = await openTill();
    const { page } = till;
    await isShown(page, "This station has no companion.");
    const device = await newCompanion(till);
    await addLine(page);
    await click(page, "Smart POS");
    await isShown(page, "Wait for the report of the device.");
    await reportOnce(device, "reported_success", DEVICE_REFERENCE);
    await isShown(page, "Approved");
    expect(await page.locator("code.reference").textContent()).toBe(DEVICE_REFERENCE);
    await expectAccessible(page, "till-evidence");
    await click(page, "Settle €12.50");
    await button(page, "Next order").waitFor(SHOWN);
    expect((await intentsOf(till)).map(({ status }) => status)).toEqual(["succeeded"]);
  });

  test("cancelled after a reported success: the next collection asks first, and names the reason", async () => {
    const till = await openTill();
    const { page } = till;
    const device = await newCompanion(till);
    await addLine(page);
    await click(page, "Smart POS");
    await reportOnce(device, "reported_success", "REF-1");
    await isShown(page, "Approved");
    await click(page, "Cancel");
    await page.getByRole("dialog").waitFor(SHOWN);
    await expectAccessible(page, "till-cancel");
    await click(page, "Cancel the collection");
    await button(page, "Back to the order").waitFor(SHOWN);
    await expectAccessible(page, "till-cancelled");
    await click(page, "Back to the order");
    await click(page, "Cash");
    await page.getByRole("dialog").getByText("The device reported an approval.").waitFor(SHOWN);
    expect((await intentsOf(till)).length).toBe(1);
    await expectAccessible(page, "till-money-may-have-moved");
    await withoutLease(till, button(page, "The guest has not paid: collect"));
    await click(page, "The guest has not paid: collect");
    await click(page, "€12.50 received");
    await button(page, "Next order").waitFor(SHOWN);
    expect((await intentsOf(till)).map(({ status }) => status)).toEqual(["succeeded", "cancelled"]);
  });

  test("terminal: a reference that was used before names its order, and settles after a confirmation", async () => {
    const till = await openTill();
    const { page } = till;
    let attested = 0;
    page.on("request", (request) => (attested += Number(request.url().endsWith("/attest/"))));
    const settle = async (reference: string): Promise<void> => {
      await page.getByLabel("Reference").fill(reference, SHOWN);
      await click(page, "Settle €12.50");
    };
    const isAsked = () => page.getByRole("dialog").getByText("It has settled order").waitFor(SHOWN);
    for (const [round, reference] of ["TERMINAL-0042", "TERMINAL-0043", "TERMINAL-0042"].entries()) {
      await addLine(page);
      await click(page, "Card terminal");
      await click(page, "Settle €12.50");
      await isShown(page, "Type the reference from the slip.");
      await page.getByLabel("Reference").fill(reference);
      await withoutLease(till, button(page, "Settle €12.50"), () => page.getByLabel("Reference").press("Enter"));
      await settle(reference);
      if (round === 2) {
        await isAsked();
        await expectAccessible(page, "till-reference-used");
        // The answer is lost. The till asks again for the confirmation when the reference is another one.
        await page.route("**/attest/", (route) => route.abort(), { times: 1 });
        await click(page, "One payment covers both: settle");
        await isShown(page, "The service cannot be reached.");
        await settle("TERMINAL-0043");
        await isAsked();
        await click(page, "One payment covers both: settle");
      }
      await click(page, "Next order");
    }
    expect(attested).toBe(6);
  });

  test("an answer for the previous order changes nothing of the new one", async () => {
    const till = await openTill();
    const { page } = till;
    // The answers for the paid order and for its stored lines wait until the page shows a new order.
    let gate = Promise.withResolvers<void>();
    const held = /\/orders\/\d+\/(?:lines\/)?$/;
    await page.route(held, async (route) => {
      const { promise: isOpen } = gate;
      const answer = await route.fetch();
      await isOpen;
      await route.fulfill({ response: answer });
    });
    const answered = async (): Promise<void> => {
      const response = page.waitForResponse(held);
      gate.resolve();
      await (await response).finished();
      await drawn(page);
    };
    await addLine(page);
    await click(page, "Cash");
    const asked = page.waitForRequest(/\/orders\/\d+\/$/);
    await click(page, "€12.50 received");
    await asked;
    await click(page, "Next order");
    await answered();
    expect(await page.getByRole("heading", { name: "New order" }).isVisible()).toBe(true);
    expect(await page.locator(".line").count()).toBe(0);

    await addLine(page, "Tea", "2.00");
    await isShown(page, "Choose how the guest pays.");
    gate = Promise.withResolvers();
    const sent = page.waitForRequest(/\/lines\/$/);
    await addLine(page, "Cake", "3.00");
    await sent;
    // Another tab begins to collect another order, so the page shows that order.
    const station = `stations/${till.stationId}`;
    const intents = `${station}/intents/`;
    const juice = { order_id: await newOrder(cashier, station, "4.00", "Juice"), route: "cash" };
    const begun = await cashier.good<{ intent_id: number }>("POST", intents, { body: juice });
    await isShown(page, "Take the money, then settle");
    await answered();
    await page.locator(".line-name", { hasText: "Juice" }).waitFor(SHOWN);
    expect(await page.locator(".line-name").allTextContents()).toEqual(["Juice"]);
    await cashier.good("POST", `${intents}${begun.intent_id}/cancel/`);
    await click(page, "Back to the order");
    const path = `${station}/orders/?status=open`;
    const openTotals = async (): Promise<string[]> => {
      const { orders } = await cashier.good<{ orders: { total: string }[] }>("GET", path);
      return orders.map(({ total }) => total).toSorted();
    };
    expect(await openTotals()).toEqual(["4.00", "5.00"]);

    // A line that could not be stored before its order was paid opens no second order.
    await page.route(/\/lines\/$/, (route) => route.abort());
    await addLine(page, "Milk", "1.00");
    const { intent_id } = await cashier.good<{ intent_id: number }>("POST", intents, { body: juice });
    // The page reads the paid order again after the refusal of its line: the refusal stays visible.
    const [paid, refused] = [/\/orders\/\d+\/$/, Promise.withResolvers<void>()];
    await page.route(paid, async (route) => {
      const answer = await route.fetch();
      await refused.promise;
      await route.fulfill({ response: answer });
    });
    await cashier.good("POST", `${intents}${intent_id}/attest/`);
    await button(page, "Next order").waitFor(SHOWN);
    await page.unroute(/\/lines\/$/);
    await isShown(page, "This cannot be done in the present state.");
    const readAgain = page.waitForResponse(paid);
    refused.resolve();
    await (await readAgain).finished();
    await drawn(page);
    expect(await page.getByText("This cannot be done in the present state.").count()).toBe(1);
    await click(page, "Try again");
    await button(page, "Try again").and(page.locator('[aria-busy="false"]')).waitFor(SHOWN);
    expect(await openTotals()).toEqual(["5.00"]);
  });

  test("text of other people and of the cashier is shown as text, in every field", async () => {
    const { stationId, name } = await newStation(`Bar ${HOSTILE} ${LONG}`);
    const item = { filial_id: system.sandbox.filialId, name: `Item ${HOSTILE}`, category: HOSTILE };
    // Enough items to make the till show a search.
    for (const also of [item, ...Array.from({ length: 12 }, (_, nth) => ({ ...item, name: `Tea ${nth}` }))])
      await owner.good("POST", "catalogue-items/", { body: { ...also, unit_amount: "1.00", currency: "EUR" } });
    const viewport = { width: 320, height: 640 };
    const own = await browser.newContext({ locale: "en-GB", reducedMotion: "reduce", viewport });
    const page = await own.newPage();
    const dialogs: string[] = [];
    page.on("dialog", (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    await page.goto(`${system.baseUrl}/till/`);
    await signIn(page, { email: `${HOSTILE}@example.com`, password: HOSTILE });
    // The browser's own check may refuse the hostile address before the service does.
    await page.getByLabel("E-mail address").fill("nobody@example.com");
    await click(page, "Sign in");
    await page.getByRole("alert").waitFor(SHOWN);
    await signIn(page, system.cashier);
    await page.getByText(name).click(SHOWN);
    await click(page, "Take the station");
    const search = page.getByLabel("Find an item");
    await search.fill(`${HOSTILE} and more`, SHOWN);
    await isShown(page, "No item has this text. Enter a free line.");
    await search.fill(`item ${HOSTILE}`);
    expect(await page.locator("button.item").count()).toBe(1);
    await page.getByText(`Item ${HOSTILE}`).click(SHOWN);
    await addLine(page, HOSTILE, HOSTILE);
    await isShown(page, "Enter a price such as 4.50.");
    await addLine(page, HOSTILE, "4.50");
    await page.locator("summary", { hasText: "Open orders" }).click(SHOWN);
    expect((await page.locator(".menu-list").boundingBox())?.x).toBeGreaterThanOrEqual(0);
    await page.keyboard.press("Enter");
    const till: Till = { page, stationId };
    const body = { station_id: stationId, name: `Companion ${HOSTILE} ${LONG}`, kind: "smart_pos_companion" };
    await owner.good("POST", "devices/", { body });
    await isShown(page, `Companion ${HOSTILE}`);
    await expectNoSideways(page);
    await click(page, "Card terminal");
    await page.getByLabel("Reference").fill(HOSTILE, SHOWN);
    await click(page, "Settle €5.50");
    await button(page, "Next order").waitFor(SHOWN);
    expect((await intentsOf(till)).map(({ status }) => status)).toEqual(["succeeded"]);
    expect([await page.title(), dialogs]).toEqual(["Till", []]);
    await own.close();
  });

  test("by keyboard alone: an order is collected in cash", async () => {
    const till = await openTill();
    const { page } = till;
    const goTo = async (name: string): Promise<void> => {
      for (let steps = 0; steps < 40; steps += 1) {
        await page.keyboard.press("Tab");
        const focused = await page.evaluate<string>(
          "(document.activeElement.labels && document.activeElement.labels[0] || document.activeElement).textContent",
        );
        if (focused.trim() === name) return;
      }
      throw new Error(`The keyboard does not reach ${name}.`);
    };
    await goTo("Name");
    await page.keyboard.type("Soup");
    await goTo("Price");
    await page.keyboard.type("12,50");
    await page.keyboard.press("Enter");
    await isShown(page, "Choose how the guest pays.");
    await goTo("Cash");
    await page.keyboard.press("Enter");
    await isShown(page, "Take the money, then settle");
    // The focused element has disappeared, so the focus is on the heading that replaces it.
    expect(await page.locator("h2:focus").textContent()).toMatch(/^Cash Collection \d+$/);
    await goTo("€12.50 received");
    await page.keyboard.press("Enter");
    await button(page, "Next order").waitFor(SHOWN);
    expect((await intentsOf(till)).length).toBe(1);
  });
});

describe("during an action", () => {
  test("a reload and a second tab: both show the one collection, and it settles once", async () => {
    const till = await openTill();
    const { page, stationId } = till;
    await addLine(page);
    await isShown(page, "Choose how the guest pays.");
    await click(page, "Cash");
    await isShown(page, "Take the money, then settle");
    // A page that the back button restores also reloads.
    const reloaded = page.waitForEvent("load", SHOWN);
    await page.evaluate('dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))');
    await reloaded;
    await isShown(page, "Take the money, then settle");
    const second = await context.newPage();
    await second.addInitScript(`sessionStorage.setItem("dp_till_station", "${stationId}")`);
    await second.goto(`${system.baseUrl}/till/`);
    await isShown(second, "Take the money, then settle");
    // The slower click may fail, because the collection may already have ended.
    const settle = (tab: Page) => button(tab, "€12.50 received").click({ timeout: 3_000 });
    const clicks = await Promise.allSettled([settle(page), settle(second)]);
    expect(clicks.map(({ status }) => status)).toContain("fulfilled");
    await isShown(page, "€12.50 is settled.");
    await isShown(second, "€12.50 is settled.");
    await second.close();
    expect((await intentsOf(till)).map(({ status }) => status)).toEqual(["succeeded"]);
  });

  test("another cashier takes over the station: the first cashier sees who it is, and can decide nothing", async () => {
    const till = await openTill();
    const { page, stationId } = till;
    await addLine(page);
    await isShown(page, "Choose how the guest pays.");
    const details = { email: `second-${stationId}@example.com`, password: "a second cashier's pass phrase" };
    await owner.good("POST", "users/", { body: { ...details, name: "Kim", role: "cashier" } });
    const other = await browser.newContext({ locale: "en-GB" });
    const otherPage = await other.newPage();
    await otherPage.addInitScript(`sessionStorage.setItem("dp_till_station", "${stationId}")`);
    await otherPage.goto(`${system.baseUrl}/till/`);
    await signIn(otherPage, details);
    await click(otherPage, "Take over");
    await otherPage.getByRole("dialog").waitFor(SHOWN);
    await expectAccessible(otherPage, "till-take-over");
    await otherPage.getByRole("dialog").getByRole("button", { name: "Take over" }).click(SHOWN);
    await button(otherPage, "Leave the station").waitFor(SHOWN);
    await isShown(page, "Kim has taken the station over.");
    expect(await button(page, "Cash").getAttribute("aria-disabled")).toBe("true");
    await expectAccessible(page, "till-taken-over");
    await other.close();
  });

  test("the network is slow: a waiting button shows a countdown, and repeated clicks do nothing twice", async () => {
    const till = await openTill();
    const { page } = till;
    await addLine(page);
    await isShown(page, "Choose how the guest pays.");
    await click(page, "Cash");
    await isShown(page, "Take the money, then settle");
    // The test holds the cashier's request until the page shows that it waits.
    let goOn: () => void = () => undefined;
    let sent = 0;
    await page.route("**/intents/**", async (route) => {
      if (route.request().method() !== "POST") return await route.continue();
      sent += 1;
      await new Promise<void>((resolve) => (goOn = resolve));
      await route.continue();
    });
    const settle = button(page, "€12.50 received");
    await settle.dblclick(SHOWN);
    await isShown(page, /^No answer yet\. The page waits 0:1\d longer\.$/);
    expect(await settle.getAttribute("aria-busy")).toBe("true");
    await settle.click({ force: true });
    await expectAccessible(page, "till-slow");
    goOn();
    await button(page, "Next order").waitFor(SHOWN);
    expect(sent).toBe(1);
    expect((await intentsOf(till)).map(({ status }) => status)).toEqual(["succeeded"]);
  });

  test("the network is silent without an error: buttons say why they wait, and the newest state returns", async () => {
    // A separate page, because the test changes how it receives live updates.
    const page = await context.newPage();
    await page.clock.install();
    let isSilent = false;
    await page.routeWebSocket(/\/live\/$/, (socket) => {
      const server = socket.connectToServer();
      let isCut = false; // A connection that has lost a message carries no later one.
      server.onMessage((message) => {
        isCut ||= isSilent;
        if (!isCut) socket.send(message);
      });
    });
    const { stationId } = await openTill(page);
    await addLine(page);
    await isShown(page, "Choose how the guest pays.");
    isSilent = true;
    const station = `stations/${stationId}`;
    const { orders } = await cashier.good<{ orders: { order_id: number }[] }>("GET", `${station}/orders/?status=open`);
    const body = { order_id: orders[0]?.order_id, route: "cash" };
    await cashier.good("POST", `${station}/intents/`, { body });
    await page.clock.fastForward(SILENCE_MS);
    await isShown(page, /Live updates are interrupted|No connection/);
    isSilent = false;
    await isShown(page, "Take the money, then settle");
    await page.close();
  });

  test("choosing between two orders: the last chosen one is shown, whichever answer is slower", async () => {
    const till = await openTill();
    const { page, stationId } = till;
    const open = async (name: string) => {
      const body = { lines: [{ name, quantity: 1, unit_amount: "3.00" }] };
      const path = `stations/${stationId}/orders/`;
      return await cashier.good<{ order_id: number; order_display_number: number }>("POST", path, { body });
    };
    // The station shows the last one, and the page opens it automatically.
    const [first, second] = [await open("Tea"), await open("Cake"), await open("Juice")];
    await page.reload();
    const { promise: isLate, resolve: answerFirst } = Promise.withResolvers<void>();
    await page.route(`**/orders/${first.order_id}/`, async (route) => {
      const answer = await route.fetch();
      await isLate;
      await route.fulfill({ response: answer });
    });
    await page.locator("summary", { hasText: "Open orders" }).click(SHOWN);
    const choose = ({ order_display_number }: typeof first): Promise<void> =>
      page.getByRole("button", { name: new RegExp(`^Order ${order_display_number} `) }).click(SHOWN);
    await choose(first);
    expect(await page.locator("summary:focus").textContent()).toBe("Open orders");
    await page.keyboard.press("Enter");
    await choose(second);
    const cake = page.locator(".line-name", { hasText: "Cake" });
    await cake.waitFor(SHOWN);
    const answered = page.waitForResponse(`**/orders/${first.order_id}/`);
    answerFirst();
    await (await answered).finished();
    await drawn(page);
    expect(await cake.isVisible()).toBe(true);
  });

  test("the service is killed and comes back: buttons say why they wait, and the newest state returns", async () => {
    const till = await openTill();
    const { page } = till;
    await addLine(page);
    await click(page, "Cash");
    await isShown(page, "Take the money, then settle");
    await system.processes.gateway.kill9();
    await isShown(page, /Live updates are interrupted|No connection/);
    expect(await button(page, "€12.50 received").getAttribute("aria-disabled")).toBe("true");
    await expectAccessible(page, "till-offline");
    await system.processes.gateway.restart();
    await vi.waitFor(
      async () => expect(await button(page, "€12.50 received").getAttribute("aria-disabled")).toBe("false"),
      { timeout: 20_000, interval: 50 },
    );
    await click(page, "€12.50 received");
    await button(page, "Next order").waitFor(SHOWN);
  });
});
