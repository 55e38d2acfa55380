/** Forms of the back office in a real browser: lost answers, and errors of the service in the person's language. */
import type { Browser, BrowserContextOptions, Page, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { enrollDevice } from "../support/devices.ts";
import { addFleet } from "../support/fleets.ts";
import { logIn, newOrder, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { expectAccessible, startBrowser } from "./chromium.ts";

const SHOWN = { timeout: 20_000 };

let system: TestSystem;
let browser: Browser;
let owner: Person;

beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem({ sandboxProvider: true }), startBrowser()]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});

async function open(section: string, options: BrowserContextOptions = { locale: "en-GB" }): Promise<Page> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  await page.goto(`${system.baseUrl}/back/${section}`);
  await page.getByRole("textbox").first().fill(system.owner.email, SHOWN);
  await page.locator("input[type=password]").fill(system.owner.password);
  await page.keyboard.press("Enter");
  await page.locator(".content").waitFor(SHOWN);
  return page;
}

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const inDialog = (page: Page) => page.getByRole("dialog");

/** The service performs the request, but its answer does not arrive. */
const loseAnswer = async (route: Route): Promise<void> => {
  if (route.request().method() === "GET") return await route.continue();
  await route.fetch();
  await route.abort();
};

describe("an answer that is lost", () => {
  test("the next click finds the thing that the first click has made, and makes no second thing", async () => {
    const page = await open("stations/");
    await page.route("**/filials/", loseAnswer, { times: 1 });
    await button(page, "Add a filial").click(SHOWN);
    await inDialog(page).getByLabel("Name").fill("Made once");
    await inDialog(page).getByRole("button", { name: "Add a filial" }).click();
    await inDialog(page).getByText("The service cannot be reached.").waitFor(SHOWN);
    await inDialog(page).getByRole("button", { name: "Add a filial", disabled: false }).click(SHOWN);
    await inDialog(page).waitFor({ state: "hidden", ...SHOWN });
    await page.getByText("The filial is added. Add a station to it next.").waitFor(SHOWN);
    const { filials } = await owner.good<{ filials: { name: string }[] }>("GET", "filials/");
    expect(filials.filter(({ name }) => name === "Made once")).toHaveLength(1);
    await page.context().close();
  });

  test("a secret of the lost answer is not shown again: the page says what to do, and lists the new thing", async () => {
    const fleet = await addFleet(system.baseUrl, owner, system.sandbox.filialId, "Fleet of the form");
    const page = await open(`webhooks/?view=endpoints&consumer=${fleet.consumerId}`);
    await page.route("**/webhook-endpoints/", loseAnswer, { times: 1 });
    await button(page, "Register an endpoint").click(SHOWN);
    await inDialog(page).getByLabel("Address").fill("https://127.0.0.1:8443/once");
    const again = inDialog(page).getByRole("button", { name: "Register an endpoint", disabled: false });
    await again.click();
    await inDialog(page).getByText("The service cannot be reached.").waitFor(SHOWN);
    await again.click(SHOWN);
    await inDialog(page).getByText("An earlier click has made this already.").waitFor(SHOWN);
    await expectAccessible(page, "back-already-created");
    await page.keyboard.press("Escape");
    await page.getByText("https://127.0.0.1:8443/once").waitFor(SHOWN);
    const { webhook_endpoints: endpoints } = await owner.good<{ webhook_endpoints: unknown[] }>(
      "GET",
      `webhook-endpoints/?consumer_id=${fleet.consumerId}`,
    );
    expect(endpoints).toHaveLength(1);
    await page.context().close();
  });

  test("a request without a key that is refused then: the page says why that may be, and shows what is so now", async () => {
    const perhapsDone = "Perhaps an earlier click has done this already.";
    const page = await open("people/");
    await page.route("**/users/", loseAnswer, { times: 1 });
    await button(page, "Add a person").click(SHOWN);
    await inDialog(page).getByLabel("Name").fill("Nora Lind");
    await inDialog(page).getByLabel("E-mail address").fill("nora@forms.example");
    await inDialog(page).getByLabel("Password").fill("a long enough password");
    const add = inDialog(page).getByRole("button", { name: "Add a person", disabled: false });
    await add.click();
    await inDialog(page).getByText("The service cannot be reached.").waitFor(SHOWN);
    await add.click(SHOWN);
    await inDialog(page).getByText("Another person has this e-mail address.").waitFor(SHOWN);
    await inDialog(page).getByText(perhapsDone).waitFor(SHOWN);
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await page.getByText("nora@forms.example").waitFor(SHOWN);

    await addItem("Plum cake");
    await page.goto(`${system.baseUrl}/back/catalogue/`);
    await page.route("**/catalogue-items/*/", loseAnswer, { times: 1 });
    const row = page.getByRole("row", { name: /Plum cake/ });
    await row.getByRole("button", { name: "Remove" }).click(SHOWN);
    const remove = inDialog(page).getByRole("button", { name: "Remove", disabled: false });
    await remove.click();
    await inDialog(page).getByText("The service cannot be reached.").waitFor(SHOWN);
    await remove.click(SHOWN);
    await inDialog(page).getByText(perhapsDone).waitFor(SHOWN);
    await page.keyboard.press("Escape");
    await row.waitFor({ state: "detached", ...SHOWN });
    await page.context().close();
  });
});

