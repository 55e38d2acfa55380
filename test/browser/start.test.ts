/** The first minute in a real browser: the link opens all parts, and a few clicks make a collection `paid`. */
import { join } from "node:path";
import type { Browser, Frame, Page, Response } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLoginLink } from "../../services/bus/messages/login-links.ts";
import { call } from "../../services/bus/operation.ts";
import { fromAnotherAddress } from "../support/devices.ts";
import { programEnvironment, type RunningProgram, runProgram } from "../support/running-program.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { expectAccessible, expectNoSideways, startBrowser } from "./chromium.ts";
import { picture } from "./pictures.ts";
import { addLine, click, SHOWN } from "./till-steps.ts";

const COMPANION = join(import.meta.dirname, "..", "..", "clients", "virtual-companion.ts");
/** The screens of a paired display after a payment. */
const PAIRED = '[data-screen="paid"], [data-screen="idle"]';

/** Each check reads two tabs, which takes much CPU time. So the test checks less often. */
const READ = { ...SHOWN, interval: 300 };

let system: TestSystem;
let browser: Browser;
let companion: RunningProgram;
const folder = temporaryFolder("start");
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem({ sandboxProvider: true, claims: true }), startBrowser()]);
  const code = station().devices.find(({ kind }) => kind === "smart_pos_companion")?.enrollmentCode;
  companion = runProgram(process.execPath, [COMPANION], {
    env: programEnvironment({
      BASE_URL: system.baseUrl,
      ENROLLMENT_CODE: code ?? "",
      CREDENTIAL_FILE: join(folder.path, "companion.json"),
    }),
  });
});
afterAll(async () => {
  companion.process.kill("SIGTERM");
  await Promise.all([browser.close(), companion.ended]);
  await system.stop();
  folder.remove();
});

/** The station that has the companion. The link of `npm start` names this station. */
function station() {
  const [, demo] = system.sandbox.stations;
  if (demo === undefined) throw new Error("The sandbox has no second station.");
  return demo;
}

/** The context of another person in a browser, in British English unless the options say otherwise. */
const newVisitor = (options: Parameters<Browser["newContext"]>[0] = {}) =>
  browser.newContext({ locale: "en-GB", extraHTTPHeaders: fromAnotherAddress(), ...options });

async function newLink(): Promise<string> {
  const { organizationId } = system.sandbox;
  const { token } = await call(system.bus.nc, createLoginLink, { organizationId, stationId: station().stationId });
  return `${system.baseUrl}/start/#${token}`;
}

async function frameOf(page: Page, title: string): Promise<Frame> {
  const found = await page.locator(`iframe[title="${title}"]`).elementHandle(SHOWN);
  const frame = await found?.contentFrame();
  if (!frame) throw new Error(`There is no frame ${title}.`);
  return frame;
}

const displayShows = (display: Frame, screen: string) => display.locator(`[data-screen="${screen}"]`).waitFor(SHOWN);

