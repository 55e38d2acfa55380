/** The till in a real browser: answers that arrive late or out of order. */
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { addDevice, type TestDevice } from "../support/devices.ts";
import { logIn, newOrder, oneLine, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { drawn, expectAccessible, startBrowser } from "./chromium.ts";
import { addLine, button, click, isShown, SHOWN, signIn } from "./till-steps.ts";

/** `INTENT_LIFETIME_BOUNDS_MS` of `machines/settings.ts`. */
const SHORTEST_LIFETIME_S = 30;

let system: TestSystem;
let browser: Browser;
let owner: Person;
let cashier: Person;
let context: BrowserContext;
let page: Page;
let stationId: number;
beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem(), startBrowser()]);
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  context = await browser.newContext({ locale: "en-GB", reducedMotion: "reduce" });
  page = await context.newPage();
  await page.goto(`${system.baseUrl}/till/`);
  await signIn(page, system.cashier);
  await page.locator(".station-list").waitFor(SHOWN);
});
afterAll(async () => {
  await browser.close();
  await system.stop();
});
beforeEach(async () => {
  await page.unrouteAll({ behavior: "ignoreErrors" });
  stationId = await newStation();
  await page.goto(`${system.baseUrl}/till/?station=${stationId}`);
  await button(page, "Leave the station").waitFor(SHOWN);
});

/** A new station that this cashier drives. */
async function newStation(): Promise<number> {
  const name = `Station ${Math.round(performance.now())}`;
  const body = { filial_id: system.sandbox.filialId, name, currency: "EUR" };
  const { station_id } = await owner.good<{ station_id: number }>("POST", "stations/", { body });
  await cashier.good("POST", `stations/${station_id}/lease/`);
  return station_id;
}

/** The open order of the page. */
async function openOrderId(): Promise<number> {
  const path = `stations/${stationId}/orders/?status=open`;
  const { orders } = await cashier.good<{ orders: { order_id: number }[] }>("GET", path);
  return orders[0]?.order_id ?? 0;
}
/** What another tab does: it replaces the lines of the order. */
const changeLines = (orderId: number, unit_amount: string) => {
  return cashier.good("PUT", `orders/${orderId}/lines/`, { body: oneLine(unit_amount) });
};

/** Holds the answer to each request at this address until the test releases it. The service gets each request at once. */
async function hold(address: RegExp): Promise<(() => void)[]> {
  const releases: (() => void)[] = [];
  await page.route(address, async (route) => {
    const answer = await route.fetch();
    const held = Promise.withResolvers<void>();
    releases.push(held.resolve);
    await held.promise;
    await route.fulfill({ response: answer });
  });
  return releases;
}
const held = (releases: readonly unknown[], count: number) => expect.poll(() => releases.length, SHOWN).toBe(count);
async function release(releases: readonly (() => void)[], index: number, address: RegExp): Promise<void> {
  const answered = page.waitForResponse(address);
  releases[index]?.();
  await (await answered).finished();
  await drawn(page);
}

test("another tab changes the order while this one waits for its lines: the page shows the newer order", async () => {
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  const orderId = await openOrderId();
  const lines = /\/orders\/\d+\/lines\/$/;
  const releases = await hold(lines);
  await addLine(page, "Tea", "2.00");
  await held(releases, 1);
  await changeLines(orderId, "20.00");
  // The live view reports the change before the answer arrives.
  await page.waitForTimeout(1_000);
  await release(releases, 0, lines);
  await isShown(page, "Choose how the guest pays.");
  await expect.poll(() => page.locator(".total strong").textContent(), SHOWN).toBe("€20.00");
  expect(await page.locator(".line-name").allTextContents()).toEqual(["Soup"]);
});

test("two answers about one order arrive in the wrong order: the page keeps the newer one", async () => {
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  const orderId = await openOrderId();
  const address = /\/orders\/\d+\/$/;
  const releases = await hold(address);
  await changeLines(orderId, "20.00");
  await held(releases, 1);
  await changeLines(orderId, "30.00");
  await held(releases, 2);
  await release(releases, 1, address);
  await isShown(page, "€30.00");
  await release(releases, 0, address);
  expect(await page.locator(".total strong").textContent()).toBe("€30.00");
});

