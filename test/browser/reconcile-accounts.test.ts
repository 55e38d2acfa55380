/** The form that changes a statement account, and the files that are sent meanwhile, in a real browser. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { addOperator, logIn, newOrder, OPERATOR_PASSWORD, openTill, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { startBrowser } from "./chromium.ts";

const SOON = { timeout: 30_000 };
/** A time zone in which the date differs from UTC now, and whose day does not end within an hour. */
const TIME_ZONE = new Date().getUTCHours() < 10 ? "Pacific/Pago_Pago" : "Pacific/Kiritimati";
/** How often the page reads the report of a day (`REFRESH_MS` of `report-section.tsx`). */
const REFRESH_MS = 10_000;
let system: TestSystem;
let browser: Browser;
let page: Page;
let rita: Person;
let barId: number;
let hallId: number;

beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem(), startBrowser()]);
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  rita = await addOperator(system.baseUrl, owner);
  [barId, hallId] = [await add("Bar"), await add("Hall", { time_zone: "Europe/Berlin" })];
  page = await browser.newPage({ locale: "en-GB", timezoneId: TIME_ZONE, viewport: { width: 1280, height: 800 } });
  await page.goto(`${system.baseUrl}/reconcile/`);
  await page.getByLabel("E-mail address").fill("rita@sandbox.example", SOON);
  await page.getByLabel("Password").fill(OPERATOR_PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Import", exact: true }).waitFor(SOON);
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});
beforeEach(async () => {
  await page.unrouteAll();
});

interface Account {
  readonly account_id: number;
  readonly name: string;
  readonly last_day: string | null;
}
async function add(name: string, more: object = {}): Promise<number> {
  const body = { provider: "sandbox", reference: `acct-${name}`, name, mode: "test", currency: "EUR", ...more };
  return (await rita.good<{ account_id: number }>("POST", "accounts/", { body })).account_id;
}
const change = () => page.getByRole("button", { name: "Change the account" });
async function account(id: number): Promise<Account | undefined> {
  const { statement_accounts: all } = await rita.good<{ statement_accounts: Account[] }>("GET", "accounts/");
  return all.find(({ account_id }) => account_id === id);
}
async function openForm(id: number): Promise<void> {
  await page.goto(`${system.baseUrl}/reconcile/?section=imports&account_id=${id}`);
  await change().click(SOON);
  await page.getByLabel("Last day").waitFor(SOON);
}
const patch = (id: number, body: object) => rita.good("PATCH", `accounts/${id}/`, { body });

test("a new account belongs to the only filial, unless a person chooses otherwise", async () => {
  await page.getByRole("link", { name: "Import", exact: true }).click();
  await page.getByRole("button", { name: "Add an account" }).click(SOON);
  expect(await page.getByLabel("Filial").inputValue()).toBe(String(system.sandbox.filialId));
  await page.getByRole("button", { name: "Cancel" }).click();
});

async function settle(amount: string): Promise<void> {
  const { cashier, station } = await openTill(system);
  const body = { order_id: await newOrder(cashier, station, amount), route: "cash" };
  const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, { body });
  await cashier.good("POST", `${station}/intents/${intent_id}/attest/`);
}
const settled = (sum: string) => page.getByRole("table", { name: "Settled here" }).getByText(sum).first();

test("the report of a day: a filial without an account has one too, of the day in the browser's time zone", async () => {
  await settle("4.00");
  await page.getByRole("link", { name: "Day report" }).click();
  await page.getByText("Payments of sandboxes are in the mode Test.").waitFor(SOON);
  await page.getByLabel("Mode").selectOption("test");
  await page.getByText(`, 00:00 (${TIME_ZONE})`).waitFor(SOON);
  await settled("€4.00").waitFor(SOON);
});

