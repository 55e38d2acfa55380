/**
 * What becomes of money that a provider asserts, in a callback or when asked. It is held against what was registered
 * when the payment was asked for; what does not fit pays nothing and becomes a named issue (contract, "Rules" 7).
 */
import type { Transaction } from "../../db/pool.ts";
import type { AssertedMoney } from "../adapters/adapter.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { findResolutions, type IssueKind, type Resolution } from "../sql/issues.ts";
import {
  findPaymentByProviderReference,
  isTakenElsewhere,
  lockMoney,
  lockPaymentByReference,
  type PaymentRow,
} from "../sql/payments.ts";
import { takeAsPaid } from "../sql/tasks.ts";
import {
  keepWords,
  type Misfit,
  type MoneySource,
  nameOf,
  raiseIssue,
  type Written,
  writeNothing,
} from "./raise-issue.ts";

/** The payment that money speaks of, held until the transaction ends, and what people have decided about the money. */
export interface HeldPayment {
  readonly payment: PaymentRow | undefined;
  readonly resolutions: readonly Resolution[];
  /** Another payment has taken the same money, or another order is paid with it. */
  readonly isTakenElsewhere: boolean;
}

/** What is to become of the money. Nothing is written yet. */
export interface Decision {
  readonly outcome: "confirmed" | "known" | "attributed" | "closed" | IssueKind;
  readonly intentId: number | null;
  /** Writes what follows, in the caller's transaction. */
  readonly write: () => Promise<Written>;
}

/** All questions go out at once, in this order: somebody waits for the display to say "paid". */
export async function holdPayment(sql: Transaction, source: MoneySource, money: AssertedMoney): Promise<HeldPayment> {
  const { configId, organizationId } = source;
  const { reference, providerReference } = money;
  const named = { configId, providerReference };
  // Held first, so that the answers about the money are of the moment when nobody else decides about it.
  const [, payment, resolutions, isElsewhere] = await Promise.all([
    providerReference === "" ? undefined : lockMoney(sql, { organizationId, providerReference }),
    lockPaymentByReference(sql, { configId, reference }),
    findResolutions(sql, { configId, moneyName: nameOf(source, money), reference, saidAccount: money.account }),
    isTakenElsewhere(sql, { ...named, reference }),
  ]);
  return { payment, resolutions, isTakenElsewhere: isElsewhere };
}

/** `mayPay` false: what would pay is an issue instead, because the event that tells of it is not to be believed. */
export async function decideMoney(
  sql: Transaction,
  about: { readonly source: MoneySource; readonly money: AssertedMoney; readonly mayPay: boolean },
  held: HeldPayment,
): Promise<Decision> {
  const { source, money, mayPay } = about;
  const { payment, resolutions } = held;
  const intentId = payment?.intent_id ?? null;
  // Nothing could keep money without a name from paying twice.
  if (money.providerReference === "")
    return misfit(sql, payment === undefined ? "unmatched_money" : "reference_mismatch", { source, money, payment });
  const mismatch = payment === undefined ? undefined : mismatchOf(payment, money);
  const isTaken = payment !== undefined && payment.paid_reference === money.providerReference;
  if (isTaken && mismatch === undefined) return { outcome: "known", intentId, write: writeNothing };
  // A person has said what became of it: whatever is said of it now is evidence there, and pays nothing.
  const closed = resolutions.find(({ status }) => status === "closed");
  const attributed = resolutions.find(({ status }) => status === "attributed");
  const resolved = closed ?? (attributed !== undefined && isOfAmount(attributed, money) ? attributed : undefined);
  if (resolved !== undefined) return record(sql, resolved, { source, money, payment });
  // Another amount than what was attributed is news, as it is after a payment.
  if (attributed !== undefined && payment === undefined)
    return misfit(sql, differenceFrom(attributed, money), { source, money, payment });
  if (payment === undefined) return await decideUnknown(sql, source, money);
  if (payment.paid_reference !== null && !isTaken) return misfit(sql, "duplicate_money", { source, money, payment });
  // What was attributed has paid, and is compared with that below.
  if (held.isTakenElsewhere && attributed === undefined)
    return misfit(sql, "reference_mismatch", { source, money, payment });
  if (mismatch !== undefined) return misfit(sql, mismatch, { source, money, payment });
  if (attributed !== undefined) return misfit(sql, "duplicate_money", { source, money, payment });
  if (!mayPay) return misfit(sql, "reference_mismatch", { source, money, payment });
  return { outcome: "confirmed", intentId, write: () => confirm(sql, payment, money.providerReference) };
}

function isOfAmount({ amountMinor, currency }: Resolution, money: AssertedMoney): boolean {
  return amountMinor === money.amountMinor && currency === money.currency;
}

function differenceFrom({ currency }: Resolution, money: AssertedMoney): IssueKind {
  return currency === money.currency ? "amount_mismatch" : "currency_mismatch";
}

async function confirm(sql: Transaction, payment: PaymentRow, providerReference: string): Promise<Written> {
  const { intent_id: intentId } = payment;
  const task = await takeAsPaid(sql, { intentId, providerReference, dueInMs: PROVIDER_LIMITS.taskClaimMs });
  if (task === undefined) return await writeNothing();
  // As it was just written, so that the task need not read what is known here.
  const provider_reference = payment.provider_reference === "" ? providerReference : payment.provider_reference;
  const paid = { ...payment, paid_reference: providerReference, provider_reference };
  return { task: { ...task, payment: paid }, issueId: undefined };
}

/** Our reference is unknown: perhaps the provider's own is not. */
async function decideUnknown(sql: Transaction, source: MoneySource, money: AssertedMoney): Promise<Decision> {
  const { configId } = source;
  const { providerReference } = money;
  const payment = await findPaymentByProviderReference(sql, { configId, providerReference });
  return misfit(sql, payment === undefined ? "unmatched_money" : "reference_mismatch", { source, money, payment });
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

function misfit(sql: Transaction, kind: IssueKind, about: Misfit): Decision {
  return { outcome: kind, intentId: about.payment?.intent_id ?? null, write: () => raiseIssue(sql, kind, about) };
}

function record(sql: Transaction, resolved: Resolution, about: Misfit): Decision {
  const { payment } = about;
  return {
    outcome: resolved.status,
    intentId: payment?.intent_id ?? null,
    write: () => keepWords(sql, resolved, about),
  };
}
