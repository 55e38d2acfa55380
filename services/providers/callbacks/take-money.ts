/**
 * What becomes of money that a provider asserts, in a callback or when asked. It is held against what was registered
 * when the payment was asked for; what does not fit pays nothing and becomes a named issue (contract, "Rules" 7).
 */
import type { Transaction } from "../../db/pool.ts";
import type { AssertedMoney } from "../adapters/adapter.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { type IssueKind, insertIssue, isAttributed } from "../sql/issues.ts";
import { findPaymentByProviderReference, lockPaymentByReference, markPaid, type PaymentRow } from "../sql/payments.ts";
import { dropTask, insertTask, type Task } from "../sql/tasks.ts";

export interface MoneySource {
  readonly configId: number;
  readonly organizationId: number;
  /** Names the money where the provider gives it no reference of its own. */
  readonly eventKey: string;
  /** Where it was learned: a callback's event type, or how the provider was asked. */
  readonly learnedFrom: string;
}

export interface Taken {
  readonly outcome: "confirmed" | "known" | "attributed" | IssueKind;
  readonly intentId: number | null;
  /** To be run when the transaction has committed. */
  readonly task: Task | undefined;
  /** A new issue. */
  readonly issueId: number | undefined;
}

/** Runs in the caller's transaction; the task that it returns is already taken by this process. */
export async function takeMoney(sql: Transaction, source: MoneySource, money: AssertedMoney): Promise<Taken> {
  const { configId } = source;
  const payment = await lockPaymentByReference(sql, { configId, reference: money.reference });
  if (payment === undefined) return await takeUnknown(sql, source, money);
  if (payment.paid_reference !== null) {
    const isSame = payment.paid_reference === money.providerReference;
    return isSame ? nothing("known", payment) : await raise(sql, "duplicate_money", { source, money, payment });
  }
  const mismatch = mismatchOf(payment, money);
  if (mismatch !== undefined) return await raise(sql, mismatch, { source, money, payment });
  if (await isAttributed(sql, { configId, moneyKey: moneyKeyOf(source, money) })) return nothing("attributed", payment);
  const { intent_id: intentId } = payment;
  await markPaid(sql, intentId, money.providerReference);
  await dropTask(sql, { intentId, kind: "poll", outcome: "paid" });
  const detail = { providerReference: money.providerReference };
  const claim = { dueInMs: PROVIDER_LIMITS.taskClaimMs, isTaken: true };
  const task = await insertTask(sql, { intentId, kind: "confirm", detail, ...claim });
  return { outcome: "confirmed", intentId, task, issueId: undefined };
}

/** Our reference is unknown: perhaps the provider's own is not. */
async function takeUnknown(sql: Transaction, source: MoneySource, money: AssertedMoney): Promise<Taken> {
  const { providerReference } = money;
  const payment =
    providerReference === ""
      ? undefined
      : await findPaymentByProviderReference(sql, { configId: source.configId, providerReference });
  return await raise(sql, payment === undefined ? "unmatched_money" : "reference_mismatch", { source, money, payment });
}

/** The first thing that differs, in this order: whose money it is comes before how much. */
function mismatchOf(payment: PaymentRow, money: AssertedMoney): IssueKind | undefined {
  const { provider_reference: registered } = payment;
  if (registered !== "" && registered !== money.providerReference) return "reference_mismatch";
  if (payment.account !== money.account) return "account_mismatch";
  if (payment.currency !== money.currency) return "currency_mismatch";
  if (payment.amount_minor !== money.amountMinor) return "amount_mismatch";
  return undefined;
}

interface Misfit {
  readonly source: MoneySource;
  readonly money: AssertedMoney;
  readonly payment: PaymentRow | undefined;
}

async function raise(sql: Transaction, kind: IssueKind, { source, money, payment }: Misfit): Promise<Taken> {
  const issueId = await insertIssue(sql, {
    ...source,
    kind,
    moneyKey: moneyKeyOf(source, money),
    payment: payment === undefined ? undefined : placeOf(payment),
    amountMinor: storableAmount(money.amountMinor),
    currency: money.currency,
    providerReference: money.providerReference,
    evidence: { learnedFrom: source.learnedFrom, asserted: money, registered: registeredOf(payment) },
  });
  return { outcome: kind, intentId: payment?.intent_id ?? null, task: undefined, issueId };
}

/** The place of a payment, as an issue names it. */
export function placeOf(payment: PaymentRow): {
  readonly stationId: number;
  readonly intentId: number;
  readonly orderDisplayNumber: number;
} {
  const { station_id: stationId, intent_id: intentId, order_display_number: orderDisplayNumber } = payment;
  return { stationId, intentId, orderDisplayNumber };
}

/** What was registered, for the evidence of an issue. */
export function registeredOf(payment: PaymentRow | undefined): Readonly<Record<string, unknown>> | null {
  if (payment === undefined) return null;
  return {
    reference: payment.reference,
    providerReference: payment.provider_reference,
    account: payment.account,
    amountMinor: payment.amount_minor,
    currency: payment.currency,
    paidReference: payment.paid_reference,
  };
}

/** One name for one money: the provider's own reference, or the event that told of it. */
function moneyKeyOf(source: MoneySource, money: AssertedMoney): string {
  return moneyKey(money.providerReference, source.eventKey);
}

export function moneyKey(providerReference: string, otherwise: string): string {
  return providerReference === "" ? `event:${otherwise}` : `money:${providerReference}`;
}

/** An amount beyond what an order could be stays in the evidence only. */
function storableAmount(amountMinor: string | null): string | null {
  return amountMinor !== null && amountMinor.length <= 13 ? amountMinor : null;
}

function nothing(outcome: "known" | "attributed", payment: PaymentRow): Taken {
  return { outcome, intentId: payment.intent_id, task: undefined, issueId: undefined };
}
