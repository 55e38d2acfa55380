/** The back office in a real browser, against the whole system: whole tasks, and each section for people with disabilities. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { SEARCHED_ENTRIES } from "../../services/db/event-page.ts";
import { apiClient } from "../support/api-client.ts";
import { enrollDevice } from "../support/devices.ts";
import { addFleet, offerTask } from "../support/fleets.ts";
import { logIn, type Person } from "../support/people.ts";
import { startSystem, type TestSystem } from "../support/system.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { type Receiver, startReceiver } from "../webhook-signer/receiver.ts";
import { drawn, expectAccessible, expectNoSideways, startBrowser } from "./chromium.ts";
import { hostileText, picture } from "./pictures.ts";

/** The page reads some lists only every ten seconds, and the machine may be slow. */
const SHOWN = { timeout: 20_000 };
/** How often the page reads the audit log again (`EVERY_MS` of `audit.tsx`). */
const REFRESH_MS = 15_000;
/** Text that runs a script when a page inserts it as markup or into an attribute. */
const HOSTILE = `"><img src=x onerror=alert(1)><script>alert(2)</script>`;
const HOOK = "/back-office";
/** Without motion: axe must not check colours in the middle of a transition. */
const STILL = { reducedMotion: "reduce" } as const;

/** A clock that is an hour ahead, and media queries as in Safari before 14. */
const OLD_MACHINE = `
  const now = Date.now;
  Date.now = () => now() + 3_600_000;
  MediaQueryList.prototype.addEventListener = MediaQueryList.prototype.removeEventListener = undefined;`;

const folder = temporaryFolder("back-office");
let receiver: Receiver;
let system: TestSystem;
let browser: Browser;
let owner: Person;
let cashier: Person;
let stationId: number;
let context: BrowserContext;
let page: Page;
/** Scripts that the page must not run but did, and requests to another origin. */
const faults: string[] = [];