test("the report of a day: the page reads it again by itself, and before it is printed with the time of reading", async () => {
  await page.clock.install();
  await page.goto(`${system.baseUrl}/reconcile/?section=report&mode=test`);
  await settled("€4.00").waitFor(SOON);
  await settle("5.00");
  await page.clock.fastForward(REFRESH_MS);
  await settled("€9.00").waitFor(SOON);
  await settle("2.00");
  await page.evaluate("window.print = () => { window.printed = document.querySelector('.paper').innerText; }");
  await page.getByRole("button", { name: "Print" }).click();
  await expect.poll(() => page.evaluate("window.printed"), SOON).toMatch(/ · As of \d+ .*, \d\d:\d\d\n.*€11\.00/s);
});

test("the report of a day: it is in the time zone of the filial's accounts, and so is the day of today", async () => {
  const timeZone = "America/New_York";
  await add("Kitchen", { filial_id: system.sandbox.filialId, time_zone: timeZone });
  await page.goto(`${system.baseUrl}/reconcile/?section=report&mode=test`);
  await page.getByText(`, 00:00 (${timeZone})`).waitFor(SOON);
  const day = new Intl.DateTimeFormat("en-CA", { timeZone }).format();
  expect(await page.getByLabel("Day", { exact: true }).inputValue()).toBe(day);
});

test("a change that another person made meanwhile stays: only the changed fields are sent", async () => {
  await openForm(barId);
  await patch(barId, { last_day: "2026-11-15" });
  await page.getByLabel("Name", { exact: true }).fill("Bar and terrace");
  await change().click();
  await page.getByText("The account is changed.").waitFor(SOON);
  expect(await account(barId)).toMatchObject({ name: "Bar and terrace", last_day: "2026-11-15" });
  await patch(barId, { name: "Bar", last_day: null });
});

test("a form of one account: when the page shows another account, the form changes nothing of that account", async () => {
  await openForm(hallId);
  // The link of the section has no account, so the page shows the first one.
  await page.getByRole("link", { name: "Import", exact: true }).click();
  await page.getByLabel("Last day").waitFor({ state: "hidden", ...SOON });
  await change().click();
  expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("Bar");
  await page.getByLabel("Last day").fill("2026-11-15");
  await change().click();
  await page.getByText("The account is changed.").waitFor(SOON);
  expect(await account(barId)).toMatchObject({ name: "Bar", last_day: "2026-11-15" });
  expect(await account(hallId)).toMatchObject({ name: "Hall", last_day: null });
  await patch(barId, { last_day: null });
});

test("a last day that does not exist: nothing is stored, and the form stays", async () => {
  await openForm(hallId);
  let sent = 0;
  page.on("request", (request) => (sent += Number(request.method() === "PATCH")));
  // November has 30 days. The browser of the tests takes the month first.
  await page.getByLabel("Last day").pressSequentially("11312026");
  await change().click();
  await page.waitForTimeout(500);
  expect(sent).toBe(0);
  expect(await page.getByLabel("Last day").evaluate((input: HTMLInputElement) => input.validity.badInput)).toBe(true);
});

test("a file that could not be sent says so, also when the person has used a form meanwhile", async () => {
  const held = Promise.withResolvers<void>();
  await page.route("**/imports/?file_name=*", async (route) => {
    await held.promise;
    await route.abort();
  });
  await page.goto(`${system.baseUrl}/reconcile/?section=imports&account_id=${barId}`);
  const buffer = Buffer.from("line,payment_id\n");
  await page.locator("input[type=file]").setInputFiles({ name: "lost.csv", mimeType: "text/csv", buffer });
  await page.getByText("lost.csv").waitFor(SOON);
  await change().click();
  await page.getByLabel("Last day").waitFor(SOON);
  held.resolve();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("lost.csv").waitFor(SOON);
  await page.getByRole("button", { name: "Dismiss" }).waitFor(SOON);
  // The message belongs to the account for which the file was sent.
  await page.getByLabel("Account").selectOption({ label: "Hall" });
  await page.getByText("No statement is imported yet").waitFor(SOON);
  expect(await page.getByText("lost.csv").count()).toBe(0);
});
