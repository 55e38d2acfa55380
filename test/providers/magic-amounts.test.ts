/**
 * Each magic amount of the sandbox provider until its documented end, at a station of the real actor host, with the real
 * relay, settlement service and HTTP. The rows run in parallel. Those that wait for a deadline have the shortest one.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EndReason } from "../../machines/payment-intent.ts";
import { INTENT_LIFETIME_BOUNDS_MS } from "../../machines/settings.ts";
import type { ISSUE_KINDS } from "../../services/bus/messages/issues.ts";
import {
  DEFAULT_SCENARIO,
  MAGIC_AMOUNTS,
  type Scenario,
  scenarioOf,
} from "../../services/sandbox-provider/magic-amounts.ts";
import { waitFor } from "../support/wait-for.ts";
import { type ProvidersWorld, startProvidersWorld } from "./providers-world.ts";
import { openQrCounter, type QrCounter } from "./qr-counter.ts";

type IssueKind = (typeof ISSUE_KINDS)[number];

/** How a collection ends, and how a second one of the order is answered. */
interface End {
  readonly status: "succeeded" | "cancelled" | "expired";
  readonly endReason?: EndReason;
  /** What the cashier or the guest does when the QR is shown. Without it, they do nothing. */
  readonly shown?: "cancel" | "cancel after the issue" | "approve";
  readonly issues?: readonly IssueKind[];
  /** The issues when the second callback is processed before the first one, which happens on a busy machine. */
  readonly overtaken?: readonly IssueKind[];
  /** How many callbacks there are, each answered 200. */
  readonly callbacks: number;
  /** One more callback is possible: the provider reports the expiry when it comes before our cancellation. */
  readonly lastCallback?: "may come";
  /** The answer to the next collection of the order, which begins when all reports about this one have arrived. */
  readonly next: "paid already" | "needs confirmation" | "collects";
}

const PAID: End = { status: "succeeded", callbacks: 1, next: "paid already" };
const NO_QR = { status: "cancelled", callbacks: 0, next: "collects" } as const;
/** The payment arrives and does not match; the cashier cancels in the end. */
const MISFIT = {
  status: "cancelled",
  shown: "cancel after the issue",
  callbacks: 1,
  next: "needs confirmation",
} as const;
const LATE = { issues: ["late_money"], callbacks: 1, next: "needs confirmation" } as const;

/** A row of the table may have several ends, each at a separate station. */
const ENDS: Record<Scenario, readonly End[]> = {
  approve: [PAID],
  decline: [{ status: "cancelled", endReason: "payment_declined", callbacks: 1, next: "collects" }],
  buyer_cancel: [{ status: "cancelled", endReason: "buyer_cancelled", callbacks: 1, next: "collects" }],
  never_pays: [
    // The service cancels the payment after the expiry. A callback comes only when the provider is faster.
    { status: "expired", callbacks: 0, lastCallback: "may come", next: "collects" },
    { ...PAID, shown: "approve" },
  ],
  duplicate_callback: [{ ...PAID, callbacks: 3 }],
  late_success: [
    { ...LATE, status: "cancelled", shown: "cancel" },
    { ...LATE, status: "expired" },
  ],
  wrong_amount: [{ ...MISFIT, issues: ["amount_over"] }],
  wrong_currency: [{ ...MISFIT, issues: ["currency_mismatch"] }],
  wrong_reference: [{ ...MISFIT, issues: ["reference_mismatch"] }],
  wrong_account: [{ ...MISFIT, issues: ["account_mismatch"] }],
  unknown: [{ status: "expired", callbacks: 0, next: "needs confirmation" }],
  provider_down: [{ ...NO_QR, endReason: "provider_unavailable" }],
  provider_hangs: [{ ...NO_QR, endReason: "provider_timed_out" }],
  refuse: [{ ...NO_QR, endReason: "provider_refused" }],
  garbage: [{ ...NO_QR, endReason: "provider_answer_invalid" }],
  out_of_order: [{ ...PAID, callbacks: 3 }],
  lost_callback: [{ ...PAID, callbacks: 0 }],
  early_callback: [PAID],
  double_payment: [{ ...PAID, issues: ["duplicate_money"], overtaken: ["reference_mismatch"], callbacks: 2 }],
  stray_money: [{ ...PAID, issues: ["unmatched_money"], callbacks: 2 }],
};
/** Each end is one test. Those that wait for the deadline begin first. */
const ROWS = (Object.entries(ENDS) as [Scenario, readonly End[]][])
  .flatMap(([scenario, ends]) => ends.map((end) => ({ scenario, end, how: end.shown ?? "by itself" })))
  .toSorted((one, other) => Number(other.end.status === "expired") - Number(one.end.status === "expired"));

/** By then the sandbox provider's late money, the last poll after a deadline and their effects have arrived. */
const SETTLED_MS = 60_000;
const { min: LIFETIME_MS, max: UNHURRIED_MS } = INTENT_LIFETIME_BOUNDS_MS;

let world: ProvidersWorld;
beforeAll(async () => {
  world = await startProvidersWorld({ hasRealStations: true });
});
afterAll(() => world.stop());

test("the last two digits of an amount select its scenario, and the table has each ending once", () => {
  expect(new Set(MAGIC_AMOUNTS.map(({ ending }) => ending)).size).toBe(MAGIC_AMOUNTS.length);
  expect(MAGIC_AMOUNTS.every(({ ending }) => /^\d\d$/.test(ending))).toBe(true);
  expect(scenarioOf("1201", "EUR")).toBe("decline");
  expect(scenarioOf("1", "EUR")).toBe("decline");
  expect(scenarioOf("1201", "JPY")).toBe("decline");
  // KWD has three decimals, and the API writes two of them: 12.01.
  expect(scenarioOf("12010", "KWD")).toBe("decline");
  expect(scenarioOf("1210", "EUR")).toBe(DEFAULT_SCENARIO);
  expect(scenarioOf("0", "EUR")).toBe(DEFAULT_SCENARIO);
});

