/** Two people use the reconciliation at once, a person clicks twice, or the network fails in the middle of a decision. */

import type { Browser, Page, Route } from "playwright-core";
import postgres from "postgres";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { send } from "../support/http.ts";
import { addOperator, logIn, newOrder, OPERATOR_PASSWORD, type Person } from "../support/people.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { drawn, expectNoSideways, startBrowser } from "./chromium.ts";

const SOON = { timeout: 30_000 };
/** How often the page loads the shown issue again (`REFRESH_MS` of `issue-list.ts`). */
const REFRESH_MS = 15_000;
const XSS = `<img src=x onerror="document.title='owned'">`;
const DAY = new Date(Date.now() - 2 * 86_400_000).toISOString().slice(0, 10);

let system: TestSystem;
let browser: Browser;
let page: Page;
let rita: Person;
let sam: Person;
let cashier: Person;
let sql: postgres.Sql;
let accountId: number;
let lines = 0;

beforeAll(async () => {
  [system, browser] = await Promise.all([sharedSystem(), startBrowser()]);
  sql = postgres(system.database.url, { max: 1, onnotice: () => undefined });
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  cashier = await logIn(system.baseUrl, "cashier", system.cashier);
  rita = await addOperator(system.baseUrl, owner);
  sam = await addOperator(system.baseUrl, owner, "sam@sandbox.example", "Sam");
  const facts = { provider: "sandbox", reference: "acct-1", name: "Bar", mode: "test", currency: "EUR" };
  const body = { ...facts, filial_id: system.sandbox.filialId, settlement_delay_days: 0 };
  ({ account_id: accountId } = await rita.good<{ account_id: number }>("POST", "accounts/", { body }));
  await cashier.good("POST", `${station()}/lease/`);
  page = await (await browser.newContext({ locale: "en-GB", viewport: { width: 1280, height: 800 } })).newPage();
  await page.goto(`${system.baseUrl}/reconcile/`);
  await signIn();
});
afterAll(async () => {
  await browser.close();
  await sql.end();
  await system.stop();
});
beforeEach(async () => {
  await page.unrouteAll();
});

