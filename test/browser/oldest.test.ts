/** The pages in Chromium 71, the oldest one that they support: a collection on three pages, and each section of the others. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLoginLink } from "../../services/bus/messages/login-links.ts";
import { call } from "../../services/bus/operation.ts";
import { logIn } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { LogIn, TestSystem } from "../support/system.ts";
import { type OldBrowser, type OldPage, startOldestBrowser } from "./oldest-chromium.ts";

const OPERATOR = { email: "oldest@sandbox.example", password: "a long enough password" };
const TILL = 'iframe[title="Till"]';
const DISPLAY = 'iframe[title="Customer display"]';
const SECTIONS = [
  "Overview",
  "Payments",
  "Stations",
  "Devices",
  "Catalogue",
  "People",
  "Providers",
  "Webhooks",
  "Kill switches",
  "Audit log",
  "Sandbox",
  "Conformance",
  "Certificates",
];

let system: TestSystem;
let browser: OldBrowser;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem({ sandboxProvider: true, claims: true }), startOldestBrowser()]);
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  await owner.good("POST", "users/", { body: { ...OPERATOR, name: "Rita", role: "reconciliation_operator" } });
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

async function signIn(page: OldPage, { email, password }: LogIn): Promise<void> {
  await page.fill("E-mail address", email);
  await page.fill("Password", password);
  await page.click(/^Sign in$/);
}

test("the back office: each section opens, and a device gets its code", async () => {
  const page = await browser.newPage();
  await page.open(`${system.baseUrl}/back/`);
  await signIn(page, system.owner);
  for (const name of SECTIONS) {
    await page.click(new RegExp(`^${name}$`));
    await page.shows("h1", new RegExp(`^${name}$`));
    await page.shows("main", /\S{3}/);
  }
  await page.click(/^Devices$/);
  await page.click(/^Register a device$/);
  await page.fill("Name", "Oldest");
  await page.click(/^Register a device$/, "dialog");
  await page.click(/^Issue a code$/);
  await page.click(/^Issue a code$/, "dialog");
  // The page behind the dialog is dimmed.
  expect(await page.style("dialog", "::backdrop", "background-color")).toBe("rgba(15, 22, 19, 0.45)");
  expect(await page.shows("code.secret-value")).toMatch(/^[\dA-Z]{5}-[\dA-Z]{5}$/);
  expect(page.faults).toEqual([]);
});

test("the reconciliation: an account is added, and each section opens", async () => {
  const page = await browser.newPage();
  await page.open(`${system.baseUrl}/reconcile/`);
  await signIn(page, OPERATOR);
  await page.click(/^Import$/);
  await page.fill("Name", "Bar");
  await page.fill("Provider or bank", "sumup");
  await page.fill("The provider's name of the account", "MC4VDM6A");
  await page.click(/^Add an account$/);
  for (const name of ["Periods", "Day report", "Issues", "Import"]) {
    await page.click(new RegExp(`^${name}$`));
    await page.shows("main", /\S{3}/);
  }
  expect(page.faults).toEqual([]);
});

test("the first minute: a cash order is paid, and the display shows the QR code of the next order", async () => {
  const [, demo] = system.sandbox.stations;
  const { organizationId } = system.sandbox;
  const { token } = await call(system.bus.nc, createLoginLink, { organizationId, stationId: demo?.stationId ?? 0 });
  const page = await browser.newPage();
  await page.open(`${system.baseUrl}/start/#${token}`);
  await page.shows('[data-screen="idle"]', undefined, DISPLAY);
  await page.click(/^Espresso/, TILL);
  await page.click(/^Cash$/, TILL);
  await page.click(/ received$/, TILL);
  await page.shows('[data-screen="paid"]', undefined, DISPLAY);
  await page.click(/^Next order$/, TILL);
  // The sandbox provider waits for a guest's approval of this amount, so the code stays on the screen.
  await page.fill("Name", "Soup", TILL);
  await page.fill("Price", "12.03", TILL);
  await page.click(/^Add$/, TILL);
  await page.click(/^QR code$/, TILL);
  await page.shows('[data-screen="qr"] svg', undefined, DISPLAY);
  expect(page.faults).toEqual([]);
});