test("lines are added while the page reads its order again: the older answer removes none of them", async () => {
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  const [orderPath, linesPath] = [/\/orders\/\d+\/$/, /\/lines\/$/];
  const [reads, writes] = [await hold(orderPath), await hold(linesPath)];
  // The live view names another till's order now.
  await newOrder(cashier, `stations/${stationId}`, "4.00", "Juice");
  await held(reads, 1);
  await addLine(page, "Tea", "2.00");
  await held(writes, 1);
  await release(reads, 0, orderPath);
  await addLine(page, "Cake", "3.00");
  await release(writes, 0, linesPath);
  await held(writes, 2);
  await release(writes, 1, linesPath);
  await isShown(page, "Choose how the guest pays.");
  expect(await lineNames()).toEqual(["Soup", "Tea", "Cake"]);
  expect(await page.locator(".total strong").textContent()).toBe("€17.50");
});

const voidElsewhere = (orderId: number) => cashier.good("POST", `orders/${orderId}/void/`);
const lineNames = () => page.locator(".line-name").allTextContents();

test("another till voids the order: this one shows it, and goes on with the next order", async () => {
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  await voidElsewhere(await openOrderId());
  await isShown(page, "The order was voided.");
  expect(await lineNames()).toEqual(["Soup"]);
  expect(await button(page, "Cash").getAttribute("aria-disabled")).toBe("true");
  await expectAccessible(page);
  await click(page, "Next order");
  await page.getByRole("heading", { name: "New order" }).waitFor(SHOWN);
});

test("an order that the live view does not name is voided: a refused collection and a refused line show it", async () => {
  /** The order of the page. Another till has opened an order after it. */
  const waitingOrder = async (): Promise<number> => {
    await addLine(page);
    await isShown(page, "Choose how the guest pays.");
    const orderId = await openOrderId();
    const readAgain = page.waitForResponse(new RegExp(`/orders/${orderId}/$`), SHOWN);
    await newOrder(cashier, `stations/${stationId}`, "4.00", "Juice");
    await (await readAgain).finished();
    await drawn(page);
    return orderId;
  };
  await voidElsewhere(await waitingOrder());
  await click(page, "Cash");
  await isShown(page, "The order was voided.");
  // There is no collection to cancel.
  expect(await page.getByText("Cancel the collection").count()).toBe(0);
  await click(page, "Next order");
  await voidElsewhere(await waitingOrder());
  await addLine(page, "Tea", "2.00");
  await isShown(page, "This cannot be done in the present state.");
  await isShown(page, "The order was voided.");
  expect(await button(page, "Next order").getAttribute("aria-disabled")).toBe("true");
  await click(page, "Cancel");
  await expect.poll(lineNames, SHOWN).toEqual(["Soup"]);
  await click(page, "Next order");
  await page.getByRole("heading", { name: "New order" }).waitFor(SHOWN);
});

test("a question about a reference is not asked about another reference that was typed meanwhile", async () => {
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  await click(page, "Card terminal");
  await page.getByLabel("Reference").fill("SLIP-1", SHOWN);
  await click(page, "Settle €12.50");
  await click(page, "Next order");
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  await click(page, "Card terminal");
  const attest = /\/attest\/$/;
  const releases = await hold(attest);
  const confirmed: string[] = [];
  page.on("request", (request) => {
    const body = request.postData() ?? "";
    if (body.includes("confirms_reference_already_used")) confirmed.push(body);
  });
  await page.getByLabel("Reference").fill("SLIP-1", SHOWN);
  await click(page, "Settle €12.50");
  await held(releases, 1);
  // The cashier sees the wrong reference and corrects it before the answer arrives.
  await page.getByLabel("Reference").fill("SLIP-2");
  await release(releases, 0, attest);
  expect(await page.getByRole("dialog").count()).toBe(0);
  await click(page, "Settle €12.50");
  await held(releases, 2);
  releases[1]?.();
  await button(page, "Next order").waitFor(SHOWN);
  expect(confirmed).toEqual([]);
});