const station = (): string => `stations/${system.sandbox.stations[0]?.stationId}`;
async function signIn(): Promise<void> {
  await page.getByLabel("E-mail address").fill("rita@sandbox.example", SOON);
  await page.getByLabel("Password").fill(OPERATOR_PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
}

interface Issue {
  readonly issue_id: number;
  readonly status: string;
  readonly amount: string;
  readonly evidence_hash: string;
  readonly proposal: { readonly proposal_id: number; readonly order_id: number } | null;
}
const list = async (filter: string): Promise<readonly Issue[]> =>
  (await rita.good<{ issues: Issue[] }>("GET", `issues/?account=statement:${accountId}&${filter}`)).issues;
const read = async (issueId: number) =>
  await rita.good<{ issue: Issue; steps: { action: string }[] }>("GET", `issues/${issueId}/`);

/** Imports lines without a payment. Each line becomes an issue. Returns the issues, the newest first. */
async function openIssues(...amounts: readonly string[]): Promise<readonly Issue[]> {
  const rows = amounts.map((amount) => {
    lines += 1;
    return `${lines},line-${lines},int-${lines},,${amount},EUR,${DAY}T10:00:00.000Z`;
  });
  const content = ["line,payment_id,reference,account,amount,currency,paid_at", ...rows, ""].join("\n");
  const path = `/api/reconciliation/v1/accounts/${accountId}/imports/?file_name=a.csv&format=sandbox&encoding=utf-8`;
  const headers = { "content-type": "application/octet-stream" };
  await send(system.baseUrl, "POST", path, { token: rita.token, body: content, headers });
  const newest = async () => (await list("decision=pending")).slice(0, amounts.length);
  await expect
    .poll(async () => (await newest()).map(({ amount }) => amount).toSorted(), SOON)
    .toEqual([...amounts].toSorted());
  return await newest();
}

async function show(issueId: number): Promise<void> {
  await page.goto(`${system.baseUrl}/reconcile/?view=all_open&issue=${issueId}`);
  await page.getByRole("heading", { name: "Details" }).waitFor(SOON);
}
const dialog = () => page.getByRole("dialog");
async function askToClose(reason: string): Promise<void> {
  await page.locator("body").press("c");
  await dialog().getByLabel("Reason").fill(reason);
}
const closeButton = () => dialog().getByRole("button", { name: "Close", exact: true });

const openOrder = (amount: string): Promise<number> => newOrder(cashier, station(), amount, "Banquet");

describe("two people at once", () => {
  test("an issue that another person has just closed: the dialog says so, and the page behind it is up to date", async () => {
    const [issue] = await openIssues("5.01");
    const issueId = issue?.issue_id ?? 0;
    await show(issueId);
    await askToClose("Too late");
    await sam.good("POST", `issues/${issueId}/close/`, { body: { reason: "Paid back by Sam" } });
    await closeButton().click();
    await dialog().getByRole("alert").getByText("This issue is closed.").waitFor(SOON);
    await page.locator(".detail").getByText("Paid back by Sam").first().waitFor({ timeout: 5_000 });
    expect((await read(issueId)).steps.map(({ action }) => action)).toEqual(["issue_closed"]);
  });

  test("an issue whose evidence has changed since it was shown: not closed, and its new amount is shown", async () => {
    const [issue] = await openIssues("5.02");
    const issueId = issue?.issue_id ?? 0;
    await show(issueId);
    await askToClose("Five euros");
    await sql`update issues set amount_minor = 50200, evidence_hash = sha256('other') where issue_id = ${issueId}`;
    await closeButton().click();
    await dialog().getByRole("alert").getByText("has changed since").waitFor(SOON);
    await page.locator(".detail-amount", { hasText: "€502.00" }).waitFor({ timeout: 5_000 });
    expect((await read(issueId)).issue.status).toBe("open");
  });

  test("a question about a proposal stays about that proposal: a newer proposal is not confirmed", async () => {
    const [issue] = await openIssues("300.00");
    const issueId = issue?.issue_id ?? 0;
    const [first, second] = [await openOrder("300.00"), await openOrder("300.00")];
    const propose = async (order_id: number): Promise<number> => {
      const body = { order_id, reason: "It is theirs." };
      return (await sam.good<Issue>("POST", `issues/${issueId}/proposal/`, { body })).proposal?.proposal_id ?? 0;
    };
    const numberOf = async (id: number): Promise<string> => {
      const { order_display_number } = await cashier.good<{ order_display_number: number }>("GET", `orders/${id}/`);
      return `Order ${order_display_number} at Sandbox Counter`;
    };
    const [firstName, secondName] = [await numberOf(first), await numberOf(second)];
    const proposalId = await propose(first);
    await page.clock.install();
    await show(issueId);
    await page.getByRole("button", { name: "Confirm and pay the order" }).click();
    await dialog().getByText(firstName).waitFor(SOON);
    await sam.good("POST", `issues/${issueId}/proposal/withdraw/`, { body: { proposal_id: proposalId } });
    await propose(second);
    // The page below the dialog refreshes.
    await page.clock.fastForward(REFRESH_MS);
    await page.locator(".detail").getByText(`proposes to pay with it: ${secondName}`).waitFor(SOON);
    expect(await dialog().getByText(firstName).count()).toBe(1);
    await dialog().getByRole("button", { name: "Confirm and pay the order" }).click();
    await dialog().getByRole("alert").getByText("does not wait any more").waitFor(SOON);
    for (const order of [first, second])
      expect(await cashier.good("GET", `orders/${order}/`)).toMatchObject({ status: "open" });
  });
});

test("a long list: a refresh removes nothing of what a person has loaded", async () => {
  const [issue] = await openIssues("5.09");
  const [newest, oldest] = [10_000, 9_401];
  await page.route(/\/reconciliation\/v1\/issues\/\?/, async (route) => {
    const query = new URL(route.request().url()).searchParams;
    const from = Number(query.get("before_id") ?? newest + 1) - 1;
    const to = Math.max(oldest, from - Number(query.get("limit")) + 1);
    const issues = Array.from({ length: from - to + 1 }, (_unused, nth) => ({ ...issue, issue_id: from - nth }));
    await route.fulfill({ json: { issues, has_more: to > oldest } });
  });
  await page.clock.install();
  await page.goto(`${system.baseUrl}/reconcile/`);
  const rows = page.locator(".issue-row");
  for (let shown = 100; shown < newest - oldest; shown += 100) {
    await expect.poll(() => rows.count(), SOON).toBe(shown);
    await page.getByRole("button", { name: "Show more" }).click();
  }
  await expect.poll(() => rows.count(), SOON).toBe(600);
  const again = page.waitForResponse(/\/issues\/\?.*before_id=9501/, SOON);
  await page.clock.fastForward(REFRESH_MS);
  await (await again).finished();
  await drawn(page);
  expect(await rows.count()).toBe(600);
  expect(await page.getByRole("button", { name: "Show more" }).count()).toBe(0);
});

test("a refused attribution: the dialog names the reason", async () => {
  const [issue] = await openIssues("5.03");
  await show(issue?.issue_id ?? 0);
  const order = await openOrder("5.03");
  await page.locator("body").press("t");
  await dialog().getByLabel("Order").selectOption(String(order), SOON);
  await dialog().getByLabel("Reason").fill("It is theirs.");
  await cashier.good("POST", `orders/${order}/void/`);
  await dialog().getByRole("button", { name: "Attribute" }).click();
  await dialog().getByRole("alert").getByText("This order is voided.").waitFor(SOON);
  // The page reads the list again, and the order is no longer in it.
  await dialog().getByText("No open order has this amount").waitFor(SOON);
  await page.keyboard.press("Escape");
});

test("two clicks: one request, and one closing", async () => {
  const [issue] = await openIssues("5.04");
  const issueId = issue?.issue_id ?? 0;
  await show(issueId);
  let requests = 0;
  await page.route("**/close/", async (route) => {
    requests += 1;
    await route.continue();
  });
  await askToClose("Paid back");
  await closeButton().dblclick();
  await dialog().waitFor({ state: "hidden", ...SOON });
  expect(requests).toBe(1);
  expect((await read(issueId)).steps.map(({ action }) => action)).toEqual(["issue_closed"]);
});

test("the network fails in the middle of a bulk closing: each issue is closed once, and the rest at the next click", async () => {
  const opened = await openIssues("6.01", "6.02", "6.03");
  await page.goto(`${system.baseUrl}/reconcile/?view=all_open`);
  await page.locator(".issue-row").first().waitFor(SOON);
  const later = await openIssues("6.04");
  await page.reload();
  await page.getByRole("button", { name: /^Close all \d+/ }).click(SOON);
  await dialog().getByLabel("Reason").fill("Paid back");
  // The service performs the request, but its answer is lost.
  const lose = async (route: Route): Promise<void> => {
    await route.fetch();
    await route.abort();
  };
  await page.route("**/issues/close/", lose, { times: 1 });
  await dialog()
    .getByRole("button", { name: /^Close \d+ issues?/ })
    .click();
  await dialog().getByRole("alert").waitFor(SOON);
  await expect.poll(async () => (await list("decision=pending")).length, SOON).toBe(0);
  const again = dialog().getByRole("button", { name: /^Close \d+ issues?/ });
  await expect.poll(() => again.getAttribute("aria-disabled"), SOON).toBe("false");
  await again.click();
  await dialog().waitFor({ state: "hidden", ...SOON });
  for (const { issue_id: issueId } of [...opened, ...later])
    expect((await read(issueId)).steps.filter(({ action }) => action === "issue_closed")).toHaveLength(1);
});

describe("undoing a bulk closing", () => {
  /** Closes all listed issues. Returns how many they were. */
  async function closeAll(): Promise<number> {
    await page.goto(`${system.baseUrl}/reconcile/?view=all_open`);
    await page.locator(".issue-row").first().waitFor(SOON);
    const count = await page.locator(".issue-row").count();
    await page.getByRole("button", { name: /^Close all \d+/ }).click();
    await dialog().getByLabel("Reason").fill("A mistake");
    await dialog()
      .getByRole("button", { name: /^Close \d+ issues?/ })
      .click();
    return count;
  }
  const message = (text: string | RegExp) => page.locator(".toast", { hasText: text });
  const undoButton = () => page.locator(".toast").getByRole("button", { name: "Undo" });
  const pending = async (): Promise<number> => (await list("decision=pending")).length;
  const stepsOf = async ({ issue_id: issueId }: Issue) =>
    (await read(issueId)).steps.map(({ action }) => action.replace("issue_", ""));

  test("one click reopens all that it has closed, and the message counts what another person has decided since", async () => {
    const [first, ...others] = await openIssues("7.01", "7.02", "7.03");
    const count = await closeAll();
    await message(`${count} closed.`).waitFor(SOON);
    expect(await pending()).toBe(0);
    const path = `issues/${first?.issue_id}`;
    await rita.good("POST", `${path}/undo/`);
    await sam.good("POST", `${path}/close/`, { body: { reason: "Paid back by Sam" } });
    await undoButton().click();
    await message(`${count - 1} reopened, 1 not: decided by another person`).waitFor(SOON);
    await expect.poll(() => page.locator(".issue-row").count(), SOON).toBe(count - 1);
    for (const issue of others) expect(await stepsOf(issue)).toEqual(["closed", "closing_undone"]);
    expect((await read(first?.issue_id ?? 0)).issue.status).toBe("closed");
  });

  test("by keyboard: u reopens all", async () => {
    await openIssues("7.04");
    const count = await closeAll();
    await message(`${count} closed.`).waitFor(SOON);
    await page.locator("body").press("u");
    await message(`${count} reopened.`).waitFor(SOON);
    expect(await pending()).toBe(count);
  });

  test("an answer that is lost: the message offers the undo again, and each issue is reopened once", async () => {
    const [issue] = await openIssues("7.05");
    const count = await closeAll();
    await page.route(
      "**/issues/undo/",
      async (route) => {
        await route.fetch();
        await route.abort();
      },
      { times: 1 },
    );
    await undoButton().click(SOON);
    await message(`The service cannot be reached. 0 of ${count} are reopened.`).waitFor(SOON);
    await undoButton().click();
    await message(`${count} reopened.`).waitFor(SOON);
    expect(await stepsOf(issue as Issue)).toEqual(["closed", "closing_undone"]);
  });

  test("an undo that needs several requests: the message counts the issues", async () => {
    await openIssues("7.06", "7.07");
    const count = await closeAll();
    const held = Promise.withResolvers<void>();
    const sizes: number[] = [];
    await page.route("**/issues/undo/", async (route) => {
      const { issue_ids: ids } = route.request().postDataJSON() as { issue_ids: number[] };
      sizes.push(ids.length);
      if (sizes.length > 1) {
        await held.promise;
        return await route.continue();
      }
      // The first request had time for one issue.
      const answer = await route.fetch({ postData: { issue_ids: ids.slice(0, 1) } });
      await route.fulfill({ response: answer, json: { ...(await answer.json()), remaining_ids: ids.slice(1) } });
    });
    await undoButton().click(SOON);
    await message(`1 of ${count} reopened …`).waitFor(SOON);
    held.resolve();
    await message(`${count} reopened.`).waitFor(SOON);
    expect(sizes).toEqual([count, count - 1]);
    expect(await pending()).toBe(count);
  });

  test("a bulk closing that fails halfway and is cancelled: the message counts what is closed, and undoes it", async () => {
    await openIssues("7.08");
    let requests = 0;
    await page.route("**/issues/close/", async (route) => {
      requests += 1;
      if (requests > 1) return await route.abort();
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), has_more: true } });
    });
    const count = await closeAll();
    await dialog().getByRole("alert").waitFor(SOON);
    await page.keyboard.press("Escape");
    await message(`${count} closed.`).waitFor(SOON);
    await undoButton().click();
    await message(`${count} reopened.`).waitFor(SOON);
    expect(await pending()).toBe(count);
  });
});

