/** The reconciliation in a real browser: from a dropped file to a decision, by mouse and by keyboard. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { Browser, BrowserContext, Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { drawn, expectAccessible, expectNoSideways, startBrowser } from "./chromium.ts";
import { hostileText } from "./pictures.ts";

/** Imports and runs take a second, and longer when other tests run too. */
const SOON = { timeout: 60_000 };
/** For checks that load the page again, which takes much time. */
const LOADED_AGAIN = { ...SOON, interval: 500 };
/** Hostile text of another person: a page that inserts it as markup runs it. */
const XSS = `<img src=x onerror="document.title='owned'">`;
const PASSWORD = "a long enough password";
const TIME_ZONE = "Europe/Berlin";
const DAY_MS = 24 * 3_600_000;
const BUSY = { status: 503, json: { code: "busy", detail: "", request_id: "r" } };
const today = new Date().toISOString().slice(0, 10);

let system: TestSystem;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let operator: Person;
let cashier: Person;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem(), startBrowser()]);
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  for (const name of ["Rita", `Sam ${hostileText(XSS, "Okafor")}`]) {
    const email = `${name.slice(0, 3).toLowerCase()}@sandbox.example`;
    await owner.good("POST", "users/", { body: { email, password: PASSWORD, name, role: "reconciliation_operator" } });
  }
  operator = await logIn(system.baseUrl, "reconciliation", { email: "rit@sandbox.example", password: PASSWORD });
  const body = {
    provider: "sumup",
    reference: "MC4VDM6A",
    name: `Bar ${hostileText(XSS, "terminals")}`,
    mode: "test",
    filial_id: system.sandbox.filialId,
    currency: "EUR",
    settlement_delay_days: 0,
  };
  await operator.good("POST", "accounts/", { body });
  const station = `stations/${system.sandbox.stations[0]?.stationId}`;
  await cashier.good("POST", `${station}/lease/`);
  for (const [amount, reference] of [
    ["16.00", "TC1AAAAAAA"],
    ["9.00", "TC2AAAAAAA"],
    ["7.00", "TC9MISSING"],
  ] as const) {
    const order_id = await newOrder(cashier, station, amount);
    const intent = { order_id, route: "attested_terminal" };
    const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, { body: intent });
    await cashier.good("POST", `${station}/intents/${intent_id}/attest/`, { body: { reference } });
  }
  const at = { locale: "en-GB", timezoneId: TIME_ZONE, viewport: { width: 1280, height: 800 } };
  context = await browser.newContext(at);
  page = await context.newPage();
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

const HEADER =
  "Zeitstempel,Transaktionscode,Transaktionsart,Status,Zahlungsmethode,Betrag,Währung,Trinkgeldbetrag,Gebührenbetrag,Auszahlungsdatum,Auszahlungs-ID,Beschreibung,Referenz";
const sale = (code: string, amount: string, text = "1 x Menü", day = today): string =>
  `${day} 12:03:10,${code},Zahlung,Erfolgreich,POS,${amount},EUR,0.00,0.00,,,${text},`;

const shownDay = (day: string): string =>
  new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short", year: "numeric" }).format(new Date(day));
const isOwned = async (): Promise<boolean> => (await page.title()) === "owned";
const section = async (name: string): Promise<void> => {
  await page.getByRole("link", { name, exact: true }).click();
};
/** Resolves when no run waits or is under way: each change of the account starts one, which changes the issues. */
const noRunIsPending = async (): Promise<void> => {
  interface Periods {
    readonly periods: readonly { readonly missing: readonly { readonly code: string }[] }[];
  }
  const missing = async () =>
    (await operator.good<Periods>("GET", `periods/?from_date=${today}&to_date=${today}`)).periods.flatMap((period) =>
      period.missing.map(({ code }) => code),
    );
  await expect.poll(missing, SOON).not.toContain("run_pending");
};
const view = (name: RegExp) => page.getByRole("navigation", { name: "Views" }).getByRole("link", { name });