describe("a companion that reports late", () => {
  interface Started {
    readonly intent_id: number;
    readonly order_id: number;
  }
  let device: TestDevice;
  beforeEach(async () => {
    const body = { station_id: stationId, name: "Companion", kind: "smart_pos_companion" };
    device = await addDevice(system.baseUrl, owner, body);
    await device.good("POST", "heartbeat/", { body: { summary: {} } });
  });
  const collect = (body: object) => cashier.good<Started>("POST", `stations/${stationId}/intents/`, { body });
  /** Returns a hand-off that the companion fetched and did not report, and that was cancelled. */
  async function silentHandoff(order_id: number): Promise<Started> {
    await expect.poll(async () => (await smartPos())?.offered, SHOWN).toBe(true);
    const begun = await collect({ order_id, route: "smart_pos" });
    expect(await device.good("GET", "assignment/")).toMatchObject({ assignment: { intent_id: begun.intent_id } });
    await cashier.good("POST", `stations/${stationId}/intents/${begun.intent_id}/cancel/`);
    return begun;
  }
  async function smartPos(): Promise<{ readonly offered: boolean } | undefined> {
    const path = `stations/${stationId}/routes/`;
    const { routes } = await cashier.good<{ routes: { route: string; offered: boolean }[] }>("GET", path);
    return routes.find(({ route }) => route === "smart_pos");
  }
  const report = ({ intent_id }: Started, outcome: string, provider_reference = "RRN-1") => {
    const client_idempotency_key = `${outcome} ${provider_reference}`;
    const body = { intent_id, outcome, provider_reference, client_idempotency_key };
    return device.refused("intent_not_actionable", "POST", "assignment/report/", { body });
  };
  const neededNumber = async (path: string): Promise<number> => {
    const intent = await cashier.good<{ confirmation_needed: { reason_number: number } | null }>("GET", path);
    return intent.confirmation_needed?.reason_number ?? 0;
  };
  const attest = ({ intent_id }: Started, reference: string) =>
    cashier.good("POST", `stations/${stationId}/intents/${intent_id}/attest/`, { body: { reference } });
  const dialog = () => page.getByRole("dialog");

  test("a question whether to collect again ends when another reason comes; what this holds back is begun again", async () => {
    await addLine(page);
    await isShown(page, "Choose how the guest pays.");
    const earlier = await silentHandoff(await openOrderId());
    await click(page, "Back to the order");
    await click(page, "Cash");
    await dialog().getByText("The device had it and reported nothing.").waitFor(SHOWN);
    await report(earlier, "reported_unknown");
    await dialog().waitFor({ state: "hidden", ...SHOWN });
    await isShown(page, "An earlier collection of this order may have moved money.");
    await click(page, "Smart POS");
    await dialog().getByText("Afterwards the device reported that it does not know the outcome.").waitFor(SHOWN);
    await click(page, "The guest has not paid: collect");
    await isShown(page, "Waiting for the device to fetch it");
    await report(earlier, "reported_success");
    await isShown(page, "It does not go on by itself: cancel, and begin it again");
    await isShown(page, "Afterwards the device reported an approval.");
    expect(await button(page, "Settle €12.50").getAttribute("aria-disabled")).toBe("true");
  });

  test("another payment of the same collection is reported while the till asks: it asks about this one", async () => {
    await addLine(page);
    await isShown(page, "Choose how the guest pays.");
    const earlier = await silentHandoff(await openOrderId());
    await report(earlier, "reported_success");
    await click(page, "Back to the order");
    await click(page, "Cash");
    await dialog().getByText("Afterwards the device reported an approval.").waitFor(SHOWN);
    await report(earlier, "reported_success", "RRN-2");
    const answered = page.waitForResponse(/\/intents\/$/);
    await click(page, "The guest has not paid: collect");
    expect((await answered).status()).toBe(409);
    await dialog().getByText("Something was reported after you were asked.").waitFor(SHOWN);
    await click(page, "The guest has not paid: collect");
    await button(page, "€12.50 received").waitFor(SHOWN);
    const { order_display_number: number } = await cashier.good<{ order_display_number: number }>(
      "GET",
      `orders/${earlier.order_id}/`,
    );
    await page.getByText("Collections that may have taken money").click(SHOWN);
    await page
      .getByText(new RegExp(`Order ${number}, Collection .+: Afterwards the device reported an approval.`))
      .waitFor(SHOWN);
    await isShown(page, "Before you pay back, ask the person who checks the payments");
  });

  test("another payment is reported while the page shows the first one: settling asks about it", async () => {
    const station = `stations/${stationId}`;
    const order_id = await newOrder(cashier, station, "12.50");
    const earlier = await silentHandoff(order_id);
    const { intent_id } = await collect({ order_id, route: "cash", confirms_money_may_have_moved: true });
    const path = `${station}/intents/${intent_id}/`;
    await report(earlier, "reported_success");
    await isShown(page, "Afterwards the device reported an approval.");
    const shown = await neededNumber(path);
    await report(earlier, "reported_success", "RRN-2");
    await expect.poll(() => neededNumber(path), SHOWN).toBeGreaterThan(shown);
    await click(page, "I have checked it: settle");
    await dialog().getByText("Something was reported after you were asked.").waitFor(SHOWN);
    expect(await cashier.good("GET", path)).toMatchObject({ status: "created" });
    await dialog().getByRole("button", { name: "I have checked it: settle" }).click(SHOWN);
    await button(page, "Next order").waitFor(SHOWN);
  });

  test("a payment is reported while the till asks about the reference: its confirmation is asked for again", async () => {
    const station = `stations/${stationId}`;
    const intents = `${station}/intents/`;
    const order = await newOrder(cashier, station, "3.00");
    await attest(await collect({ order_id: order, route: "attested_terminal" }), "SLIP-9");
    const order_id = await newOrder(cashier, station, "12.50");
    const earlier = await silentHandoff(order_id);
    const confirmed = { order_id, route: "attested_terminal", confirms_money_may_have_moved: true };
    const { intent_id } = await collect(confirmed);
    await report(earlier, "reported_unknown");
    await page.getByLabel("Reference").fill("SLIP-9", SHOWN);
    await click(page, "I have checked it: settle");
    await dialog().getByText("It has settled order").waitFor(SHOWN);
    await report(earlier, "reported_success");
    await isShown(page, "Afterwards the device reported an approval.");
    await click(page, "One payment covers both: settle");
    await dialog().getByText("Afterwards the device reported an approval.").waitFor(SHOWN);
    expect(await cashier.good("GET", `${intents}${intent_id}/`)).toMatchObject({ status: "created" });
    const sent = page.waitForRequest(/\/attest\/$/);
    await dialog().getByRole("button", { name: "I have checked it: settle" }).click(SHOWN);
    // The service asks again about any payment that is reported before this request arrives.
    const needed = { confirms_money_may_have_moved: true, confirmed_reason_number: expect.any(Number) as number };
    expect((await sent).postDataJSON()).toMatchObject(needed);
    await button(page, "Next order").waitFor(SHOWN);
  });

  test("another reference is reported: the question about the first one and its confirmation do not count for it", async () => {
    const station = `stations/${stationId}`;
    for (const [reference, total] of Object.entries({ "RRN-31": "3.00", "RRN-32": "4.00" })) {
      const order_id = await newOrder(cashier, station, total);
      await attest(await collect({ order_id, route: "attested_terminal" }), reference);
    }
    await expect.poll(async () => (await smartPos())?.offered, SHOWN).toBe(true);
    const { intent_id } = await collect({ order_id: await newOrder(cashier, station, "12.50"), route: "smart_pos" });
    expect(await device.good("GET", "assignment/")).toMatchObject({ assignment: { intent_id } });
    const accept = (provider_reference: string, client_idempotency_key: string) => {
      const body = { intent_id, outcome: "reported_success", provider_reference, client_idempotency_key };
      return device.good("POST", "assignment/report/", { body });
    };
    await accept("RRN-31", "first");
    await click(page, "Settle €12.50");
    await dialog().getByText("€3.00").waitFor(SHOWN);
    const busy = { code: "busy", detail: "", request_id: "r" };
    await page.route(/\/attest\/$/, (route) => route.fulfill({ status: 503, json: busy }), { times: 1 });
    const sent = page.waitForRequest(/\/attest\/$/);
    await click(page, "One payment covers both: settle");
    // The service compares the reference of any report that comes before this request arrives.
    expect((await sent).postDataJSON()).toMatchObject({ confirmed_report_count: 1 });
    await isShown(page, "The service has too much to do at the moment.");
    await accept("RRN-32", "second");
    await isShown(page, "RRN-32");
    await click(page, "Settle €12.50");
    await dialog().getByText("€4.00").waitFor(SHOWN);
    await accept("RRN-31", "third");
    await dialog().waitFor({ state: "hidden", ...SHOWN });
    expect(await cashier.good("GET", `${station}/intents/${intent_id}/`)).toMatchObject({ status: "processing" });
    // The cashier has confirmed this reference already.
    await click(page, "Settle €12.50");
    await button(page, "Next order").waitFor(SHOWN);
  });
});