describe("a part that a page lacks", () => {
  test("who drives the stations cannot be read: no station counts as free, and the page says why", async () => {
    const page = await open("stations/");
    await page.getByRole("cell", { name: "free" }).first().waitFor(SHOWN);
    const busy = { status: 503, json: { code: "busy", detail: "", request_id: "r" } };
    await page.route("**/leases/*", (route) => route.fulfill(busy));
    await page.reload();
    await page.getByText("The service has too much to do at the moment.").waitFor(SHOWN);
    await page.getByRole("cell", { name: "–" }).first().waitFor(SHOWN);
    expect(await page.getByRole("cell", { name: "free" }).count()).toBe(0);
    await page.unroute("**/leases/*");
    await button(page, "Try again").click(SHOWN);
    await page.getByRole("cell", { name: "free" }).first().waitFor(SHOWN);
    await page.context().close();
  });

  test("a station closes: the overview no longer shows its devices as offline", async () => {
    const { filialId: filial_id } = system.sandbox;
    const place = { filial_id, name: "Winter garden", currency: "EUR" };
    const { station_id } = await owner.good<{ station_id: number }>("POST", "stations/", { body: place });
    const left = { station_id, name: "Left behind", kind: "customer_display" };
    const { device_id } = await owner.good<{ device_id: number }>("POST", "devices/", { body: left });
    const { code } = await owner.good<{ code: string }>("POST", `devices/${device_id}/enrollment-codes/`);
    await enrollDevice(system.baseUrl, code);
    const page = await open("");
    const link = page.getByRole("link", { name: "Left behind" });
    await link.waitFor(SHOWN);
    await owner.good("POST", `stations/${station_id}/close/`);
    // The page reads the devices again every 20 s, and at once when their number changes.
    await link.waitFor({ state: "detached", timeout: 60_000 });
    await page.context().close();
  });
});

const addItem = async (name: string): Promise<string> => {
  const body = { name, category: "Drinks", unit_amount: "9.80", currency: "EUR" };
  return `catalogue-items/${(await owner.good<{ item_id: number }>("POST", "catalogue-items/", { body })).item_id}/`;
};