beforeAll(async () => {
  receiver = await startReceiver();
  const caFile = join(folder.path, "ca.pem");
  writeFileSync(caFile, receiver.authority.cert);
  [system, browser] = await Promise.all([
    startSystem({
      sandboxProvider: true,
      webhookSigner: true,
      environment: { WEBHOOK_ALLOW_LOOPBACK: "true", WEBHOOK_CA_FILE: caFile },
    }),
    startBrowser(),
  ]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  stationId = system.sandbox.stations[0]?.stationId ?? 0;
  context = await browser.newContext({ ...STILL, locale: "en-GB", viewport: { width: 1280, height: 900 } });
  await context.addInitScript(OLD_MACHINE);
  page = await context.newPage();
  watch(page);
  await page.goto(`${system.baseUrl}/back/`);
  await page.getByRole("button", { name: "Sign in" }).waitFor(SHOWN);
  await expectAccessible(page, "back-sign-in");
  await signIn(page);
});
afterAll(async () => {
  await browser.close();
  await Promise.all([system.stop(), receiver.stop()]);
  folder.remove();
});

function watch(watched: Page): void {
  watched.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  watched.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  watched.on("request", (request) => {
    if (new URL(request.url()).origin !== system.baseUrl) faults.push(`request: ${request.url()}`);
  });
}

async function signIn(at: Page): Promise<void> {
  await at.goto(`${system.baseUrl}/back/`);
  await fillSignIn(at);
  await at.getByRole("navigation", { name: "Sections" }).waitFor({ state: "attached", ...SHOWN });
}

async function fillSignIn(at: Page): Promise<void> {
  await at.getByLabel("E-mail address").fill(system.owner.email);
  await at.getByLabel("Password", { exact: true }).fill(system.owner.password);
  await at.getByRole("button", { name: "Sign in" }).click();
}

const open = async (section: string, at = page): Promise<void> => {
  await at.goto(`${system.baseUrl}/back/${section}`);
  await at.getByRole("heading", { level: 1 }).waitFor(SHOWN);
};
const dialog = (at = page): Locator => at.getByRole("dialog");
const press = (name: string, within: Page | Locator = page): Promise<void> =>
  within.getByRole("button", { name, exact: true }).click(SHOWN);
const said = (text: string, at = page): Promise<void> => at.getByText(text).first().waitFor(SHOWN);

describe("devices", () => {
  test("a display is registered, gets a code with a QR, claims it, is suspended, resumed and revoked", async () => {
    await open(`devices/?station=${stationId}`);
    await press("Register a device");
    const name = hostileText(HOSTILE, "Display at the bar");
    await dialog().getByLabel("Name").fill(name);
    await press("Register a device", dialog());
    await page.getByRole("heading", { level: 2, name }).waitFor(SHOWN);
    await press("Issue a code");
    await press("Issue a code", dialog());
    await page.getByRole("img", { name: "QR code" }).waitFor(SHOWN);
    await dialog().getByRole("timer").waitFor(SHOWN);
    await expectAccessible(page, "back-device-code");
    const code = (await dialog().locator("code.secret-value").textContent()) ?? "";
    expect(code).toMatch(/^[\dA-Z]{5}-[\dA-Z]{5}$/);
    const device = await enrollDevice(system.baseUrl, code);
    await said("The device has claimed its code.");
    await dialog().waitFor({ state: "hidden", ...SHOWN });
    await device.good("POST", "heartbeat/", { body: { summary: { app: HOSTILE } } });
    await said("online");
    await press("Suspend");
    await said("It keeps its credential but may not act");
    await press("Suspend", dialog());
    await said("The device is suspended.");
    await device.refused("device_suspended", "GET", "display/");
    await press("Resume");
    await press("Resume", dialog());
    await said("The device is resumed.");
    await device.good("GET", "display/");
    await press("Revoke for good");
    await press("Revoke for good", dialog());
    await said("The device is revoked.");
    await device.refused("credential_invalid", "GET", "display/");
  });

  test("a companion is registered and its code is revoked, by keyboard alone", async () => {
    await open(`devices/?station=${stationId}`);
    await page.getByRole("button", { name: "Register a device" }).waitFor(SHOWN);
    const keyboard = page.keyboard;
    const tabTo = async (wanted: Locator): Promise<void> => {
      for (let presses = 0; presses < 60; presses += 1) {
        if (await wanted.evaluate((element) => element === element.ownerDocument.activeElement)) return;
        await keyboard.press("Tab");
      }
      throw new Error(`The keyboard does not reach ${wanted.toString()}.`);
    };
    await tabTo(page.getByRole("button", { name: "Register a device" }));
    await keyboard.press("Enter");
    await tabTo(dialog().getByLabel("Kind"));
    await keyboard.type("Smart");
    await tabTo(dialog().getByLabel("Name"));
    await keyboard.type("Typed companion");
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 2, name: "Typed companion" }).waitFor(SHOWN);
    await tabTo(page.getByRole("button", { name: "Issue a code" }));
    await keyboard.press("Enter");
    await dialog().waitFor(SHOWN);
    await tabTo(dialog().getByRole("button", { name: "Issue a code" }));
    // On a slow machine the dialog of the code opens before the dialog of the form has returned the focus.
    const browserSession = await page.context().newCDPSession(page);
    await browserSession.send("Emulation.setCPUThrottlingRate", { rate: 20 });
    await keyboard.press("Enter");
    await dialog().getByText("It is valid for").waitFor(SHOWN);
    await browserSession.send("Emulation.setCPUThrottlingRate", { rate: 1 });
    // A key that is pressed by mistake does not close what is shown once.
    await keyboard.press("Escape");
    await tabTo(dialog().getByRole("button", { name: "I have it" }));
    await keyboard.press("Enter");
    await dialog().waitFor({ state: "hidden" });
    expect(await page.locator(":focus").textContent()).toBe("Issue a code");
    await tabTo(page.getByRole("button", { name: "End the code" }));
    await keyboard.press("Enter");
    await tabTo(dialog().getByRole("button", { name: "End the code" }));
    await keyboard.press("Enter");
    await said("The code is ended.");
    const { devices } = await owner.good<{ devices: { name: string; kind: string }[] }>("GET", "devices/");
    expect(devices).toContainEqual(expect.objectContaining({ name: "Typed companion", kind: "smart_pos_companion" }));
  });
});