test("the registry does not answer while the page loads: the collection under way is settled", async () => {
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  await click(page, "Cash");
  await button(page, "€12.50 received").waitFor(SHOWN);
  await page.route(/\/stations\/(\?|\d+\/catalogue-items)/, (route) =>
    route.fulfill({ status: 503, json: { code: "unavailable", detail: "", request_id: "r" } }),
  );
  await page.reload();
  await click(page, "€12.50 received");
  await button(page, "Next order").waitFor(SHOWN);
});

test("a page that gets no live view: it shows that, and no placeholder without an end", async () => {
  const other = await context.newPage();
  await other.routeWebSocket(/\/live\/$/, (socket) => socket.close());
  await other.goto(`${system.baseUrl}/till/?station=${stationId}`);
  await isShown(other, "Live updates are interrupted");
  await other.close();
});

test("the station no longer knows why money may have moved: the question shows that", async () => {
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  const refusal = { code: "money_may_have_moved", detail: "", request_id: "r" };
  await page.route(/\/intents\/$/, (route) => route.fulfill({ status: 409, json: refusal }), { times: 1 });
  await click(page, "Cash");
  await page.getByRole("dialog").getByText("The reason is no longer known.").waitFor(SHOWN);
});

test("the answer about a new order is lost, and the service is then busy: a retry opens no second order", async () => {
  const codes = ["unavailable", "busy"];
  await page.route(/\/stations\/\d+\/orders\/$/, async (route) => {
    const code = codes.shift();
    if (code === undefined) return await route.continue();
    // The service has opened the order, but its answer is lost.
    if (code === "unavailable") await route.fetch();
    return await route.fulfill({ status: 503, json: { code, detail: "", request_id: "r" } });
  });
  await addLine(page);
  await isShown(page, "A part of the service does not answer.");
  await click(page, "Try again");
  await isShown(page, "The service has too much to do at the moment.");
  await click(page, "Try again");
  await isShown(page, "Choose how the guest pays.");
  const { orders } = await cashier.good<{ orders: unknown[] }>("GET", `stations/${stationId}/orders/`);
  expect(orders).toHaveLength(1);
});