test("an assignment to oneself is undone by keyboard, also after the list was read again and another issue chosen", async () => {
  const [issue, other] = await openIssues("7.09", "7.10");
  const issueId = issue?.issue_id ?? 0;
  await rita.good("POST", `issues/${issueId}/assign/`, { body: { assignee_id: sam.userId } });
  const assignee = async () =>
    (await rita.good<{ issue: { assignee_id: number | null } }>("GET", `issues/${issueId}/`)).issue.assignee_id;
  await show(issueId);
  await page.locator("body").press("a");
  await page.locator(".toast", { hasText: "Assigned to Rita." }).waitFor(SOON);
  expect(await assignee()).toBe(rita.userId);
  await page.locator(".issue-row", { hasText: other?.amount ?? "" }).click();
  await page.locator(".detail-amount", { hasText: other?.amount ?? "" }).waitFor(SOON);
  const row = page.locator(".issue-row", { hasText: issue?.amount ?? "" });
  await page.getByRole("link", { name: /^Waiting/ }).click();
  await row.getByText("Rita").waitFor(SOON);
  await page.locator("body").press("u");
  await expect.poll(assignee, SOON).toBe(sam.userId);
  await row.getByText("Sam").waitFor(SOON);
});

test("an undo after the session has ended: the person signs in, and then the undo works", async () => {
  const [issue] = await openIssues("5.05");
  const issueId = issue?.issue_id ?? 0;
  await show(issueId);
  await askToClose("A mistake");
  await closeButton().click();
  await dialog().waitFor({ state: "hidden", ...SOON });
  await page.context().clearCookies();
  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await page.getByRole("dialog", { name: "Your session has ended" }).waitFor(SOON);
  expect((await read(issueId)).issue.status).toBe("closed");
  await signIn();
  await page.getByRole("dialog", { name: "Your session has ended" }).waitFor({ state: "hidden", ...SOON });
  await page.goto(`${system.baseUrl}/reconcile/?view=decided&issue=${issueId}`);
  await page.getByRole("heading", { name: "Details" }).waitFor(SOON);
  await page.locator("body").press("u");
  await expect.poll(async () => (await read(issueId)).issue.status, SOON).toBe("open");
});