describe("two people who change one thing at once", () => {
  test("an item: the form changes only what its person has changed", async () => {
    const path = await addItem("Iced tea");
    const page = await open("catalogue/");
    await page
      .getByRole("row", { name: /Iced tea/ })
      .getByRole("button", { name: "Change" })
      .click(SHOWN);
    await owner.good("PATCH", path, { body: { unit_amount: "10.40", filial_id: system.sandbox.filialId } });
    await inDialog(page).getByLabel("Item").fill("Iced lemon tea");
    await inDialog(page).getByRole("button", { name: "Change" }).click();
    await page.getByText("The item is changed.").waitFor(SHOWN);
    const theirs = { unit_amount: "10.40", filial_id: system.sandbox.filialId };
    expect(await owner.good("GET", path)).toMatchObject({ name: "Iced lemon tea", category: "Drinks", ...theirs });
    await page.context().close();
  });

  test("a device: the form changes only what its person has changed", async () => {
    const body = { station_id: system.sandbox.stations[0]?.stationId, name: "Old", kind: "smart_pos_companion" };
    const { device_id } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
    const page = await open(`devices/?device=${device_id}`);
    await button(page, "Change").click(SHOWN);
    await owner.good("PATCH", `devices/${device_id}/`, { body: { handoff_target: "pay://theirs" } });
    await inDialog(page).getByLabel("Name").fill("New");
    await inDialog(page).getByRole("button", { name: "Change" }).click();
    await page.getByRole("heading", { name: "New" }).waitFor(SHOWN);
    expect(await owner.good("GET", `devices/${device_id}/`)).toMatchObject({
      name: "New",
      handoff_target: "pay://theirs",
    });
    await page.context().close();
  });

  test("a person: the form changes only what its person has changed", async () => {
    const body = { name: "Kim", email: "kim@forms.example", role: "cashier", password: "a long enough password" };
    const { user_id } = await owner.good<{ user_id: number }>("POST", "users/", { body });
    const page = await open("people/");
    await page.getByRole("row", { name: /Kim/ }).getByRole("button", { name: "Change" }).click(SHOWN);
    await owner.good("PATCH", `users/${user_id}/`, { body: { name: "Kim Park", role: "reconciliation_operator" } });
    await inDialog(page).getByLabel("E-mail address").fill("kim.park@forms.example");
    await inDialog(page).getByRole("button", { name: "Change" }).click();
    await inDialog(page).waitFor({ state: "hidden", ...SHOWN });
    const { users } = await owner.good<{ users: { user_id: number }[] }>("GET", "users/");
    expect(users.find((user) => user.user_id === user_id)).toMatchObject({
      name: "Kim Park",
      email: "kim.park@forms.example",
      role: "reconciliation_operator",
    });
    await page.context().close();
  });
});

describe("the sandbox panel", () => {
  test("its cashier: the next click after the end of the session signs in again; a reset for playing shows the codes", async () => {
    const page = await open("sandbox/");
    let session = "";
    page.on("request", (request) => {
      if (request.url().includes("/cashier/v1/stations/")) session = request.headers()["authorization"] ?? session;
    });
    await button(page, "Seed a sandbox").click(SHOWN);
    await inDialog(page).getByLabel("Name").fill("Long day");
    await inDialog(page).getByRole("button", { name: "Seed a sandbox" }).click();
    await inDialog(page).getByRole("button", { name: "I have it" }).click(SHOWN);
    const row = page.getByRole("row", { name: /Long day/ });
    await row.getByRole("button", { name: "Play" }).click(SHOWN);
    await page.getByRole("button", { name: /declines after a short delay/ }).click(SHOWN);
    await page.getByRole("complementary").getByText("declined by the provider").waitFor(SHOWN);
    const ended = await fetch(`${system.baseUrl}/api/cashier/v1/session/`, {
      method: "DELETE",
      headers: { Authorization: session },
    });
    expect(ended.status).toBe(204);
    await page.getByRole("button", { name: /approves the payment/ }).click(SHOWN);
    await page.getByRole("complementary").getByText("paid").waitFor(SHOWN);
    // A page that was left has no password. The reset ends the devices' credentials, so it shows the new codes too.
    await page.reload();
    await row.getByRole("button", { name: "Play" }).click(SHOWN);
    await inDialog(page).getByRole("button", { name: "Reset and play" }).click();
    await expect.poll(() => inDialog(page).locator("code.secret-value").count(), SHOWN).toBe(4);
    await inDialog(page).getByRole("button", { name: "I have it" }).click();
    await page.getByRole("button", { name: /approves the payment/ }).waitFor(SHOWN);
    await page.context().close();
  });

  test("a reset while a payment is under way: the panel is free for the next payment", async () => {
    const body = { filial_id: system.sandbox.filialId, name: "Reset amid it", currency: "EUR" };
    await owner.good("POST", "sandboxes/", { body });
    const page = await open("sandbox/");
    const row = page.getByRole("row", { name: /Reset amid it/ });
    await row.getByRole("button", { name: "Play" }).click(SHOWN);
    await inDialog(page).getByRole("button", { name: "Reset and play" }).click();
    await inDialog(page).getByRole("button", { name: "I have it" }).click(SHOWN);
    await page.getByRole("button", { name: /waits for the guest/ }).click(SHOWN);
    await button(page, "Cancel the collection").waitFor(SHOWN);
    await row.getByRole("button", { name: "Reset" }).click();
    await inDialog(page).getByRole("button", { name: "Reset" }).click();
    await inDialog(page).getByRole("button", { name: "I have it" }).click(SHOWN);
    await page.getByText("Its QR code appears here as the guest sees it.").waitFor(SHOWN);
    await page.getByRole("button", { name: /approves the payment/ }).click(SHOWN);
    await page.getByRole("complementary").getByText("paid").waitFor(SHOWN);
    await page.context().close();
  });
});