describe("a secret that is shown once", () => {
  test("when the browser does not let the page copy, a sentence says so and the text is selected", async () => {
    const body = { station_id: stationId, name: "Copied by hand", kind: "customer_display" };
    const { device_id } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
    const own = await browser.newContext({ ...STILL, locale: "en-GB" });
    // A page on plain HTTP has no clipboard.
    await own.addInitScript(`Object.defineProperty(navigator, "clipboard", { value: undefined })`);
    const at = await own.newPage();
    watch(at);
    await signIn(at);
    await open(`devices/?device=${device_id}`, at);
    await press("Issue a code", at);
    await press("Issue a code", dialog(at));
    for (const label of ["Enrollment code", "Address of the display"]) {
      await press(`Copy: ${label}`, dialog(at));
      await said("The page may not copy here.", at);
      const shown = await dialog(at).locator("code").allTextContents();
      const selected = (): Promise<string> => at.evaluate<string>("String(getSelection())");
      await expect.poll(selected, SHOWN).toBe(shown[label === "Enrollment code" ? 0 : 1]);
    }
    await expectAccessible(at);
    await own.close();
  });
});

describe("kill switches", () => {
  test("when nothing can be frozen, the button says so", async () => {
    const none = { provider_configs: [], has_more: false };
    await page.route("**/provider-configs/?*", (route) => route.fulfill({ json: none }));
    await open("switches/");
    await page.getByLabel("What", { exact: true }).selectOption("provider");
    await said("There is nothing of this kind to freeze.");
    expect(await page.getByRole("button", { name: "Freeze …" }).getAttribute("aria-disabled")).toBe("true");
    await page.unroute("**/provider-configs/?*");
  });

  test("the choice has stations beyond the first thousand and none that is closed; a filter has closed ones too", async () => {
    const known = await owner.good<{ stations: readonly object[] }>("GET", "stations/?limit=1");
    await page.route("**/backoffice/v1/stations/?*", (route) => {
      const since = Number(new URL(route.request().url()).searchParams.get("since_id") ?? 0);
      const of = (nth: number) => ({ station_id: since + nth + 1, status: nth === 0 ? "closed" : "active" });
      const stations = Array.from({ length: 500 }, (_, nth) => ({ ...known.stations[0], ...of(nth) }));
      return route.fulfill({ json: { stations, has_more: since < 1_000 } });
    });
    await open("switches/");
    await page.getByLabel("Choose").selectOption("1500", SHOWN);
    expect(await page.locator('option[value="1001"]').count()).toBe(0);
    await open("payments/");
    await page.getByLabel("Station").selectOption("1001", SHOWN);
    await page.unroute("**/backoffice/v1/stations/?*");
  });

  test("a frozen station offers only cash, and all routes again after the freeze", async () => {
    const offered = async (): Promise<string[]> => {
      const path = `stations/${stationId}/routes/`;
      const { routes } = await cashier.good<{ routes: { route: string; offered: boolean }[] }>("GET", path);
      return routes.flatMap((each) => (each.offered ? [each.route] : []));
    };
    const before = await offered();
    await open("switches/");
    await page.getByLabel("Choose").selectOption(String(stationId));
    await press("Freeze …");
    await said("Every payment route but cash is withdrawn at this station");
    await said("Give a reason first.");
    const reason = hostileText(HOSTILE, "The card reader is missing.");
    await dialog().getByLabel("Reason").fill(reason);
    // Enter confirms no dangerous action.
    await page.keyboard.press("Enter");
    await press("Freeze", dialog());
    await page.getByRole("cell", { name: reason }).waitFor(SHOWN);
    await vi.waitFor(async () => expect(await offered()).toEqual(["cash"]), SHOWN);
    await expectAccessible(page, "back-frozen-station");
    await press("End the freeze");
    await dialog().getByLabel("Reason").fill("It is over.");
    await page.keyboard.press("Enter");
    await said("Nothing is frozen");
    await vi.waitFor(async () => expect(await offered()).toEqual(before), SHOWN);
  });
});