test("another tab begins to collect while lines are on their way, and they are refused: the till keeps them", async () => {
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  const station = `stations/${stationId}`;
  const linesPath = /\/lines\/$/;
  const isRefused = Promise.withResolvers<void>();
  await page.route(linesPath, async (route) => {
    await isRefused.promise;
    await route.fulfill({ status: 503, json: { code: "busy", detail: "", request_id: "r" } });
  });
  const sent = page.waitForRequest(linesPath);
  await addLine(page, "Tea", "2.00");
  await sent;
  const order_id = await newOrder(cashier, station, "4.00", "Juice");
  const loaded = page.waitForResponse(new RegExp(`/orders/${order_id}/$`));
  await cashier.good("POST", `${station}/intents/`, { body: { order_id, route: "cash" } });
  await (await loaded).finished();
  await drawn(page);
  isRefused.resolve();
  await isShown(page, "The service has too much to do at the moment.");
  const names = () => page.locator(".line-name").allTextContents();
  expect(await names()).toEqual(["Soup", "Tea"]);
  await page.unroute(linesPath);
  await click(page, "Try again");
  await expect.poll(names, SHOWN).toEqual(["Juice"]);
  const { orders } = await cashier.good<{ orders: unknown[] }>("GET", `${station}/orders/?status=open`);
  expect(orders.map((one) => (one as { total: string }).total).toSorted()).toEqual(["14.50", "4.00"]);
});