test("two answers about one issue arrive in the wrong order: the page keeps the newer one", async () => {
  const [issue] = await openIssues("5.06");
  const issueId = issue?.issue_id ?? 0;
  await page.clock.install();
  await show(issueId);
  const releases: (() => void)[] = [];
  const address = new RegExp(`/issues/${issueId}/$`);
  await page.route(address, async (route) => {
    const answer = await route.fetch();
    const held = Promise.withResolvers<void>();
    releases.push(held.resolve);
    await held.promise;
    await route.fulfill({ response: answer });
  });
  const held = (count: number) => expect.poll(() => releases.length, SOON).toBe(count);
  const answered = async (index: number): Promise<void> => {
    const response = page.waitForResponse(address);
    releases[index]?.();
    await (await response).finished();
    await drawn(page);
  };
  // The page refreshes, and the person decides before the answer arrives.
  await page.clock.fastForward(REFRESH_MS);
  await held(1);
  await page.locator("body").press("a");
  await held(2);
  const assignee = page.locator(".detail header .tag", { hasText: "Rita" });
  await answered(1);
  await assignee.waitFor(SOON);
  await answered(0);
  expect(await assignee.count()).toBe(1);
});

test("a reason that is typed for a candidate stays when the page below cannot read the candidates again", async () => {
  const [issue] = await openIssues("5.07");
  const issueId = issue?.issue_id ?? 0;
  const line = { line_id: 1, booked_on: DAY, amount: "5.07", currency: "EUR", provider_reference: "R" };
  const payment = { payment_key: "1", amount: "5.07", currency: "EUR", settled_at: null, order_id: 1, route: null };
  const candidates = [{ payment: { ...payment, reference: null }, score: 50, explanation: {} }];
  await page.route(new RegExp(`/issues/${issueId}/$`), async (route) => {
    const answer = await route.fetch();
    const found = (await answer.json()) as { issue: object };
    await route.fulfill({ response: answer, json: { ...found, issue: { ...found.issue, kind: "ambiguous_match" } } });
  });
  let isBusy = false;
  await page.route("**/candidates/?*", (route) =>
    route.fulfill(
      isBusy
        ? { status: 503, json: { code: "busy", detail: "", request_id: "r" } }
        : { json: { lines: [{ line, candidates }] } },
    ),
  );
  await page.clock.install();
  await show(issueId);
  await page.getByRole("button", { name: "This is it" }).click(SOON);
  await dialog().getByLabel("Reason").fill("The slip says so.");
  isBusy = true;
  await page.clock.fastForward(REFRESH_MS);
  await page.locator(".detail").getByRole("alert").waitFor(SOON);
  expect(await dialog().getByLabel("Reason").inputValue({ timeout: 2_000 })).toBe("The slip says so.");
});

