/**
 * A payment is decided: by itself when its time has come, or by the guest. The decision, the line of the statement and
 * the callbacks are one transaction, so that nothing of it is lost with a process.
 */
import { randomBytes } from "node:crypto";
import { currencyExponent, formatAmount } from "../../machines/currency.ts";
import type { Transaction } from "../db/pool.ts";
import { SANDBOX_LIMITS } from "./limits.ts";
import type { Scenario } from "./magic-amounts.ts";
import { paymentOnWire } from "./payment-wire.ts";
import { drawStatementLine } from "./sql/accounts.ts";
import { insertCallback } from "./sql/callbacks.ts";
import { type Asserted, insertPayment, type PaymentRow, setDecidesInMs, setDecision } from "./sql/payments.ts";

export type Decision = "paid" | "declined" | "cancelled" | "expired";

/** What a payment comes to by itself when its moment has come; `wait` when nobody will ever know. */
export function ownDecision(payment: PaymentRow): Decision | "wait" {
  return OWN_DECISIONS[payment.scenario] ?? "paid";
}

const OWN_DECISIONS: Readonly<Partial<Record<Scenario, Decision | "wait">>> = {
  decline: "declined",
  buyer_cancel: "cancelled",
  never_pays: "expired",
  unknown: "wait",
};

/** The caller holds the payment and has seen that it is pending. */
export async function decide(sql: Transaction, payment: PaymentRow, decision: Decision): Promise<void> {
  const asserted = decision === "paid" ? assertedOf(payment) : null;
  const decided = await settle(sql, payment, decision, asserted);
  const callbacks = new Callbacks(sql, decided);
  const { scenario } = payment;
  if (decision === "paid" && scenario === "lost_callback") return;
  const copies = decision === "paid" && scenario === "duplicate_callback" ? 3 : 1;
  await callbacks.send(`payment.${decision}`, { copies });
  if (decision === "paid") await sendMore(sql, decided, callbacks);
}

/** What some scenarios send behind the callback of a payment. */
async function sendMore(sql: Transaction, payment: PaymentRow, callbacks: Callbacks): Promise<void> {
  const { scenario } = payment;
  if (scenario === "out_of_order") {
    await callbacks.send("payment.declined", { as: { ...payment, status: "declined" } });
    await callbacks.send("payment.scanned");
  }
  if (scenario === "double_payment") await takeMore(sql, payment, truthOf(payment));
  if (scenario === "stray_money") {
    const reference = `STRAY-${randomBytes(6).toString("hex")}`;
    await takeMore(sql, payment, { ...truthOf(payment), reference });
  }
}

async function settle(
  sql: Transaction,
  payment: PaymentRow,
  status: Decision,
  asserted: Asserted | null,
): Promise<PaymentRow> {
  const statementLine = status === "paid" ? await drawStatementLine(sql, payment.account_id) : null;
  await setDecision(sql, payment.payment_id, { status, asserted, statementLine });
  return { ...payment, status, asserted, decides_at: null, statement_line: statementLine };
}

/** Further money, as a payment of its own: with its own id, line and callback. */
async function takeMore(sql: Transaction, payment: PaymentRow, asserted: Asserted): Promise<void> {
  const paymentId = newPaymentId();
  const nowMs = Date.now();
  const more = {
    paymentId,
    accountId: payment.account_id,
    // The reference of the first is taken; what is said about the money is what counts.
    reference: `more-${paymentId}`,
    amountMinor: payment.amount_minor,
    currency: payment.currency,
    description: payment.description,
    callbackUrl: payment.callback_url,
    scenario: "approve" as const,
    decidesAtMs: nowMs + SANDBOX_LIMITS.longestPaymentMs,
    expiresAtMs: nowMs + SANDBOX_LIMITS.longestPaymentMs,
  };
  await insertPayment(sql, more);
  const row = { ...payment, payment_id: paymentId, reference: more.reference, scenario: more.scenario };
  const decided = await settle(sql, row, "paid", asserted);
  await new Callbacks(sql, decided, SANDBOX_LIMITS.callbackGapMs).send("payment.paid");
}

/** Writes the callbacks of one payment, each a little later than the one before. */
class Callbacks {
  readonly #sql: Transaction;
  readonly #payment: PaymentRow;
  #dueInMs: number;

  constructor(sql: Transaction, payment: PaymentRow, dueInMs = 0) {
    this.#sql = sql;
    this.#payment = payment;
    this.#dueInMs = dueInMs;
  }

  async send(eventType: string, how: { readonly copies?: number; readonly as?: PaymentRow } = {}): Promise<void> {
    const eventId = `evt_${randomBytes(12).toString("hex")}`;
    const body = JSON.stringify({
      event_id: eventId,
      event_type: eventType,
      occurred_at: new Date().toISOString(),
      payment: paymentOnWire(how.as ?? this.#payment),
    });
    const { payment_id: paymentId } = this.#payment;
    for (let copy = 0; copy < (how.copies ?? 1); copy += 1) {
      await insertCallback(this.#sql, { paymentId, eventId, body, dueInMs: this.#dueInMs });
      this.#dueInMs += SANDBOX_LIMITS.callbackGapMs;
    }
  }
}

/** What is said about the money, as the scenario has it. */
function assertedOf(payment: PaymentRow): Asserted {
  const truth = truthOf(payment);
  return { ...truth, ...WRONGS[payment.scenario]?.(payment) };
}

const WRONGS: Readonly<Partial<Record<Scenario, (payment: PaymentRow) => Partial<Asserted>>>> = {
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

/** Late money comes a moment after it was cancelled. */
export async function comeLate(sql: Transaction, payment: PaymentRow): Promise<void> {
  await setDecidesInMs(sql, payment.payment_id, SANDBOX_LIMITS.lateMs);
}