describe("payments", () => {
  test("a payment is found by its filters, explained in words, and in the CSV of the same filter", async () => {
    const reference = hostileText(`=1+1 ${HOSTILE}`, "408213");
    await cashier.good("POST", `stations/${stationId}/lease/`, { body: {} });
    const lines = [{ name: hostileText(HOSTILE, "Trout with almonds"), quantity: 1, unit_amount: "47.11" }];
    const order = await cashier.good<{ order_id: number }>("POST", `stations/${stationId}/orders/`, {
      body: { lines },
    });
    const intent = await cashier.good<{ intent_id: number }>("POST", `stations/${stationId}/intents/`, {
      body: { order_id: order.order_id, route: "attested_terminal" },
    });
    const path = `stations/${stationId}/intents/${intent.intent_id}/attest/`;
    await cashier.good("POST", path, { body: { reference } });
    await open("payments/?currency=EUR");
    await page.getByLabel("At least").fill("47,00");
    await page.getByLabel("Route").selectOption("attested_terminal");
    await page.getByLabel("At most").fill("47.50");
    await page.getByRole("cell", { name: reference }).waitFor(SHOWN);
    const filter = "?currency=EUR&route=attested_terminal&least=47%2C00&most=47.50";
    await vi.waitFor(() => expect(new URL(page.url()).search).toBe(filter), SHOWN);
    // A change of the filter makes the page read the list again.
    await vi.waitFor(async () => expect(await page.getByRole("row").count()).toBe(2), SHOWN);
    const download = page.waitForEvent("download", SHOWN);
    await page.getByRole("link", { name: "CSV of this list" }).click();
    const csv = readFileSync(await (await download).path(), "utf8")
      .trim()
      .split("\n");
    expect(csv).toHaveLength(2);
    expect(csv[1]).toContain("47.11");
    expect(csv[1]).not.toMatch(/(?:^|,)"?=/);
    await page.reload();
    await page.getByRole("table").getByRole("link").first().click(SHOWN);
    await said("What happened");
    await said("Money moved");
    await expectAccessible(page, "back-timeline");
    await page.getByRole("link", { name: "Back to the payments" }).click();
    await page.getByRole("cell", { name: reference }).waitFor(SHOWN);
    expect(new URL(page.url()).search).toBe(filter);
    await page.getByLabel("At most").fill("47.505");
    await said("Something that was entered is not valid.");
    await open("");
    await page.locator(".chart canvas").waitFor(SHOWN);
  });
});

describe("lists", () => {
  test("after a change of the filter, the old rows stay, marked busy, until the new rows have loaded", async () => {
    await open("payments/");
    await page.getByRole("row").nth(1).waitFor(SHOWN);
    let goOn: () => void = () => undefined;
    await page.route("**/payments/?*route=cash*", async (route) => {
      await new Promise<void>((resolve) => (goOn = resolve));
      await route.continue();
    });
    await page.getByLabel("Route").selectOption("cash");
    await page.locator('.busy[aria-busy="true"]').waitFor(SHOWN);
    expect(await page.getByRole("row").count()).toBeGreaterThan(1);
    expect(await page.locator(".skeleton").count()).toBe(0);
    await expectAccessible(page, "back-busy");
    goOn();
    await said("Nothing fits the filters");
    expect(await page.locator(".busy").count()).toBe(0);
    await page.unroute("**/payments/?*route=cash*");
  });

  test("filters that match nothing: a button clears them; a list without entries: it says how to add the first", async () => {
    const filtered = [
      "payments/?search=no-payment-has-this",
      "stations/?status=suspended",
      "devices/?status=suspended",
      "audit/?text=no-entry-has-this",
      "webhooks/?view=endpoints&consumer=999999",
      "webhooks/?view=deliveries&endpoint=999999",
    ];
    for (const address of filtered) {
      await open(address);
      const empty = page.locator(".empty");
      await empty.getByText("Nothing fits the filters").waitFor(SHOWN);
      await expectAccessible(page, address.startsWith("payments") ? "back-no-match" : undefined);
      await empty.getByRole("button", { name: "Clear the filters" }).click();
      await page.getByText("Nothing fits the filters").waitFor({ state: "detached", ...SHOWN });
      const view = new URL(address, page.url()).searchParams.get("view");
      expect(new URL(page.url()).search, address).toBe(view === null ? "" : `?view=${view}`);
      expect(await page.locator(":focus").getAttribute("id"), address).toBe("content");
    }
    // The last list is empty without a filter, so it has no button that clears filters.
    await said("No delivery yet");
    expect(await page.getByRole("button", { name: "Clear the filters" }).count()).toBe(0);
  });

  test("a later page that fails: the button tries that page again, and the failure disappears", async () => {
    await page.route("**/backoffice/v1/users/", async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), has_more: true } });
    });
    await open("people/");
    const busy = { status: 503, json: { code: "busy", detail: "", request_id: "r" } };
    await page.route("**/users/?*since_id=*", (route) => route.fulfill(busy), { times: 1 });
    await press("Show more");
    await said("The service has too much to do at the moment.");
    await press("Try again");
    await page.getByText("The service has too much to do at the moment.").waitFor({ state: "detached", ...SHOWN });
    // The page that had failed is the last one.
    expect(await page.getByRole("button", { name: "Show more" }).count()).toBe(0);
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });

  test("a text filter keeps the space after which a person pauses", async () => {
    await open("payments/");
    const search = page.getByLabel("Reference or order");
    await search.fill("Table ", SHOWN);
    await vi.waitFor(() => expect(new URL(page.url()).search).toBe("?search=Table"), SHOWN);
    await drawn(page);
    await search.press("4");
    expect(await search.inputValue()).toBe("Table 4");
    await vi.waitFor(() => expect(new URL(page.url()).searchParams.get("search")).toBe("Table 4"), SHOWN);
  });

  test("the overview of a day that does not exist: the page says so, and another day can be chosen", async () => {
    await open("?day=2026-13-45");
    await said("Something that was entered is not valid.");
    await page.getByLabel("Day", { exact: true }).fill("2026-11-20", SHOWN);
    await page.getByText("Something that was entered is not valid.").waitFor({ state: "detached", ...SHOWN });
    await vi.waitFor(() => expect(new URL(page.url()).search).toBe("?day=2026-11-20"), SHOWN);
  });

  test("a day is typed by keyboard, also when a part of it does not fit the day before", async () => {
    await open("?day=2026-10-31");
    const day = page.getByLabel("Day", { exact: true });
    await day.focus(SHOWN);
    // This browser asks for the month first. September has no 31st, so the date is incomplete until the day is typed.
    await page.keyboard.type("09");
    // Meanwhile the page reads the overview again.
    await page.waitForResponse(/\/overview\//, SHOWN);
    await drawn(page);
    await page.keyboard.type("302026");
    await vi.waitFor(() => expect(new URL(page.url()).search).toBe("?day=2026-09-30"), SHOWN);
    expect(await day.inputValue()).toBe("2026-09-30");
  });

  test("the search of the audit log covers the whole log, not only the loaded part", async () => {
    const oldest = { filial_id: system.sandbox.filialId, name: "Needle", currency: "EUR" };
    const { station_id } = await owner.good<{ station_id: number }>("POST", "stations/", { body: oldest });
    // More entries than one request searches, so that the page needs several requests to find the entry.
    const sql = postgres(system.database.url, { max: 1 });
    await sql`
      insert into registry_events (organization_id, actor_kind, actor_id, actor_name, action, subject_kind, subject_id)
      select organization_id, 'owner', 1, 'Ada', 'station_renamed', 'station', station_id
      from stations, generate_series(1, ${SEARCHED_ENTRIES}::int) where station_id = ${station_id}`;
    await sql.end();
    // A separate context, because a clock belongs to a context, and OLD_MACHINE replaces the clock of the other one.
    const own = await browser.newContext({ ...STILL, locale: "en-GB", storageState: await context.storageState() });
    await own.clock.install();
    const at = await own.newPage();
    watch(at);
    await open("audit/", at);
    await at.getByRole("row").nth(100).waitFor(SHOWN);
    expect(await at.getByText("station created").count()).toBe(0);
    await press("Show more", at);
    await at.getByRole("row").nth(200).waitFor(SHOWN);
    // Older entries stay on the screen when the page reads the list again automatically.
    const again = at.waitForResponse((answer) => answer.url().endsWith("/events/?limit=100"), SHOWN);
    await at.clock.fastForward(REFRESH_MS);
    await again;
    await drawn(at);
    expect(await at.getByRole("row").count()).toBeGreaterThan(200);
    await at.getByLabel("Who or what contains").fill("station created");
    const found = at.getByRole("row", { name: /station created/ });
    await found.filter({ has: at.getByRole("cell", { name: `station ${station_id}`, exact: true }) }).waitFor(SHOWN);
    expect(new URL(at.url()).searchParams.get("text")).toBe("station created");
    await own.close();
  });
});