const again = () => page.getByRole("dialog", { name: "Your session has ended" });
const interrupted = () => page.getByText("Live updates are interrupted").first();

test("an answer from before the end of the session does not leave the page without its live view", async () => {
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  const address = /\/orders\/\d+\/$/;
  const releases = await hold(address);
  await changeLines(await openOrderId(), "20.00");
  await held(releases, 1);
  const { origin } = new URL(system.baseUrl);
  await context.request.delete(`${system.baseUrl}/api/cashier/v1/session/`, { headers: { origin } });
  await again().waitFor(SHOWN);
  await release(releases, 0, address);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await again().waitFor(SHOWN);
  await signIn(page, system.cashier, again());
  await interrupted().waitFor({ state: "hidden", ...SHOWN });
  expect(await again().count()).toBe(0);
});

test("a session that ends while the page has no connection: the page asks to sign in, and connects again", async () => {
  await page.waitForLoadState("networkidle");
  // Like a laptop that sleeps: its cookie expires, and the page does not learn of it.
  await context.clearCookies();
  await system.processes.gateway.kill9();
  await interrupted().waitFor(SHOWN);
  await system.processes.gateway.restart();
  await again().waitFor(SHOWN);
  await signIn(page, system.cashier, again());
  await interrupted().waitFor({ state: "hidden", ...SHOWN });
  expect(await again().count()).toBe(0);
});

test("a question whether to take over the station: it is about the cashier whom it names, not about the next one", async () => {
  const kim = await addCashier("Kim");
  const lou = await addCashier("Lou");
  const lease = `stations/${stationId}/lease/`;
  await cashier.good("DELETE", lease);
  await kim.good("POST", lease);
  await click(page, "Take over");
  const question = page.getByRole("dialog");
  await question.getByText("Kim").waitFor(SHOWN);
  await kim.good("DELETE", lease);
  await question.waitFor({ state: "hidden", ...SHOWN });
  await lou.good("POST", lease);
  await isShown(page, "Lou");
  await drawn(page);
  expect(await question.count()).toBe(0);
  // By keyboard, because the page ignores a tap where a button has just appeared.
  await button(page, "Take over").press("Enter");
  await question.getByText("Lou").waitFor(SHOWN);
  await question.getByRole("button", { name: "Take over" }).click(SHOWN);
  await button(page, "Leave the station").waitFor(SHOWN);
});

async function addCashier(name: string): Promise<Person> {
  const details = { email: `${name}-${stationId}@example.com`, password: "another cashier's pass phrase" };
  await owner.good("POST", "users/", { body: { ...details, name, role: "cashier" } });
  return await logIn(system.baseUrl, "cashier", details);
}

test("a collection that expires without a decision: the till shows it, and the order is collected in another way", async () => {
  // Without a renewal, the lease would end as soon as the collection.
  const lease = { lifetime_seconds: SHORTEST_LIFETIME_S };
  await cashier.good("POST", `stations/${stationId}/lease/`, { body: lease });
  await addLine(page);
  await isShown(page, "Choose how the guest pays.");
  const body = { order_id: await openOrderId(), route: "attested_terminal", lifetime_seconds: SHORTEST_LIFETIME_S };
  await cashier.good("POST", `stations/${stationId}/intents/`, { body });
  await button(page, "Settle €12.50").waitFor(SHOWN);
  await page
    .getByRole("heading", { name: /^Time over/ })
    .waitFor({ timeout: SHOWN.timeout + SHORTEST_LIFETIME_S * 1_000 });
  await isShown(page, "The order is still open.");
  await expectAccessible(page, "till-expired");
  await click(page, "Back to the order");
  await click(page, "Cash");
  await click(page, "€12.50 received");
  await button(page, "Next order").waitFor(SHOWN);
});