describe("the link of a start", () => {
  test("it signs in, pairs the display and takes the station; a few clicks then make a collection paid", async () => {
    const link = await newLink();
    const context = await newVisitor({ viewport: { width: 1_440, height: 1_000 } });
    const page = await context.newPage();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(link);
    expect(page.url(), "the token has left the address bar").toBe(`${system.baseUrl}/start/`);
    const till = await frameOf(page, "Till");
    const display = await frameOf(page, "Customer display");
    await displayShows(display, "idle");
    await till.getByRole("button", { name: "Leave the station" }).waitFor(SHOWN);
    await page.getByText("It waits for work").waitFor(SHOWN);
    await picture(page, "start");

    await till.locator(".items button").first().click(SHOWN);
    await click(till, "Cash");
    await click(till, / received$/);
    await displayShows(display, "paid");

    // After a reload the display is still paired and the person is still signed in.
    await page.reload();
    await (await frameOf(page, "Customer display")).locator(PAIRED).first().waitFor(SHOWN);
    await (await frameOf(page, "Till")).getByRole("button", { name: "Leave the station" }).waitFor(SHOWN);
    expect(new Set(asked.map((url) => new URL(url).origin))).toEqual(new Set([system.baseUrl]));
    await context.close();
  });

  test("on a small laptop, items and ways to pay are beside each other", async () => {
    const context = await newVisitor({ viewport: { width: 1_280, height: 720 } });
    const page = await context.newPage();
    await page.goto(await newLink());
    const till = await frameOf(page, "Till");
    const cash = till.getByRole("button", { name: "Cash", exact: true });
    await cash.waitFor(SHOWN);
    const { y = 0, height = 0 } = (await cash.boundingBox()) ?? {};
    expect(y + height).toBeLessThan(720);
    await context.close();
  });

  test("by keyboard alone: a collection by smart POS, which the virtual companion reports", async () => {
    const context = await newVisitor({ viewport: { width: 1_440, height: 1_000 } });
    const page = await context.newPage();
    await page.goto(await newLink());
    const till = await frameOf(page, "Till");
    await till.getByRole("button", { name: "Leave the station" }).waitFor(SHOWN);
    await page.getByText("It waits for work").waitFor(SHOWN);
    /** The Tab key moves the focus from the page into its frames and out again. */
    const press = async (name: RegExp): Promise<void> => {
      await till.getByRole("button", { name }).first().waitFor(SHOWN);
      for (let presses = 0; presses < 80; presses += 1) {
        const focused = till.locator(":focus");
        if ((await focused.count()) > 0 && name.test((await focused.textContent()) ?? "")) {
          return await page.keyboard.press("Enter");
        }
        await page.keyboard.press("Tab");
      }
      throw new Error(`The keyboard does not reach ${String(name)}.`);
    };
    await press(/^Espresso/);
    await till.getByText("Choose how the guest pays.").waitFor(SHOWN);
    await press(/^Smart POS$/);
    await till.getByText("Approved").first().waitFor(SHOWN);
    await press(/^Settle /);
    await till.getByRole("button", { name: "Next order" }).waitFor(SHOWN);
    await displayShows(await frameOf(page, "Customer display"), "paid");
    await context.close();
  });

  test("the phone shows the QR code of a collection and opens the guest's page; the companion shows what it does", async () => {
    const context = await newVisitor({ locale: "de-DE", viewport: { width: 360, height: 640 } });
    const page = await context.newPage();
    await page.goto(await newLink());
    // The page resets the display of an earlier visit, and pairs this browser with it.
    await displayShows(await frameOf(page, "Kundenanzeige"), "idle");
    await page.getByText("Es wartet auf Arbeit").waitFor(SHOWN);
    await expectNoSideways(page);
    await expectAccessible(page);
    await page.getByRole("navigation").getByRole("button", { name: "English" }).click();
    const till = await frameOf(page, "Till");
    await addLine(till, "Soup", "12.03");
    await click(till, "QR code");
    await page.getByText("€12.03").waitFor(SHOWN);
    // The phone must not show a code that may be out of date.
    await page.route("**/live/", (route) => route.abort());
    await page.getByText("Tap QR code at the till").waitFor(SHOWN);
    await page.unroute("**/live/");
    await page.getByText("€12.03").waitFor(SHOWN);
    const opened = page.waitForEvent("popup", SHOWN);
    await click(page, "Open the guest's page");
    const guest = await opened;
    await guest.getByText("12.03").first().waitFor(SHOWN);
    await expectNoSideways(page);
    await expectAccessible(page);
    await picture(page, "start-phone");
    await guest.getByRole("button", { name: "Approve" }).click();
    await displayShows(await frameOf(page, "Customer display"), "paid");
    await page.getByText("Tap QR code at the till").waitFor(SHOWN);
    await context.close();
  });

  test("the provider reports a payment that differs: till and phone say so, and promise no confirmation", async () => {
    const context = await newVisitor({ viewport: { width: 1_440, height: 1_000 } });
    const page = await context.newPage();
    await page.goto(await newLink());
    const till = await frameOf(page, "Till");
    await addLine(till, "Wine", "12.07");
    await click(till, "QR code");
    await till.getByText("The QR code is no longer shown.").waitFor(SHOWN);
    await till.getByText("The provider reports a payment that differs.").first().waitFor(SHOWN);
    await page.getByText("Cancel the collection at the till.").waitFor(SHOWN);
    expect(await till.getByText(/settles by itself|confirms by itself/).count()).toBe(0);
    await click(till, "Cancel");
    await click(till, "Cancel the collection");
    await click(till, "Back to the order");
    await click(till, "Void the order");
    await till.getByRole("dialog").getByRole("button", { name: "Void the order" }).click(SHOWN);
    await till.getByText("No lines yet").waitFor(SHOWN);
    await context.close();
  });

  test("a second tab, also one that opens at the same moment: the display of the first tab stays paired", async () => {
    const context = await newVisitor({ viewport: { width: 1_440, height: 1_000 } });
    const link = await newLink();
    const ended: string[] = [];
    context.on("response", (answer) => {
      const isOfDisplay = /\/devices\/(?:display|heartbeat)\/$/.test(answer.url());
      if (isOfDisplay && answer.status() === 401) ended.push(answer.url());
    });
    // The tabs behave as duplicated or restored tabs: they know the station and need no link.
    await context.addInitScript(`sessionStorage.setItem("dp_start_station", "${station().stationId}")`);
    const pages = await Promise.all([context.newPage(), context.newPage()]);
    // Both begin without a credential.
    await pages[0].goto(`${system.baseUrl}/till/`);
    await pages[0].evaluate(
      `fetch("/api/start/v1/session/", { method: "POST", headers: { "content-type": "application/json" },
        body: JSON.stringify({ token: "${link.split("#")[1]}" }) }).then((answer) => answer.status)`,
    );
    await Promise.all(pages.map((page) => page.goto(`${system.baseUrl}/start/`)));
    const screens = async (): Promise<readonly string[]> => {
      const shown = pages.map(async (page) => {
        const display = (await frameOf(page, "Customer display")).locator("[data-screen]");
        return (await display.getAttribute("data-screen", SHOWN)) ?? "";
      });
      return (await Promise.all(shown)).toSorted((left, right) => left.localeCompare(right));
    };
    await expect.poll(screens, READ).toEqual(["elsewhere", "idle"]);
    // Another visit and reloads of these tabs: the credential is still the first one.
    const third = await context.newPage();
    await third.goto(`${system.baseUrl}/start/`);
    await displayShows(await frameOf(third, "Customer display"), "elsewhere");
    // The first tab continues to poll with its credential.
    const isPoll = (answer: Response): boolean => answer.url().endsWith("/devices/display/");
    for (let polls = 0; polls < 2; polls += 1) await context.waitForEvent("response", { predicate: isPoll, ...SHOWN });
    expect(ended).toEqual([]);
    await expect.poll(screens, READ).toEqual(["elsewhere", "idle"]);
    await Promise.all(pages.map((page) => page.reload()));
    await expect.poll(screens, READ).toContain("elsewhere");
    expect(ended).toEqual([]);
    // The display continues in a tab that stays open.
    await pages[0].close();
    await pages[1].close();
    await displayShows(await frameOf(third, "Customer display"), "idle");
    await context.close();
  });

  test("another browser with its own link gets its own display, and the first browser keeps its display", async () => {
    const opened = async () => {
      const context = await newVisitor({ viewport: { width: 1_440, height: 1_000 } });
      const page = await context.newPage();
      await page.goto(await newLink());
      await frameOf(page, "Till");
      const display = await frameOf(page, "Customer display");
      await display.locator('[data-screen="total"], [data-screen="idle"], [data-screen="paid"]').waitFor(SHOWN);
      return { context, page, display };
    };
    const first = await opened();
    const second = await opened();
    const till = await frameOf(second.page, "Till");
    await addLine(till, "Soup", "4.00");
    for (const { display } of [second, first]) await displayShows(display, "total");
    // Both displays poll after the second one was paired.
    await Promise.all(
      [first, second].map(({ context }) =>
        context.waitForEvent("response", {
          predicate: (answer) => answer.url().endsWith("/devices/display/") && answer.status() < 400,
          ...SHOWN,
        }),
      ),
    );
    for (const { display } of [first, second]) await displayShows(display, "total");
    await click(till, "Void the order");
    await till.getByRole("dialog").getByRole("button", { name: "Void the order" }).click(SHOWN);
    for (const { display } of [first, second]) await displayShows(display, "idle");
    await Promise.all([first.context.close(), second.context.close()]);
  });

  test("a browser that is already a display stays paired with its station", async () => {
    const context = await newVisitor();
    const own = await context.newPage();
    const [first] = system.sandbox.stations;
    const code = first?.devices.find(({ kind }) => kind === "customer_display")?.enrollmentCode;
    await own.goto(`${system.baseUrl}/display/#code=${code}`);
    await own.locator('[data-screen="idle"]').waitFor(SHOWN);
    const page = await context.newPage();
    await page.goto(await newLink());
    await displayShows(await frameOf(page, "Customer display"), "idle");
    const till = await frameOf(page, "Till");
    await addLine(till, "Soup", "4.00");
    await displayShows(await frameOf(page, "Customer display"), "total");
    expect(await own.locator("[data-screen]").getAttribute("data-screen")).toBe("idle");
    await context.close();
  });

  test("a link that is used twice, or no link: one sentence says so, and the page offers the sign-in pages", async () => {
    const link = await newLink();
    const first = await newVisitor();
    const page = await first.newPage();
    await page.goto(link);
    await frameOf(page, "Till");
    await first.close();
    const second = await newVisitor();
    const other = await second.newPage();
    await other.goto(link);
    await other.getByRole("alert").getByText("This link was used, or its 15 minutes are over").waitFor(SHOWN);
    expect(await other.locator("iframe").count()).toBe(0);
    await expectAccessible(other, "start-used");
    await other.goto(`${system.baseUrl}/start/`);
    await other.reload();
    await other.getByText("This page opens by the link that the start of the service prints.").waitFor(SHOWN);
    await other.getByRole("main").getByRole("link", { name: "Till" }).click();
    await other.getByText("Sign in to the till").waitFor(SHOWN);
    await second.close();
  });
});