describe("webhooks", () => {
  test("an endpoint is registered and tested, and a delivery is sent again", async () => {
    const [filial] = (await owner.good<{ filials: { filial_id: number }[] }>("GET", "filials/")).filials;
    const fleet = await addFleet(system.baseUrl, owner, filial?.filial_id ?? 0, hostileText(HOSTILE, "Serving robots"));
    await open(`webhooks/?view=endpoints&consumer=${fleet.consumerId}`);
    await press("Register an endpoint");
    await dialog().getByLabel("Address").fill(receiver.url(HOOK));
    await press("Register an endpoint", dialog());
    await said("This is shown once.");
    expect(await dialog().locator("code.secret-value").textContent()).toMatch(/^whsec_/);
    // No later answer contains the secret, so a key that is pressed by mistake must not close the dialog.
    for (const key of ["Escape", "Escape"]) await page.keyboard.press(key);
    expect(await dialog().locator("code.secret-value").isVisible()).toBe(true);
    await press("I have it", dialog());
    const answer = hostileText(HOSTILE, "The robots' program is not ready.");
    receiver.behave(HOOK, () => ({ status: 500, body: answer }));
    await press("Send a test");
    await said("The endpoint did not accept the test.");
    await dialog().getByText(answer).waitFor(SHOWN);
    await expectAccessible(page, "back-webhook-test");
    await press("Close", dialog());
    receiver.behave(HOOK, () => 204);
    await press("Send a test");
    await said("The endpoint answered as it should.");
    await press("Close", dialog());
    await offerTask(owner, fleet);
    await open(`webhooks/?view=deliveries&consumer=${fleet.consumerId}&event=serving_task.offered&status=delivered`);
    const link = page.getByRole("table").getByRole("link").first();
    await link.click(SHOWN);
    await press("Send again");
    await press("Send again", dialog());
    await said("asked for");
  });
});

