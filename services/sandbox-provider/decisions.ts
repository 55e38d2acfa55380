/**
 * Decides payments: without a person when the time has come, or by the guest on the page that the QR opens. The
 * decision, the statement line and the callbacks are one transaction, so that a process that ends loses none of them.
 */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { currencyExponent } from "../../machines/currencies.ts";
import { formatAmount } from "../../machines/currency.ts";
import type { Database, Transaction } from "../db/pool.ts";
import { ApiError, type Reply, type SandboxDeps } from "./deps.ts";
import { SANDBOX_LIMITS } from "./limits.ts";
import type { Scenario } from "./magic-amounts.ts";
import {
  type Asserted,
  allocateStatementLine,
  findPayment,
  insertCallback,
  insertPayment,
  lockPayment,
  type PaymentRow,
  readNowMs,
  setDecidesInMs,
  setDecision,
  takeDeciding,
} from "./sql.ts";

type Decision = "paid" | "declined" | "cancelled" | "expired";

/** The decision without a person; `wait` where the outcome stays unknown. */
function scenarioDecision(payment: PaymentRow): Decision | "wait" {
  return SCENARIO_DECISIONS[payment.scenario] ?? "paid";
}

const SCENARIO_DECISIONS: Readonly<Partial<Record<Scenario, Decision | "wait">>> = {
  decline: "declined",
  buyer_cancel: "cancelled",
  never_pays: "expired",
  unknown: "wait",
};

/** The caller has locked the payment and has checked that it is pending. */
async function decide(tx: Transaction, payment: PaymentRow, decision: Decision): Promise<void> {
  const asserted = decision === "paid" ? assertedOf(payment) : null;
  const decided = await settle(tx, payment, decision, asserted);
  const callbacks = new Callbacks(tx, decided);
  const { scenario } = payment;
  if (decision === "paid" && scenario === "lost_callback") return;
  const copies = decision === "paid" && scenario === "duplicate_callback" ? 3 : 1;
  await callbacks.send(`payment.${decision}`, { copies });
  if (decision === "paid") await sendMore(tx, decided, callbacks);
}

/** What some scenarios send after the callback of a payment. */
async function sendMore(tx: Transaction, payment: PaymentRow, callbacks: Callbacks): Promise<void> {
  const { scenario } = payment;
  if (scenario === "out_of_order") {
    await callbacks.send("payment.declined", { as: { ...payment, status: "declined" } });
    await callbacks.send("payment.scanned");
  }
  if (scenario === "double_payment") await takeMore(tx, payment, truthOf(payment));
  if (scenario === "stray_money") {
    const reference = `STRAY-${randomBytes(6).toString("hex")}`;
    await takeMore(tx, payment, { ...truthOf(payment), reference });
  }
}

async function settle(
  tx: Transaction,
  payment: PaymentRow,
  status: Decision,
  asserted: Asserted | null,
): Promise<PaymentRow> {
  const statementLine = status === "paid" ? await allocateStatementLine(tx, payment.account_id) : null;
  await setDecision(tx, payment.payment_id, { status, asserted, statementLine });
  return { ...payment, status, asserted, decides_at: null, statement_line: statementLine };
}

/** Further money, as a separate payment with an id, a line and a callback. */
async function takeMore(tx: Transaction, payment: PaymentRow, asserted: Asserted): Promise<void> {
  const paymentId = newPaymentId();
  const nowMs = await readNowMs(tx);
  const more = {
    paymentId,
    accountId: payment.account_id,
    // The first payment has the reference already. The callback has the reference of `asserted`.
    reference: `more-${paymentId}`,
    amountMinor: payment.amount_minor,
    currency: payment.currency,
    description: payment.description,
    callbackUrl: payment.callback_url,
    scenario: "approve" as const,
    decidesAtMs: nowMs + SANDBOX_LIMITS.longestPaymentMs,
    expiresAtMs: nowMs + SANDBOX_LIMITS.longestPaymentMs,
    requestId: payment.request_id,
  };
  await insertPayment(tx, more);
  const row = { ...payment, payment_id: paymentId, reference: more.reference, scenario: more.scenario };
  const decided = await settle(tx, row, "paid", asserted);
  await new Callbacks(tx, decided, SANDBOX_LIMITS.callbackGapMs).send("payment.paid");
}