/** Drags a file over an element and drops it. Returns whether the page keeps the browser from opening the file itself. */
const drop = (selector: string, name: string, content: Buffer) =>
  page.evaluate<string[]>(`(() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([${JSON.stringify(content.toString())}], ${JSON.stringify(name)}, { type: "text/csv" }));
    return ["dragover", "drop"].map((type) => {
      const event = new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer });
      document.querySelector(${JSON.stringify(selector)}).dispatchEvent(event);
      return type + (event.defaultPrevented ? " prevented" : " opens the file");
    });
  })()`);

describe("the reconciliation", () => {
  test("a person signs in; a wrong password: the page shows why", async () => {
    await page.goto(`${system.baseUrl}/reconcile/`);
    await page.getByRole("button", { name: "Sign in" }).waitFor(SOON);
    await expectAccessible(page, "reconcile-sign-in");
    await page.getByLabel("E-mail address").fill("rit@sandbox.example");
    await page.getByLabel("Password").fill("not her password");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor(SOON);
    await expectAccessible(page, "reconcile-wrong-password");
    await page.getByLabel("Password").fill(PASSWORD);
    // When the accounts cannot be loaded, the page must not say that there are none.
    await page.route("**/v1/accounts/?*", (route) => route.fulfill(BUSY), { times: 1 });
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Try again" }).click(SOON);
    await page.getByText("Nothing is open").waitFor(SOON);
    await expectAccessible(page, "reconcile-empty");
  });

  test("a dropped file waits for its format, and is imported and compared", async () => {
    await section("Import");
    await page.getByText("No statement is imported yet").waitFor(SOON);
    await expectAccessible(page, "reconcile-import");
    const rows = [
      sale("TC1AAAAAAA", "17.00"),
      sale("TC2AAAAAAA", "9.00"),
      sale("TC3STRAYAA", "5.00", hostileText(`"${XSS.replaceAll('"', '""')}"`, "2 x Espresso")),
    ];
    const buffer = Buffer.from(`${[HEADER, ...rows].join("\n")}\n`);
    // A file that is dropped beside the zone: the browser must not leave the page and show the file.
    expect(await drop("body", "beside.csv", buffer)).toEqual(["dragover prevented", "drop prevented"]);
    expect(await drop(".drop", `${hostileText(XSS, "sumup-november")}.csv`, buffer)).toEqual([
      "dragover prevented",
      "drop prevented",
    ]);
    await page.getByText("Confirm the format").waitFor(SOON);
    expect(await page.getByRole("article", { name: "beside.csv" }).count()).toBe(0);
    await page.getByText("A piece of the file").first().waitFor(SOON);
    await expectAccessible(page, "reconcile-confirm-format");
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.getByText("New lines: 3 · known from other files: 0").waitFor(SOON);
    await expectAccessible(page, "reconcile-imported");
    expect(await isOwned()).toBe(false);
  });

  test("a month of files at once: three are sent at a time, and all of them are sent", async () => {
    let underWay = 0;
    let most = 0;
    const sent = new Set<string>();
    await page.route(/\/imports\/\?file_name=/, async (route) => {
      underWay += 1;
      most = Math.max(most, underWay);
      sent.add(route.request().url());
      // The first three stay under way together.
      await expect.poll(() => most, SOON).toBeGreaterThanOrEqual(3);
      underWay -= 1;
      await route.fulfill({ status: 201, json: { import_id: 999_999 } });
    });
    const files = Array.from({ length: 30 }, (_, day) => ({
      name: `day-${day}.csv`,
      mimeType: "text/csv",
      buffer: Buffer.from(HEADER),
    }));
    await page.locator("input[type=file]").setInputFiles(files);
    await expect.poll(() => sent.size, SOON).toBe(files.length);
    await page
      .locator("progress")
      .first()
      .waitFor({ state: "detached", ...SOON });
    await page.unrouteAll();
    expect(most).toBe(3);
  });

  test("an unknown CSV file is described by its columns, with a preview, and imported", async () => {
    const text = `Tag;Wert;Nummer\n${today.split("-").toReversed().join(".")};"6,00";Z1\n31.02.2026;"1,00";Z2\n2026-13-45\n`;
    const file = { name: "unknown.csv", mimeType: "text/csv", buffer: Buffer.from(text) };
    await page.locator("input[type=file]").setInputFiles(file);
    const card = page.getByRole("article", { name: "unknown.csv" });
    await card.getByLabel("Name of the mapping").fill("Bank");
    await card.getByLabel("Amount", { exact: true }).selectOption("Wert");
    await card.getByLabel("Day", { exact: true }).selectOption("Tag");
    await card.getByLabel("Provider's reference").selectOption("Nummer");
    await card.getByRole("button", { name: "Preview" }).click();
    await card.getByRole("cell", { name: "€6.00" }).waitFor(SOON);
    await card.getByText("unreadable").first().waitFor(SOON);
    await card.getByText(/^“31.02.2026” is no date in /).waitFor(SOON);
    await expectAccessible(page, "reconcile-mapping");
    // After a change of the mapping the old preview disappears: the page stores no mapping without a preview.
    await card.getByLabel("Amounts are written").selectOption(".");
    await card.getByRole("cell", { name: "€6.00" }).waitFor({ state: "detached", ...SOON });
    await card.getByText("Give a name and look at the preview first.").waitFor(SOON);
    await card.getByLabel("Amounts are written").selectOption(",");
    await card.getByRole("button", { name: "Preview" }).click();
    await card.getByRole("cell", { name: "€6.00" }).waitFor(SOON);
    await card.getByRole("button", { name: "Store the mapping and import" }).click();
    await card.getByText("New lines: 1 · known from other files: 0 · rows not readable: 2").waitFor(SOON);
    await page.getByRole("button", { name: "Deutsch" }).click();
    await card.getByText("Zeilen, die nicht lesbar sind").click();
    await card.getByText(/^„31.02.2026“ ist kein Datum in der Form /).waitFor(SOON);
    await page.goto(`${system.baseUrl}/reconcile/?view=all_open&kind=malformed_line`);
    // The page once failed on a text that looks like a date but is none. Now it shows the text as it is.
    await expect.poll(() => page.locator(".issue-row").count(), SOON).toBe(2);
    for (const nth of [0, 1]) {
      await page.locator(".issue-row").nth(nth).click();
      const reason = page.locator(".detail").getByText(/^(?:„31.02.2026“ ist kein Datum|Felder der Zeile: 1;)/);
      await reason.waitFor(SOON);
      const row = (await reason.textContent())?.startsWith("„") === true ? '31.02.2026;"1,00";Z2' : "2026-13-45";
      await page.locator(".detail").getByText(row, { exact: true }).waitFor(SOON);
    }
    await page.getByRole("button", { name: "English" }).click();
    await page.goto(`${system.baseUrl}/reconcile/?section=imports`);
    // The page lists the newest imports first, and older ones after a click.
    const firstPage = (route: Route): Promise<void> =>
      route.continue({ url: route.request().url().replace("=50", "=1") });
    await page.route("**/imports/?*limit=50*", firstPage);
    await page.reload();
    await page.getByRole("article").first().waitFor(SOON);
    expect(await page.getByRole("article").count()).toBe(1);
    await page.getByRole("button", { name: "Show more" }).click();
    await expect.poll(() => page.getByRole("article").count(), SOON).toBe(2);
    await page.unroute("**/imports/?*limit=50*");
    // Behind the most imports that one answer has, the page asks for older ones.
    const oneOfAnswer = (route: Route): Promise<void> =>
      route.continue({
        url: route
          .request()
          .url()
          .replace(/limit=\d+/, "limit=1"),
      });
    await page.route("**/imports/?*limit=*", oneOfAnswer);
    await page.reload();
    for (let more = 0; more < 10; more += 1) await page.getByRole("button", { name: "Show more" }).click();
    await expect.poll(() => page.getByRole("article").count(), SOON).toBe(2);
    await page.unroute("**/imports/?*limit=*");
  });

  test("a change of an account: the page shows why a delay is wrong, and a last day is stored and removed again", async () => {
    await page.goto(`${system.baseUrl}/reconcile/?section=imports`);
    const change = page.getByRole("button", { name: "Change the account" });
    await change.click(SOON);
    await page.getByLabel("Settlement delay in days").fill("");
    await page.getByLabel("Last day").fill("2026-11-15");
    await change.click();
    await page.getByText("Fill this in.").waitFor(SOON);
    await expectAccessible(page, "reconcile-account");
    await page.getByLabel("Settlement delay in days").fill("0");
    await change.click();
    await page.getByText("The account is changed.").waitFor(SOON);
    const stored = async () =>
      (await operator.good<{ statement_accounts: object[] }>("GET", "accounts/")).statement_accounts;
    const bar = { reference: "MC4VDM6A", settlement_delay_days: 0 };
    expect(await stored()).toMatchObject([{ ...bar, last_day: "2026-11-15" }]);
    await change.click();
    await page.getByLabel("Last day").fill("");
    await change.click();
    await expect.poll(stored, SOON).toMatchObject([{ ...bar, last_day: null }]);
  });

  test("differences are triaged by keyboard alone: chosen, closed, undone, assigned and commented", async () => {
    await noRunIsPending();
    await section("Issues");
    await expect.poll(() => view(/All open/).textContent(), SOON).toMatch(/All open[4-9]/);
    await view(/Missing/).click();
    await page.getByText("€7.00").first().waitFor(SOON);
    await view(/All open/).click();
    await page.locator(".issue-row").first().waitFor(SOON);
    const before = await page.locator(".issue-row").count();
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("Assign to me").waitFor();
    await expectAccessible(page, "reconcile-keys");
    await page.keyboard.press("Escape");
    await page.keyboard.press("j");
    await page.getByRole("heading", { name: "Details" }).waitFor(SOON);
    await expectAccessible(page, "reconcile-issue");
    const chosen = new URL(page.url()).searchParams.get("issue");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    expect(new URL(page.url()).searchParams.get("issue")).toBe(chosen);
    await page.keyboard.press("c");
    await page
      .getByRole("dialog")
      .getByLabel("Reason")
      .fill(`Paid back ${hostileText(XSS, "to the guest")}`);
    await expectAccessible(page, "reconcile-close");
    await page.getByRole("dialog").getByLabel("Reason").press("Enter");
    await expect.poll(() => page.locator(".issue-row").count(), SOON).toBe(before - 1);
    await page.locator(".toast").getByRole("button", { name: "Undo" }).press("Enter");
    await expect.poll(() => page.locator(".issue-row").count(), SOON).toBe(before);
    await page.getByText("Closing undone", { exact: false }).first().waitFor(SOON);
    await page.route("**/assign/", (route) => route.fulfill(BUSY), { times: 1 });
    await page.locator("body").press("a");
    await page.getByText("The service has too much to do at the moment.").waitFor(SOON);
    await page.locator("body").press("a");
    await page.locator(".detail").getByText("Rita").first().waitFor(SOON);
    await page.locator("body").press("m");
    const comment = hostileText(XSS, "The guest has called.");
    await page.getByRole("dialog").getByLabel("Comment").fill(comment);
    await page.getByRole("dialog").getByLabel("Comment").press("Enter");
    await page.locator(".history-text", { hasText: comment }).first().waitFor(SOON);
    await page.getByRole("dialog").waitFor({ state: "hidden", ...SOON });
    expect(await isOwned()).toBe(false);
    await page.setViewportSize({ width: 360, height: 740 });
    await expectNoSideways(page);
    await expectAccessible(page, "reconcile-phone");
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test("the export has what the filter names, and the address has the filter", async () => {
    await page.goto(`${system.baseUrl}/reconcile/?view=all_open&kind=missing_in_statement`);
    await page.getByText("€7.00").first().waitFor(SOON);
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download CSV" }).click();
    const stream = await (await download).createReadStream();
    let csv = "";
    for await (const chunk of stream) csv += String(chunk);
    expect(csv.trimEnd().split("\n")).toHaveLength(2);
    expect(csv).toContain("missing_in_statement");
    await page.getByLabel("Currency", { exact: true }).fill("EUR");
    await page.getByRole("button", { name: "Clear the filter" }).click();
    await page.getByText("Filter", { exact: true }).click();
    expect(await page.getByLabel("Currency", { exact: true }).inputValue()).toBe("");
    await page.goto(`${system.baseUrl}/reconcile/?view=all_open&kind=chargeback_not_registered`);
    await page.getByText("No issue fits the filter").waitFor(SOON);
    await expectAccessible(page, "reconcile-no-match");
    // The view is of one kind, so it has no filter by kind: neither from the view before nor from an address.
    const hasNoKind = async (): Promise<void> => {
      await page.getByText("€7.00").first().waitFor(SOON);
      expect(await page.locator(".filter summary").textContent()).toBe("Filter");
      expect(await page.locator(".filter").getByLabel("Kind").count()).toBe(0);
    };
    await view(/Missing/).click();
    await hasNoKind();
    expect(new URL(page.url()).searchParams.get("kind")).toBeNull();
    await page.goto(`${system.baseUrl}/reconcile/?view=missing&kind=chargeback_not_registered`);
    await hasNoKind();
  });

  test("an order is chosen by number, a voided order is refused, and all issues of a filter are closed at once", async () => {
    await page.goto(`${system.baseUrl}/reconcile/?view=all_open&kind=unmatched_money`);
    await page.locator(".issue-row").first().click();
    await page.locator("body").press("t");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("No open order has this amount").waitFor(SOON);
    await page.keyboard.press("Escape");
    const station = `stations/${system.sandbox.stations[0]?.stationId}`;
    const amount = (await page.locator('.issue-row[aria-current="true"] .numbers').textContent())?.replace("€", "");
    const order = await newOrder(cashier, station, amount ?? "", "Menu");
    await page.locator("body").press("t");
    const option = dialog.getByRole("option", { name: /^Order \d+ at Sandbox Counter · / });
    await option.waitFor({ state: "attached", ...SOON });
    await dialog.getByLabel("Order").selectOption(String(order));
    await dialog.getByLabel("Reason").fill("It is the guest's.");
    await expectAccessible(page, "reconcile-attribute");
    await cashier.good("POST", `orders/${order}/void/`);
    await dialog.getByRole("button", { name: "Attribute" }).click();
    // The order is voided meanwhile: the dialog stays open and shows the service's reason.
    await dialog.getByRole("alert").waitFor(SOON);
    await page.keyboard.press("Escape");
    const count = await page.locator(".issue-row").count();
    // The back button shows another view, so the open question must close.
    await view(/Stale/).click();
    await view(/All open/).click();
    await page.getByRole("button", { name: new RegExp(`Close all ${count}`) }).click();
    await page.goBack();
    await dialog.waitFor({ state: "hidden", ...SOON });
    await page.goForward();
    await page.getByRole("button", { name: new RegExp(`Close all ${count}`) }).click();
    await expectAccessible(page, "reconcile-bulk");
    await dialog.getByLabel("Reason").fill("Paid back.");
    await dialog.getByRole("button", { name: `Close ${count} issues` }).click();
    await page.getByText(`${count} closed.`).waitFor(SOON);
    await page.getByText("No issue fits the filter").waitFor(SOON);
    await page.locator(".toast").getByRole("button", { name: "Undo" }).waitFor(SOON);
    await expectAccessible(page, "reconcile-bulk-closed");
    // When the new sums cannot be loaded, the page must not show the sums of the previous view.
    await page.route("**/issue-overview/?*", (route) => route.fulfill(BUSY));
    await page.locator(".empty").getByRole("button", { name: "Clear the filter" }).click();
    await page.locator(".issue-row").first().waitFor(SOON);
    await page.getByText("The service has too much to do at the moment.").waitFor(SOON);
    expect(await page.getByText("No issue fits the filter").count()).toBe(0);
    expect(await page.locator(".sum").count()).toBe(0);
    expect(await page.locator("summary:focus").textContent()).toBe("Filter");
    await page.unroute("**/issue-overview/?*");
    await page.getByRole("button", { name: "Try again" }).click(SOON);
    await page.locator(".sum").first().waitFor(SOON);
    const { issues } = await operator.good<{ issues: unknown[] }>("GET", "issues/?decision=pending");
    expect(issues.length).toBeGreaterThan(0);
  });

  test("periods show what they still need, and the day's report has its sums by currency", async () => {
    await section("Periods");
    await page.getByRole("cell", { name: shownDay(today), exact: true }).waitFor(SOON);
    await page
      .getByText(/issues? waits? for a decision/)
      .first()
      .waitFor(SOON);
    await expectAccessible(page, "reconcile-periods");
    // The answer to the first request arrives last. It must not replace the newer one.
    const first = /day-report\/.*mode=live/;
    const { promise: isWanted, resolve: answerFirst } = Promise.withResolvers<undefined>();
    await page.route(first, async (route) => {
      await isWanted;
      await route.continue();
    });
    await section("Day report");
    const here = new Intl.DateTimeFormat("en-CA", { timeZone: TIME_ZONE }).format();
    await page.getByLabel("Day", { exact: true }).fill(here);
    await page.getByLabel("Mode").selectOption("test");
    const settled = page.getByRole("table", { name: "Settled here" });
    await settled.getByText("€32.00").first().waitFor(SOON);
    const answered = page.waitForResponse(first);
    answerFirst(undefined);
    await (await answered).finished();
    await drawn(page);
    expect(await settled.getByText("€32.00").first().isVisible()).toBe(true);
    await page.unroute(first);
    await page.getByText(/, 00:00 – .*, 00:00 \(Europe\/Berlin\)/).waitFor(SOON);
    await expectAccessible(page, "reconcile-report");
    // This browser asks for the month first. September has no 31st, so the date is incomplete until the day is typed.
    const day = page.getByLabel("Day", { exact: true });
    await day.fill("2026-10-31");
    await page.getByRole("heading", { name: shownDay("2026-10-31") }).waitFor(SOON);
    await day.focus();
    await page.keyboard.type("09302026");
    await page.getByRole("heading", { name: shownDay("2026-09-30") }).waitFor(SOON);
    expect(await day.inputValue()).toBe("2026-09-30");
    await day.fill(here);
    await settled.getByText("€32.00").first().waitFor(SOON);
    await page.emulateMedia({ media: "print" });
    expect(await page.getByRole("button", { name: "Print" }).isVisible()).toBe(false);
    expect(await settled.isVisible()).toBe(true);
    await page.emulateMedia({ media: null });
  });

  test("a candidate shows its points and is confirmed; two people decide a large amount; a day is closed", async () => {
    await section("Import");
    const [before, closed, after] = [11, 10, 9].map((ago) =>
      new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10),
    );
    const rows = [
      sale("TC6STRAYAA", "250.00", "stray", before),
      sale("TC7STRAYAA", "3.00", "stray", after),
      sale("TC9WRONGLY", "7.00"),
    ];
    const file = { name: "second.csv", mimeType: "text/csv", buffer: Buffer.from(`${[HEADER, ...rows].join("\n")}\n`) };
    await page.locator("input[type=file]").setInputFiles(file);
    const card = page.getByRole("article", { name: "second.csv" });
    await card.getByRole("button", { name: "Import", exact: true }).click(SOON);
    await card.getByText("New lines: 3").waitFor(SOON);
    // After the comparison, each line of the file shows its difference when the person opens the list again.
    const lines = card.locator("summary", { hasText: "Lines of the file" });
    await lines.click(SOON);
    await expect
      .poll(async () => {
        await card.getByRole("row").nth(3).waitFor(SOON);
        await lines.click();
        const read = page.waitForResponse(/\/lines\/\?/, SOON);
        await lines.click();
        await (await read).finished();
        await drawn(page);
        return await card.getByText("not compared yet").count();
      }, LOADED_AGAIN)
      .toBe(0);
    await card.getByRole("cell", { name: "€250.00" }).waitFor(SOON);
    await expectAccessible(page, "reconcile-lines");

    await card
      .getByRole("row", { name: /€7\.00/ })
      .getByRole("link")
      .click(SOON);
    await page.getByRole("heading", { name: "Candidates" }).waitFor(SOON);
    await page
      .getByText(/^\d+ of 100 points$/)
      .first()
      .waitFor(SOON);
    await page
      .getByText(/^Amount and currency: \d+ points$/)
      .first()
      .waitFor(SOON);
    await expectAccessible(page, "reconcile-candidates");
    await page.getByRole("button", { name: "This is it" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason").fill("The slip says so.");
    await dialog.getByRole("button", { name: "This is it" }).click();
    await page.getByText("Confirmed. The next run counts it.").waitFor(SOON);

    const station = `stations/${system.sandbox.stations[0]?.stationId}`;
    const order_id = await newOrder(cashier, station, "250.00", "Banquet");
    await page.goto(`${system.baseUrl}/reconcile/?view=all_open&kind=unmatched_money`);
    await page.locator(".issue-row", { hasText: "€250.00" }).click(SOON);
    await page.getByRole("heading", { name: "Details" }).waitFor(SOON);
    await page.locator("body").press("t");
    await dialog.getByText(/two people decide/).waitFor(SOON);
    await dialog.getByLabel("Order").selectOption(String(order_id), SOON);
    await dialog.getByLabel("Reason").fill("It is the banquet's.");
    await dialog.getByRole("button", { name: "Propose" }).click();
    await page.getByText("Another person confirms or rejects it.").waitFor(SOON);
    const orderStatus = async () => (await cashier.good<{ status: string }>("GET", `orders/${order_id}/`)).status;
    expect(await orderStatus()).toBe("open");
    // A time zone in which the date differs from UTC now.
    const timezoneId = new Date().getUTCHours() < 11 ? "Pacific/Pago_Pago" : "Pacific/Kiritimati";
    const other = await browser.newContext({ locale: "en-GB", timezoneId, viewport: { width: 1280, height: 800 } });
    const second = await other.newPage();
    await second.goto(page.url());
    await second.getByLabel("E-mail address").fill("sam@sandbox.example", SOON);
    await second.getByLabel("Password").fill(PASSWORD);
    await second.getByRole("button", { name: "Sign in" }).click();
    await second.getByText(/Rita proposes to pay with it: Order \d+ at Sandbox Counter/).waitFor(SOON);
    await expectAccessible(second, "reconcile-proposal");
    await second.getByRole("button", { name: "Confirm and pay the order" }).click();
    await second.getByRole("dialog").getByText("The order is paid with €250.00").waitFor(SOON);
    expect(await orderStatus()).toBe("open");
    await second.getByRole("dialog").getByRole("button", { name: "Confirm and pay the order" }).click();
    await expect.poll(orderStatus, SOON).toBe("paid");
    await second.goto(`${system.baseUrl}/reconcile/?section=report`);
    const day = new Intl.DateTimeFormat("en-CA", { timeZone: timezoneId }).format();
    expect(await second.getByLabel("Day", { exact: true }).inputValue(SOON)).toBe(day);
    await other.close();

    // The days of both accounts need more than one page of the API.
    const { filialId } = system.sandbox;
    const terrace = { provider: "sumup", reference: "MC4TERRACE", name: "Terrace", mode: "test", filial_id: filialId };
    await operator.good("POST", "accounts/", { body: { ...terrace, currency: "EUR" } });
    // The address names both days, because in the time zone of the page it may already be tomorrow.
    const since = new Date(Date.parse(today) - 60 * DAY_MS).toISOString().slice(0, 10);
    await page.goto(`${system.baseUrl}/reconcile/?section=periods&from=${since}&to=${today}`);
    await expect.poll(() => page.locator("tbody tr").count(), SOON).toBe(2 * 61);
    await page.goto(`${system.baseUrl}/reconcile/?section=periods&from=2026-01-02&to=2026-01-01`);
    // The page marks the field that the service refuses, and shows why.
    await page.getByText("The end must not be before the beginning.").waitFor(SOON);
    expect(await page.getByLabel("To", { exact: true }).getAttribute("aria-invalid")).toBe("true");
    await page.goto(`${system.baseUrl}/reconcile/?section=periods&from=${closed}&to=${closed}`);
    const period = page.getByRole("row", { name: new RegExp(shownDay(closed ?? "")) });
    await period.getByRole("button", { name: "Close the period" }).click(SOON);
    await dialog.getByLabel("Reason").fill("Nothing is open.");
    // The decisions above may start a run meanwhile. The page then says so, and the person tries again.
    await expect
      .poll(async () => {
        const button = dialog.getByRole("button", { name: "Close the period" });
        if (await button.isVisible()) await button.click({ timeout: 2_000 }).catch(() => undefined);
        return await button.isVisible();
      }, LOADED_AGAIN)
      .toBe(false);
    await period.getByRole("button", { name: "Signed closing" }).click(SOON);
    await dialog.getByText("Lines: 0 · issues: 0").waitFor(SOON);
    await expectAccessible(page, "reconcile-closing");
    const download = page.waitForEvent("download");
    await dialog.getByRole("button", { name: "Download the file" }).click();
    const path = await (await download).path();
    const { keys } = await operator.good<{ keys: { public_key: string }[] }>("GET", "closing-keys/");
    const verifier = join(import.meta.dirname, "..", "..", "clients", "verify-closing.mjs");
    const said = execFileSync(process.execPath, [verifier, path, "--key", keys[0]?.public_key ?? ""], {
      encoding: "utf8",
    });
    expect(said).toMatch(/^Verified/);
    await page.keyboard.press("Escape");
    expect(await isOwned()).toBe(false);
  });

  test("a session that has ended asks to sign in again, in the same place", async () => {
    await section("Issues");
    await page.locator(".issue-row").first().click();
    await context.clearCookies();
    await page.locator("body").press("m");
    await page.getByRole("dialog").getByLabel("Comment").fill("Too late");
    await page.getByRole("dialog").getByRole("button", { name: "Comment" }).click();
    const again = page.getByRole("dialog", { name: "Your session has ended" });
    await again.waitFor(SOON);
    await expectAccessible(page, "reconcile-session-ended");
    await again.getByLabel("E-mail address").fill("rit@sandbox.example");
    await again.getByLabel("Password").fill(PASSWORD);
    await again.getByRole("button", { name: "Sign in" }).click();
    await again.waitFor({ state: "hidden", ...SOON });
    expect(new URL(page.url()).searchParams.get("issue")).not.toBeNull();
    // The typed text is still there, and can be sent.
    expect(await page.getByRole("dialog").getByLabel("Comment").inputValue()).toBe("Too late");
    await page.getByRole("dialog").getByRole("button", { name: "Comment" }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden", ...SOON });
    await page.locator(".detail").getByText("Too late").waitFor(SOON);
    await page.getByRole("heading", { name: "Details" }).waitFor(SOON);
    // A failed refresh must not remove the issue that a person reads.
    await page.route(/\/issues\/\d+\/$/, (route) => route.fulfill(BUSY));
    await page.locator(".detail").getByText("The service has too much to do at the moment.").waitFor(SOON);
    expect(await page.getByRole("heading", { name: "Details" }).isVisible()).toBe(true);
    // The next person may belong to another organization: nothing stays, not even in the address.
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Password").waitFor(SOON);
    expect(new URL(page.url()).search).toBe("");
  });
});