describe("the form of a provider", () => {
  test("an error of a setting: its field is marked; a conflict: the notice names what is in the way", async () => {
    const filial = { name: "Two providers" };
    const { filial_id } = await owner.good<{ filial_id: number }>("POST", "filials/", { body: filial });
    const page = await open("providers/");
    await button(page, "Add a provider").click(SHOWN);
    const field = (label: string) => inDialog(page).getByLabel(label, { exact: true });
    await field("Filial").selectOption(filial.name);
    await field("Kind").selectOption("emvco_generic");
    await field("Mode").selectOption("test");
    const typed = {
      Name: "Wallets",
      "Scheme (GUID)": "com.example.qr",
      "Merchant number": "1".repeat(36),
      Country: "1",
      "Merchant name": "Two Providers",
      City: "Berlin",
    };
    for (const [label, value] of Object.entries(typed)) await field(label).fill(value);
    const add = inDialog(page).getByRole("button", { name: "Add a provider", disabled: false });
    await add.click();
    await inDialog(page).getByText("Correct the marked fields.").waitFor(SHOWN);
    for (const [label, isWrong] of [
      ["Country", true],
      ["Merchant number", true],
      ["City", false],
    ] as const)
      expect(await field(label).getAttribute("aria-invalid")).toBe(String(isWrong));
    await field("Merchant number").fill("1234");
    await field("Country").fill("de");
    const other = { filial_id, kind: "sandbox", mode: "test", name: "Sandbox provider", settings: {} };
    await owner.good("POST", "provider-configs/", { body: other });
    await add.click(SHOWN);
    await inDialog(page)
      .getByText("This filial has an active test config already; disable that one first.")
      .waitFor(SHOWN);
    await page.context().close();
  });
});

describe("the code of a device", () => {
  test("a device claims its code: the dialog with the code closes, and a form that was opened meanwhile stays", async () => {
    const body = { station_id: system.sandbox.stations[0]?.stationId, name: "Slow", kind: "customer_display" };
    const { device_id: deviceId } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
    const page = await open(`devices/?device=${deviceId}`);
    await button(page, "Issue a code").click(SHOWN);
    await inDialog(page).getByRole("button", { name: "Issue a code" }).click();
    const code = (await inDialog(page).locator("code.secret-value").textContent(SHOWN)) ?? "";
    await enrollDevice(system.baseUrl, code);
    const held = Promise.withResolvers<void>();
    let asked = 0;
    await page.route("**/enrollment-codes/", async (route) => {
      const answer = await route.fetch();
      asked += 1;
      await held.promise;
      await route.fulfill({ response: answer });
    });
    await expect.poll(() => asked, SHOWN).toBeGreaterThan(0);
    await inDialog(page).getByRole("button", { name: "I have it" }).click(SHOWN);
    await button(page, "Change").click(SHOWN);
    await inDialog(page).getByLabel("Name").fill("Terrace");
    held.resolve();
    await page.getByText("The device has claimed its code.").first().waitFor(SHOWN);
    expect(await inDialog(page).getByLabel("Name").inputValue({ timeout: 2_000 })).toBe("Terrace");
    await page.context().close();
  });

  test("another owner issues another code: the dialog no longer shows the first one, and says so", async () => {
    const body = { station_id: system.sandbox.stations[0]?.stationId, name: "Twice", kind: "customer_display" };
    const { device_id: deviceId } = await owner.good<{ device_id: number }>("POST", "devices/", { body });
    const page = await open(`devices/?device=${deviceId}`);
    await button(page, "Issue a code").click(SHOWN);
    await inDialog(page).getByRole("button", { name: "Issue a code" }).click();
    await inDialog(page).locator("code.secret-value").waitFor(SHOWN);
    await owner.good("POST", `devices/${deviceId}/enrollment-codes/`);
    await inDialog(page).getByText("The code is no longer valid. Issue another one.").waitFor(SHOWN);
    expect(await inDialog(page).locator("code.secret-value").count()).toBe(0);
    await page.context().close();
  });
});