test("payouts that arrived together: one decision confirms all of them, and none of them alone", async () => {
  const [issue] = await openIssues("5.11");
  const issueId = issue?.issue_id ?? 0;
  const line = { line_id: 1, booked_on: DAY, amount: "5.11", currency: "EUR", provider_reference: "R" };
  const candidates = ["payout:1", "payout:2"].map((payment_key) => ({
    payment: { payment_key, amount: null, currency: null, settled_at: null, order_display_number: null, route: null },
    score: 52,
    explanation: { payments: 2 },
  }));
  await page.route(new RegExp(`/issues/${issueId}/$`), async (route) => {
    const answer = await route.fetch();
    const found = (await answer.json()) as { issue: object };
    await route.fulfill({
      response: answer,
      json: { ...found, issue: { ...found.issue, kind: "reference_mismatch" } },
    });
  });
  await page.route("**/candidates/?*", (route) => route.fulfill({ json: { lines: [{ line, candidates }] } }));
  let confirmed: unknown;
  await page.route("**/matches/confirm/", async (route) => {
    confirmed = route.request().postDataJSON();
    await route.fulfill({ json: { decisions: [] } });
  });
  await show(issueId);
  await page.getByRole("button", { name: "These 2 payments together" }).click(SOON);
  expect(await page.getByRole("button", { name: "This is it" }).count()).toBe(0);
  await dialog().getByLabel("Reason").fill("Two days at once.");
  await dialog().getByRole("button", { name: "These 2 payments together" }).click();
  await page.getByText("Confirmed. The next run counts it.").waitFor(SOON);
  expect(confirmed).toEqual({ line_ids: [1], payment_keys: ["payout:1", "payout:2"], reason: "Two days at once." });
  // The page reads the issue again and again.
  await page.unrouteAll({ behavior: "wait" });
});