describe("sandbox", () => {
  test("a seeded sandbox starts a test payment with one click, and the guest pays it", async () => {
    await open("sandbox/");
    await press("Seed a sandbox");
    await dialog().getByLabel("Name").fill("Played");
    await press("Seed a sandbox", dialog());
    await said("Password of the cashier");
    await press("I have it", dialog());
    await page
      .getByRole("row", { name: /Played/ })
      .getByRole("button", { name: "Play" })
      .click(SHOWN);
    await page.getByRole("button", { name: /approves the payment/ }).dblclick(SHOWN);
    await page.getByRole("complementary").getByText("paid").waitFor(SHOWN);
    expect(await page.getByRole("alert").count()).toBe(0);
    await expectAccessible(page, "back-sandbox-play");
    await page.getByRole("button", { name: /declines after a short delay/ }).click(SHOWN);
    await said("declined by the provider");
    // The owner is still signed in with the same session.
    await open("stations/");
    await page.getByRole("cell", { name: "Played" }).waitFor(SHOWN);
  });
});

describe("session", () => {
  test("one that ends in the middle of a form asks to sign in again, and nothing that was typed is lost", async () => {
    const own = await browser.newContext({ ...STILL, locale: "en-GB" });
    const at = await own.newPage();
    watch(at);
    await signIn(at);
    await open("people/", at);
    await press("Add a person", at);
    await dialog(at).getByLabel("Name").fill("Kim");
    await dialog(at).getByLabel("E-mail address").fill(`kim-${Date.now()}@sandbox.example`);
    await dialog(at).getByLabel("Password").fill("a long pass phrase");
    // The form stays open during an outage, and can be sent afterwards.
    await at.route("**/users/", (route) => route.abort(), { times: 1 });
    await press("Add a person", dialog(at));
    await said("The service cannot be reached.", at);
    const [cookie] = (await own.cookies()).filter(({ name }) => name === "dp_session");
    await apiClient(`${system.baseUrl}/api/backoffice/v1/`, cookie?.value ?? "").good("DELETE", "session/");
    await press("Add a person", dialog(at));
    const again = at.getByRole("dialog", { name: "Your session has ended" });
    await again.waitFor(SHOWN);
    await expectAccessible(at, "back-session-ended");
    for (const key of ["Escape", "Escape"]) await at.keyboard.press(key);
    await again.getByLabel("E-mail address").fill(system.owner.email);
    await again.getByLabel("Password").fill(system.owner.password);
    await press("Sign in", again);
    await again.waitFor({ state: "hidden", ...SHOWN });
    await press("Add a person", dialog(at));
    await said("The person is added.", at);
    await open("audit/?text=user+created", at);
    const about = at.getByRole("cell", { name: /^Kim\s*user \d+ · kim-\d+@sandbox\.example$/ });
    await about.waitFor(SHOWN);
    await own.close();
  });

  test("a wrong password says so, in German too", async () => {
    const own = await browser.newContext({ ...STILL, locale: "de-DE", viewport: { width: 360, height: 740 } });
    const at = await own.newPage();
    // The page starts without the service, and continues when the service answers.
    await at.route("**/session/", (route) => route.abort(), { times: 1 });
    await at.goto(`${system.baseUrl}/back/`);
    await said("Der Dienst ist nicht erreichbar.", at);
    await expectAccessible(at);
    await at.getByLabel("E-Mail-Adresse").fill(system.owner.email, SHOWN);
    await at.getByLabel("Passwort", { exact: true }).fill("not this one");
    await at.getByRole("button", { name: "Anmelden" }).click();
    await at.getByRole("alert").waitFor(SHOWN);
    await expectAccessible(at, "back-wrong-password");
    await expectNoSideways(at);
    await own.close();
  });
});