/** Writes the callbacks of one payment, each a little later than the one before. */
class Callbacks {
  readonly #tx: Transaction;
  readonly #payment: PaymentRow;
  #dueInMs: number;

  constructor(tx: Transaction, payment: PaymentRow, dueInMs = 0) {
    this.#tx = tx;
    this.#payment = payment;
    this.#dueInMs = dueInMs;
  }

  async send(eventType: string, how: { readonly copies?: number; readonly as?: PaymentRow } = {}): Promise<void> {
    const eventId = `evt_${randomBytes(12).toString("hex")}`;
    const body = JSON.stringify({
      event_id: eventId,
      event_type: eventType,
      occurred_at: new Date(await readNowMs(this.#tx)).toISOString(),
      payment: paymentJson(how.as ?? this.#payment),
    });
    const { payment_id: paymentId } = this.#payment;
    for (let copy = 0; copy < (how.copies ?? 1); copy += 1) {
      await insertCallback(this.#tx, { paymentId, eventId, body, dueInMs: this.#dueInMs });
      this.#dueInMs += SANDBOX_LIMITS.callbackGapMs;
    }
  }
}

/** What the scenario asserts about the money. */
function assertedOf(payment: PaymentRow): Asserted {
  const truth = truthOf(payment);
  return { ...truth, ...WRONG_FACTS[payment.scenario]?.(payment) };
}

const WRONG_FACTS: Readonly<Partial<Record<Scenario, (payment: PaymentRow) => Partial<Asserted>>>> = {
  wrong_amount: ({ amount_minor, currency }) => {
    const unit = 10n ** BigInt(currencyExponent(currency) ?? 2);
    return { amount: formatAmount(BigInt(amount_minor) + unit, currency) };
  },
  wrong_currency: ({ currency }) => ({ currency: currency === "USD" ? "EUR" : "USD" }),
  wrong_reference: () => ({ reference: `WRONG-${randomBytes(6).toString("hex")}` }),
  wrong_account: () => ({ account: "acct_somebody_else" }),
};

function truthOf(payment: PaymentRow): Asserted {
  const { reference, account_id: account, currency } = payment;
  return { reference, account, currency, amount: formatAmount(payment.amount_minor, currency) };
}

export function newPaymentId(): string {
  return `pay_${randomBytes(18).toString("base64url")}`;
}

/** Schedules late money a moment after the cancellation. */
export async function scheduleLateMoney(tx: Transaction, payment: PaymentRow): Promise<void> {
  await setDecidesInMs(tx, payment.payment_id, SANDBOX_LIMITS.lateMs);
}

/** When a payment of this scenario is decided without a person. */
export function decidesAtMs(
  scenario: Scenario,
  { nowMs, expiresAtMs, afterMs }: { readonly nowMs: number; readonly expiresAtMs: number; readonly afterMs: number },
): number {
  if (scenario === "early_callback") return nowMs;
  const waitsForDeadline = scenario === "late_success" || scenario === "never_pays" || scenario === "unknown";
  return waitsForDeadline ? expiresAtMs + SANDBOX_LIMITS.lateMs : nowMs + afterMs;
}

/** Decides the due payments and returns how many there were. */
export async function decideDue(database: Database): Promise<number> {
  return await database.begin(async (tx) => {
    const due = await takeDeciding(tx, SANDBOX_LIMITS.decisionsPerTurn);
    for (const payment of due) {
      const decision = scenarioDecision(payment);
      if (decision === "wait") await setDecidesInMs(tx, payment.payment_id, SANDBOX_LIMITS.longestPaymentMs);
      else await decide(tx, payment, decision);
    }
    return due.length;
  });
}

const DECISIONS: ReadonlyMap<string, Decision> = new Map([
  ["approve", "paid"],
  ["decline", "declined"],
  ["cancel", "cancelled"],
]);

const STATUS_TEXTS: Readonly<Record<PaymentRow["status"], string>> = {
  pending: "Waiting for you.",
  paid: "Paid. Thank you.",
  declined: "Declined.",
  cancelled: "Cancelled.",
  expired: "This code has expired.",
};

export async function showGuestPage(deps: SandboxDeps, paymentId: string): Promise<Reply> {
  const payment = await findPayment(deps.database, paymentId);
  if (payment === undefined) throw new ApiError(404, "payment_unknown", "There is no such payment.");
  return {
    status: 200,
    text: page(payment),
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "content-security-policy":
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      // Not `no-referrer`: the browser would send the origin of this page's form as null.
      "referrer-policy": "same-origin",
      "x-content-type-options": "nosniff",
    },
  };
}

/**
 * Only this page's form decides: a foreign page that sends the form would approve without the guest. `Origin` names the
 * sending page where the browser sends it, else `Sec-Fetch-Site`; with neither the sender is no browser.
 */
export function refuseForeignPage({ guestUrl }: SandboxDeps, { headers }: IncomingMessage): void {
  const { origin, host, "sec-fetch-site": site } = headers;
  const sender = origin === undefined ? undefined : URL.parse(origin);
  // The sending page is on this server's address, or on the address that guests use.
  const isSameSite =
    sender === undefined
      ? site === undefined || site === "same-origin" || site === "none"
      : sender !== null && (sender.host === host || sender.origin === new URL(guestUrl("")).origin);
  if (!isSameSite) throw new ApiError(403, "foreign_page", "A payment is decided on its own page only.");
}

/** Decides once; a payment that has been decided stays as it is. */
export async function decideAsGuest(deps: SandboxDeps, paymentId: string, form: string): Promise<Reply> {
  const decision = DECISIONS.get(new URLSearchParams(form).get("decision") ?? "");
  if (decision === undefined) throw new ApiError(422, "invalid_request", "Decide to approve, decline or cancel.");
  await deps.database.begin(async (tx) => {
    const payment = await lockPayment(tx, paymentId);
    if (payment === undefined) throw new ApiError(404, "payment_unknown", "There is no such payment.");
    if (payment.status === "pending") await decide(tx, payment, decision);
  });
  return { status: 303, text: "", headers: { location: `/pay/${encodeURIComponent(paymentId)}` } };
}

function page(payment: PaymentRow): string {
  const amount = `${formatAmount(payment.amount_minor, payment.currency)} ${payment.currency}`;
  const buttons = [...DECISIONS.keys()]
    .map((name) => `<button name="decision" value="${name}">${name[0]?.toUpperCase()}${name.slice(1)}</button>`)
    .join("\n");
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sandbox payment</title>
<style>body{font:1.2rem system-ui;max-width:24rem;margin:3rem auto;padding:0 1rem}strong{font-size:2rem}button{font:inherit;padding:.6rem 1rem}</style>
<h1>Sandbox payment</h1>
<p>${escaped(payment.description)}</p>
<p><strong>${escaped(amount)}</strong></p>
<p role="status">${STATUS_TEXTS[payment.status]}</p>
${payment.status === "pending" ? `<form method="post">${buttons}</form>` : ""}
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}

export interface PaymentJson {
  readonly payment_id: string;
  readonly reference: string;
  readonly account: string;
  readonly amount: string;
  readonly currency: string;
  readonly status: PaymentRow["status"] | "in_progress" | "unknown";
}

/**
 * A payment as the API and the callbacks show it. A paid one shows the asserted facts, which are wrong in some
 * scenarios.
 */
export function paymentJson(payment: PaymentRow): PaymentJson {
  const { payment_id, reference, account_id: account, currency, asserted } = payment;
  const amount = formatAmount(payment.amount_minor, currency);
  return { payment_id, reference, account, amount, currency, ...asserted, status: statusOf(payment) };
}

function statusOf(payment: PaymentRow): PaymentJson["status"] {
  if (payment.scenario === "unknown") return "unknown";
  return payment.status;
}