test.each(MAGIC_AMOUNTS)("the documented outcome of $scenario is the one tested here", ({ scenario, outcome }) => {
  for (const { status, endReason, issues = [], shown } of ENDS[scenario]) {
    if (endReason !== undefined) expect(outcome).toBe(`the intent is cancelled with ${endReason}`);
    for (const kind of issues) expect(outcome).toContain(`an issue ${kind}`);
    if (status === "succeeded" && shown === undefined) expect(outcome).toMatch(/^paid\b/);
    if (status === "expired" && issues.length === 0) expect(outcome).toMatch(/^the intent expires\b/);
  }
});

describe.concurrent("the sandbox provider", () => {
  test.each(ROWS)(
    "$scenario ends as documented ($end.status, $how)",
    async ({ scenario, end }) => {
      const counter = await openQrCounter(world, scenario);
      const intentId = await counter.collect(end.status === "expired" ? LIFETIME_MS : UNHURRIED_MS);
      await play(counter, intentId, end);
      const intent = await counter.ended(intentId, LIFETIME_MS + SETTLED_MS);
      expect(intent.status).toBe(end.status);
      if (end.endReason !== undefined) expect(intent.endReason).toBe(end.endReason);
      await waitFor("the issues and callbacks", () => haveCome(counter, end), SETTLED_MS);
      await expectNext(counter, intentId, end);
      const issues = await counter.issues();
      const kinds = issues.map(({ kind }) => kind);
      expect([end.issues ?? [], end.overtaken ?? end.issues ?? []]).toContainEqual(kinds);
      for (const { kind, intentId: named } of issues) expect(named).toBe(kind === "unmatched_money" ? null : intentId);
      expectCallbacks(counter, end);
      const rows = await world.database`select 1 from transactions where order_id = ${counter.orderId}`;
      expect(rows).toHaveLength(end.status === "succeeded" ? 1 : 0);
      expect((await counter.order()).status).toBe(end.status === "succeeded" ? "paid" : "open");
    },
    LIFETIME_MS + 4 * SETTLED_MS,
  );
});

async function play(counter: QrCounter, intentId: number, { shown, issues = [] }: End): Promise<void> {
  if (shown === undefined) return;
  const { provider } = await counter.presented(intentId);
  if (shown === "approve") {
    const answer = await fetch(provider?.qrPayload ?? "", { method: "POST", body: "decision=approve" });
    expect(answer.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/pay\/pay_[\w-]{24}$/);
    return;
  }
  if (shown === "cancel after the issue") {
    await waitFor("the issue", async () => (await counter.issues()).length === issues.length, SETTLED_MS);
    expect((await counter.state()).intent).toMatchObject({ intentId, status: "presented" });
  }
  expect((await counter.act({ type: "intent_cancel", intentId })).reply).toMatchObject({ ok: true });
}

const answersOf = ({ configId }: QrCounter) =>
  world.gateway.seen.filter(({ path }) => path.includes(`/${configId}/`)).filter(({ answer }) => answer.status !== 503);

async function haveCome(counter: QrCounter, { issues = [], callbacks }: End): Promise<boolean> {
  return (await counter.issues()).length >= issues.length && answersOf(counter).length >= callbacks;
}

/** Each callback is accepted, and a copy gets the same answer as the first, byte for byte. */
function expectCallbacks(counter: QrCounter, { callbacks, lastCallback }: End): void {
  const answers = answersOf(counter);
  const expected = answers.length > callbacks && lastCallback === "may come" ? callbacks + 1 : callbacks;
  expect(answers.map(({ answer }) => answer.status)).toEqual(Array.from({ length: expected }, () => 200));
  const byBody = new Map(answers.map(({ body, answer }) => [body, answer.body]));
  for (const { body, answer } of answers) expect(answer.body).toBe(byBody.get(body));
}

/** Checks the answer to a second collection of the order, in cash, after all reports about the first have arrived. */
async function expectNext(counter: QrCounter, intentId: number, { next }: End): Promise<void> {
  const { orderId } = counter;
  const again = (confirmsMoneyMayHaveMoved: boolean) =>
    counter.act({ type: "intent_create", route: "cash", orderId, confirmsMoneyMayHaveMoved });
  if (next === "paid already") {
    expect((await again(true)).reply).toMatchObject({ ok: false, code: "order_already_paid" });
    return;
  }
  await waitFor("nothing is left to be reported", () => isQuiet(counter, intentId), SETTLED_MS);
  const { unclearCollections } = await counter.state();
  expect([...new Set(unclearCollections.map((unclear) => unclear.intentId))]).toEqual(
    next === "collects" ? [] : [intentId],
  );
  const { reply } = await again(false);
  if (next === "collects") {
    expect(reply).toMatchObject({ ok: true });
    return;
  }
  expect(reply).toMatchObject({ ok: false, code: "money_may_have_moved", earlierIntentId: intentId });
  expect((await again(true)).reply).toMatchObject({ ok: true });
}

/** Whether the providers service has received the intent's end, and has completed all tasks of the intent. */
async function isQuiet(counter: QrCounter, intentId: number): Promise<boolean> {
  const { unreportedEnds } = await counter.state();
  const open = await world.database`select from provider_tasks where intent_id = ${intentId} and outcome is null`;
  return unreportedEnds.length === 0 && open.length === 0;
}