describe("every section", () => {
  test("is accessible in light and dark at 360 pixels, and runs no hostile text", async () => {
    const [filial] = (await owner.good<{ filials: { filial_id: number }[] }>("GET", "filials/")).filials;
    const filial_id = filial?.filial_id;
    const name = (inPictures: string): string => hostileText(HOSTILE, inPictures);
    await owner.good("POST", "stations/", { body: { filial_id, name: name("Terrace"), currency: "EUR" } });
    await owner.good("POST", "catalogue-items/", {
      body: { filial_id, name: name("Tap water"), category: name("Drinks"), unit_amount: "1.00", currency: "EUR" },
    });
    const configs = await owner.good<{ provider_configs: { config_id: number }[] }>("GET", "provider-configs/");
    const [config] = configs.provider_configs;
    await owner.good("PATCH", `provider-configs/${config?.config_id}/`, { body: { name: name("Test payments") } });
    await owner.good("POST", "users/", {
      body: {
        name: name("Rita Okafor"),
        email: "rita@sandbox.example",
        role: "cashier",
        password: "a long pass phrase",
      },
    });
    await page.setViewportSize({ width: 360, height: 740 });
    const links = await page.getByRole("navigation", { name: "Sections", includeHidden: true }).locator("a").all();
    const addresses = await Promise.all(links.map((link) => link.getAttribute("href")));
    expect(addresses.length).toBeGreaterThan(9);
    for (const [nth, address] of addresses.entries()) {
      // Follows the link, so that the page loads only once. The event works although a narrow window hides the menu.
      await links[nth]?.dispatchEvent("click");
      await page.waitForURL(`**${address}`);
      await page
        .locator(`a.menu-link[aria-current="page"][href="${address}"]`)
        .waitFor({ state: "attached", ...SHOWN });
      await page.getByRole("heading", { level: 1 }).waitFor(SHOWN);
      await page.locator(".content .skeleton").waitFor({ state: "detached", ...SHOWN });
      await expectAccessible(page);
      await expectNoSideways(page);
      // No table is wider than the window either.
      const isBeside = "(frame) => frame.scrollWidth > frame.clientWidth";
      const frames = "[...document.querySelectorAll('.table-frame')]";
      expect(await page.evaluate(`${frames}.filter(${isBeside}).length`), address ?? "").toBe(0);
      await picture(page, `back-${(address ?? "").split("/")[2] || "overview"}`, { width: 1_280, height: 800 });
    }
    expect(faults).toEqual([]);
  });
});