test("an answer that comes when the person is already at the next question: this question and its text stay", async () => {
  const [first, second] = await openIssues("5.08", "5.09");
  const [firstId, secondId] = [first?.issue_id ?? 0, second?.issue_id ?? 0];
  await show(firstId);
  await askToClose("The first one");
  const asked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  await page.route(`**/issues/${firstId}/close/`, async (route) => {
    const answer = await route.fetch();
    asked.resolve();
    await held.promise;
    await route.fulfill({ response: answer });
  });
  await closeButton().click();
  await asked.promise;
  await page.keyboard.press("Escape");
  await page.locator(".issue-row", { hasText: second?.amount ?? "" }).click();
  await page.locator(".detail-amount", { hasText: second?.amount ?? "" }).waitFor(SOON);
  await askToClose("The second one");
  const answered = page.waitForResponse(`**/issues/${firstId}/close/`);
  held.resolve();
  await (await answered).finished();
  await page.locator(".toast").getByRole("button", { name: "Undo" }).waitFor(SOON);
  await drawn(page);
  await page.waitForTimeout(500);
  expect(await dialog().getByLabel("Reason").inputValue({ timeout: 2_000 })).toBe("The second one");
  await closeButton().click();
  await dialog().waitFor({ state: "hidden", ...SOON });
  expect((await read(secondId)).issue.status).toBe("closed");
});