describe("a German page", () => {
  test("a price: the form shows it with a comma, and accepts a comma and a point", async () => {
    const path = await addItem("Limonade");
    const page = await open("catalogue/", { locale: "de-DE" });
    let shown = "9,80";
    for (const [typed, stored, next] of [
      ["10,20", "10.20", "10,20"],
      ["10.4", "10.40", "10,40"],
    ] as const) {
      await page
        .getByRole("row", { name: /Limonade/ })
        .getByRole("button", { name: "Ändern" })
        .click(SHOWN);
      const price = inDialog(page).getByLabel("Preis");
      expect(await price.inputValue()).toBe(shown);
      await price.fill(typed);
      await inDialog(page).getByRole("button", { name: "Ändern" }).click();
      await inDialog(page).waitFor({ state: "hidden", ...SHOWN });
      expect(await owner.good("GET", path)).toMatchObject({ unit_amount: stored });
      await page
        .getByRole("row", { name: /Limonade/ })
        .getByText(`${next} €`)
        .waitFor(SHOWN);
      shown = next;
    }
    await page.context().close();
  });

  test("names the error of a field in German, and shows no English sentence of the service", async () => {
    const page = await open("stations/", { locale: "de-DE", viewport: { width: 360, height: 740 } });
    await button(page, "Station anlegen").click(SHOWN);
    await inDialog(page).getByLabel("Name").fill("Theke");
    await inDialog(page).getByLabel("Währung").fill("XQX");
    await inDialog(page).getByRole("button", { name: "Station anlegen" }).click();
    await inDialog(page).getByText("Diese Währung gibt es nicht. Nehmen Sie ein Kürzel wie EUR.").waitFor(SHOWN);
    expect(await inDialog(page).getByLabel("Währung").getAttribute("aria-invalid")).toBe("true");
    await expect.poll(() => page.locator(":focus").getAttribute("aria-invalid"), SHOWN).toBe("true");
    expect(await inDialog(page).textContent()).not.toMatch(/currency|active ISO/i);
    await expectAccessible(page);
    await page.context().close();
  });

  test("on a phone, a long status stays inside its row", async () => {
    const page = await open("devices/", { locale: "de-DE", viewport: { width: 360, height: 740 } });
    await page.locator(".tag", { hasText: "wartet auf seinen Code" }).first().waitFor(SHOWN);
    const outside = `[...document.querySelectorAll(".cell")].filter((cell) =>
      [...cell.querySelectorAll(".tag")].some(
        (tag) => tag.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1)).length`;
    expect(await page.evaluate(outside)).toBe(0);
    await page.context().close();
  });

  test("explains a payment in German, with the service's own words as a detail", async () => {
    const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
    const station = `stations/${system.sandbox.stations[0]?.stationId}`;
    await cashier.good("POST", `${station}/lease/`);
    const order_id = await newOrder(cashier, station, "4.00", "Suppe");
    const { intent_id } = await cashier.good<{ intent_id: number }>("POST", `${station}/intents/`, {
      body: { order_id, route: "cash" },
    });
    await cashier.good("POST", `${station}/intents/${intent_id}/attest/`);
    const page = await open(`payments/?payment=${intent_id}`, {
      locale: "de-DE",
      viewport: { width: 360, height: 740 },
    });
    await page.getByText("Die Bestellung ist bezahlt.").waitFor(SHOWN);
    expect(await page.locator(".content").innerText()).not.toMatch(/settled|order|payment/i);
    await expectAccessible(page);
    await page.getByText("Einzelheiten", { exact: true }).last().click();
    await page
      .getByText(/was settled with/)
      .last()
      .waitFor(SHOWN);
    await page.context().close();
  });
});

describe("an address without a section", () => {
  test("an address that does not exist: a heading says so, and the page is accessible", async () => {
    const page = await open("nothing/");
    await page.getByRole("heading", { level: 1, name: "There is no such section" }).waitFor(SHOWN);
    await expectAccessible(page, "back-not-found");
    await page.context().close();
  });
});
