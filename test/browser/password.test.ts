/** A person changes their password on each page in a real browser: by keyboard, accessible, with a sentence for each refusal. */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { logIn, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { LogIn, TestSystem } from "../support/system.ts";
import { expectAccessible, expectNoSideways, startBrowser } from "./chromium.ts";
import { button, click, isShown, SHOWN } from "./till-steps.ts";

const OLD = "a long pass phrase";
const NEW = "another long pass phrase";

let system: TestSystem;
let browser: Browser;
let owner: Person;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem(), startBrowser()]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

interface Case {
  readonly page: string;
  readonly api: Parameters<typeof logIn>[1];
  readonly role: string;
}
const CASES: readonly Case[] = [
  { page: "back", api: "backoffice", role: "owner" },
  { page: "till", api: "cashier", role: "cashier" },
  { page: "reconcile", api: "reconciliation", role: "reconciliation_operator" },
];

async function newPerson({ page, role }: Case): Promise<LogIn> {
  const email = `${page}-${Math.round(performance.now())}@sandbox.example`;
  await owner.good("POST", "users/", { body: { email, password: OLD, name: "Kim", role } });
  return { email, password: OLD };
}

async function fillSignIn(page: Page, { email, password }: LogIn, words: readonly string[]): Promise<void> {
  const [emailLabel = "", passwordLabel = "", action = ""] = words;
  await page.getByLabel(emailLabel).fill(email, SHOWN);
  await page.getByLabel(passwordLabel, { exact: true }).fill(password);
  await click(page, action);
}

async function press(page: Page, name: string): Promise<void> {
  await button(page, name).waitFor(SHOWN);
  for (let presses = 0; presses < 60; presses += 1) {
    const focused = page.locator(":focus");
    if ((await focused.count()) > 0 && (await focused.textContent()) === name)
      return await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
  }
  throw new Error(`The keyboard does not reach ${name}.`);
}

describe.each(CASES)("the password of the signed-in person at /$page/", (of) => {
  test("a change by keyboard alone: this session continues, the others end, and only the new password signs in", async () => {
    const known = await newPerson(of);
    const other = await logIn(system.baseUrl, of.api, known);
    const context = await browser.newContext({ locale: "en-GB", viewport: { width: 1_280, height: 800 } });
    const page = await context.newPage();
    await page.goto(`${system.baseUrl}/${of.page}/`);
    await fillSignIn(page, known, ["E-mail address", "Password", "Sign in"]);
    await press(page, "Change password");
    const dialog = page.getByRole("dialog");
    const type = async (old: string, next: string, again: string): Promise<void> => {
      await dialog.getByLabel("Present password").focus();
      for (const [nth, text] of [old, next, again].entries()) {
        if (nth > 0) await page.keyboard.press("Tab");
        await page.keyboard.press("ControlOrMeta+a");
        await page.keyboard.type(text);
      }
      await page.keyboard.press("Enter");
    };
    await type(OLD, "too short", "too short");
    await isShown(page, "Use twelve characters or more.");
    await type(OLD, NEW, OLD);
    await isShown(page, "The two new passwords differ.");
    await type("not this one", NEW, NEW);
    await isShown(page, "This is not your password.");
    await expectAccessible(page, `${of.page}-password`);
    await type(OLD, NEW, NEW);
    await isShown(page, "Your password is changed. Your other sessions end.");
    await dialog.waitFor({ state: "hidden", ...SHOWN });
    expect(await page.locator(":focus").textContent()).toBe("Change password");
    await other.refused("session_invalid", "GET", "session/");
    await page.reload();
    await button(page, "Change password").waitFor(SHOWN);
    await expect(logIn(system.baseUrl, of.api, known)).rejects.toThrow(/login_failed/);
    await logIn(system.baseUrl, of.api, { ...known, password: NEW });
    const { events } = await owner.good<{ events: { action: string }[] }>("GET", "events/?search=password%20changed");
    expect(events.map(({ action }) => action)).toContain("user_password_changed");
    await context.close();
  });
});

test("in German, at 360 pixels: too many attempts and a lost answer each have a sentence", async () => {
  const till = CASES[1] ?? CASES[0];
  if (till === undefined) throw new Error("There is no page.");
  const known = await newPerson(till);
  const context: BrowserContext = await browser.newContext({ locale: "de-DE", viewport: { width: 360, height: 740 } });
  const page = await context.newPage();
  const throttled = { code: "login_throttled", detail: "", request_id: "r" };
  const refuse = (path: string): Promise<unknown> =>
    page.route(path, (route) => route.fulfill({ status: 429, headers: { "retry-after": "600" }, json: throttled }), {
      times: 1,
    });
  await page.goto(`${system.baseUrl}/till/`);
  await page.getByLabel("Passwort", { exact: true }).waitFor(SHOWN);
  await refuse("**/cashier/v1/session/");
  await fillSignIn(page, known, ["E-Mail-Adresse", "Passwort", "Anmelden"]);
  await isShown(page, "In 10:00 können Sie es noch einmal versuchen.");
  await fillSignIn(page, known, ["E-Mail-Adresse", "Passwort", "Anmelden"]);
  await click(page, "Passwort ändern");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Bisheriges Passwort").fill(OLD);
  await dialog.getByLabel("Neues Passwort", { exact: true }).fill(NEW);
  await dialog.getByLabel("Neues Passwort wiederholen").fill(NEW);
  await refuse("**/session/password/");
  await dialog.getByRole("button", { name: "Passwort ändern" }).click();
  await isShown(page, "Das waren zu viele Versuche.");
  await isShown(page, "In 10:00 können Sie es noch einmal versuchen.");
  await expectNoSideways(page);
  await expectAccessible(page);
  // The request arrives, and its answer is lost.
  await page.route("**/session/password/", async (route) => {
    await route.fetch();
    await route.abort();
  });
  await dialog.getByRole("button", { name: "Passwort ändern" }).click();
  await isShown(page, "Ob das Passwort geändert ist, ist nicht bekannt.");
  await logIn(system.baseUrl, till.api, { ...known, password: NEW });
  await context.close();
});