test("a mapping whose name looks like markup: the page shows it as text", async () => {
  const definition = {
    encoding: "utf-8",
    delimiter: ";",
    header_row: 1,
    decimal_separator: ",",
    currency: { fixed: "EUR" },
    amount: { rule: "signed", column: "Wert", money_in: "positive" },
    kind: { fixed: "payment" },
    date_formats: ["DD.MM.YYYY"],
    booked_on: { column: "Tag" },
  };
  await rita.good("POST", "statement-mappings/", { body: { name: XSS, definition } });
  await page.goto(`${system.baseUrl}/reconcile/?section=imports`);
  const buffer = Buffer.from(`Tag;Wert;${XSS}\n01.02.2026;"1,00";${XSS}\n`);
  await page.locator("input[type=file]").setInputFiles({ name: "unknown.csv", mimeType: "text/csv", buffer });
  const card = page.getByRole("article", { name: "unknown.csv" });
  await expect.poll(() => card.locator("option", { hasText: XSS }).count(), SOON).toBeGreaterThan(0);
  expect(await page.title()).not.toBe("owned");
});

test("long names of an account and of a person, on a phone: issue, message and report stay inside the page", async () => {
  const name = "Donaudampfschifffahrtsgesellschaftskapitänskajütentürschlüssel";
  const email = "max@sandbox.example";
  const owner = await logIn(system.baseUrl, "backoffice", system.owner);
  await addOperator(system.baseUrl, owner, email, `Maximiliane von Hohenlohe-Waldenburg-${name}`);
  await rita.good("PATCH", `accounts/${accountId}/`, { body: { name } });
  const [issue] = await openIssues("12345678.90");
  const context = await browser.newContext({ locale: "de-DE", viewport: { width: 360, height: 740 } });
  const phone = await context.newPage();
  await phone.goto(`${system.baseUrl}/reconcile/?view=all_open&issue=${issue?.issue_id}`);
  await phone.getByLabel("E-Mail-Adresse").fill(email, SOON);
  await phone.getByLabel("Passwort").fill(OPERATOR_PASSWORD);
  await phone.getByRole("button", { name: "Anmelden" }).click();
  await phone.getByRole("button", { name: "Mir zuweisen" }).click(SOON);
  const undo = phone.locator(".toast").getByRole("button", { name: "Rückgängig" });
  expect((await undo.boundingBox(SOON))?.height).toBeLessThan(50);
  await phone.locator(".detail .tag").waitFor(SOON);
  await expectNoSideways(phone);
  await phone.getByRole("button", { name: "Zurück zur Liste" }).click();
  await phone.locator(".issue-row .tag").first().waitFor(SOON);
  const cut = "[...document.querySelectorAll('.issue-row')].filter((row) => row.scrollWidth > row.clientWidth).length";
  expect(await phone.evaluate(cut)).toBe(0);
  await expectNoSideways(phone);
  await phone.goto(`${system.baseUrl}/reconcile/?section=report&day=${DAY}&mode=test`);
  await phone.getByRole("heading", { level: 2 }).waitFor(SOON);
  await expectNoSideways(phone);
  await context.close();
});
