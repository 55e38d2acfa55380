/**
 * Decides about a payment that a provider asserts, in a callback or in the answer to a poll. The service compares it
 * with the registered payment. An asserted payment that does not fit pays nothing and becomes an issue (contract,
 * "Rules" 7).
 *
 * Called by callback-recording.ts and tasks.ts; calls issue-recording.ts. The caller starts the returned task after its
 * commit.
 */
import type { IssueKind } from "../bus/messages/issues.ts";
import type { Transaction } from "../db/pool.ts";
import type { AssertedPayment } from "./adapters/adapter.ts";
import {
  type AssertionSource,
  addEvidence,
  difficultyOf,
  evidenceText,
  type Misfit,
  nameOf,
  raiseIssue,
  type Written,
  writeNothing,
} from "./issue-recording.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { findResolutions, type Resolution } from "./sql/issues.ts";
import {
  findPaymentByProviderReference,
  isTakenElsewhere,
  lockMoney,
  lockPaymentByReference,
  type PaymentRow,
} from "./sql/payments.ts";
import { takeAsPaid } from "./sql/tasks.ts";

/** The payment that the assertion names, locked until the transaction ends, and what people have decided about the money. */
interface LockedPayment {
  readonly payment: PaymentRow | undefined;
  readonly resolutions: readonly Resolution[];
  /** The same money has paid another payment or another order. */
  readonly isTakenElsewhere: boolean;
}

/** The decision about an asserted payment. Nothing is written yet. */
interface Decision {
  readonly outcome: "confirmed" | "known" | "attributed" | "closed" | IssueKind;
  readonly intentId: number | null;
  /** Writes the decision in the caller's transaction. */
  readonly write: () => Promise<Written>;
}

/** Sends all queries at once, in this order, because a guest waits for the display. */
export async function lockAssertedPayment(
  tx: Transaction,
  source: AssertionSource,
  money: AssertedPayment,
): Promise<LockedPayment> {
  const { configId, organizationId } = source;
  const { reference, providerReference } = money;
  const said = evidenceText(money.said);
  const named = { configId, providerReference };
  // The lock comes first, so that no other transaction decides about the same money meanwhile.
  const [, payment, resolutions, isElsewhere] = await Promise.all([
    providerReference === "" ? undefined : lockMoney(tx, { organizationId, providerReference }),
    lockPaymentByReference(tx, { configId, reference }),
    findResolutions(tx, {
      configId,
      moneyName: nameOf(source, money),
      reference,
      assertedAccount: money.account,
      said,
    }),
    isTakenElsewhere(tx, { ...named, reference }),
  ]);
  return { payment, resolutions, isTakenElsewhere: isElsewhere };
}

/**
 * With `mayPay` false, money that would pay becomes an issue instead, because its event has the id of another event.
 */
export async function decidePayment(
  tx: Transaction,
  about: { readonly source: AssertionSource; readonly money: AssertedPayment; readonly mayPay: boolean },
  held: LockedPayment,
): Promise<Decision> {
  const { source, money, mayPay } = about;
  const { payment, resolutions } = held;
  const intentId = payment?.intent_id ?? null;
  // Without a provider reference the same money could pay twice.
  if (money.providerReference === "")
    return misfit(tx, payment === undefined ? "unmatched_money" : "reference_mismatch", { source, money, payment });
  const mismatch = payment === undefined ? undefined : mismatchOf(payment, money);
  const isTaken = payment !== undefined && payment.paid_reference === money.providerReference;
  if (isTaken && mismatch === undefined) return { outcome: "known", intentId, write: writeNothing };
  // A person has resolved this provider payment: a later assertion is evidence and pays nothing.
  const closed = resolutions.find(({ status }) => status === "closed");
  const attributed = resolutions.find(({ status }) => status === "attributed");
  const news =
    closed === undefined ? undefined : await changedDifference(tx, closed, { source, money, payment, mismatch });
  if (closed !== undefined && news !== undefined)
    return misfit(tx, news, { source, money, payment, supersedesId: closed.issueId });
  const resolved = closed ?? (attributed !== undefined && isOfAmount(attributed, money) ? attributed : undefined);
  if (resolved !== undefined) return addAsEvidence(tx, resolved, { source, money, payment });
  // An amount that differs from the attributed one is a new difference, as it is after a payment.
  if (attributed !== undefined && payment === undefined)
    return misfit(tx, differenceFrom(attributed, money), { source, money, payment });
  if (payment === undefined) return await decideUnknown(tx, source, money);
  if (payment.paid_reference !== null && !isTaken) return misfit(tx, "duplicate_money", { source, money, payment });
  // Attributed money has paid; the checks below compare it.
  if (held.isTakenElsewhere && attributed === undefined)
    return misfit(tx, "reference_mismatch", { source, money, payment });
  if (mismatch !== undefined) return misfit(tx, mismatch, { source, money, payment });
  if (attributed !== undefined) return misfit(tx, "duplicate_money", { source, money, payment });
  if (!mayPay) return misfit(tx, "reference_mismatch", { source, money, payment });
  return { outcome: "confirmed", intentId, write: () => confirm(tx, payment, money.providerReference) };
}

function isOfAmount({ amountMinor, currency }: Resolution, money: AssertedPayment): boolean {
  return amountMinor === money.amountMinor && currency === money.currency;
}

function differenceFrom({ currency, amountMinor }: Resolution, money: AssertedPayment): IssueKind {
  return currency === money.currency ? differenceOfAmounts(amountMinor, money.amountMinor) : "currency_mismatch";
}

function differenceOfAmounts(expectedMinor: string | null, assertedMinor: string | null): IssueKind {
  if (assertedMinor === null) return "amount_unknown";
  return BigInt(assertedMinor) > BigInt(expectedMinor ?? 0) ? "amount_over" : "amount_under";
}

/**
 * A closed issue stays closed, whatever the provider asserts later about its money, even if that fits. The exception is
 * another amount with the same difficulty as the closed issue. It becomes a new issue, which supersedes the closed one,
 * because the person has decided about other evidence.
 */
async function changedDifference(
  tx: Transaction,
  closed: Resolution,
  about: Pick<Misfit, "source" | "money" | "payment"> & { readonly mismatch: IssueKind | undefined },
): Promise<IssueKind | undefined> {
  const { source, money, payment, mismatch } = about;
  if (closed.isKnown || isOfAmount(closed, money)) return undefined;
  const { configId } = source;
  const { providerReference } = money;
  const kind =
    payment === undefined
      ? kindOfUnknown(await findPaymentByProviderReference(tx, { configId, providerReference }))
      : mismatch;
  return kind !== undefined && difficultyOf(kind).includes(closed.kind) ? kind : undefined;
}

async function confirm(tx: Transaction, payment: PaymentRow, providerReference: string): Promise<Written> {
  const { intent_id: intentId } = payment;
  const task = await takeAsPaid(tx, { intentId, providerReference, dueInMs: PROVIDER_LIMITS.taskClaimMs });
  if (task === undefined) return await writeNothing();
  // The row as this transaction has written it, so that the task does not read it again.
  const provider_reference = payment.provider_reference === "" ? providerReference : payment.provider_reference;
  const paid = { ...payment, paid_reference: providerReference, provider_reference };
  return { task: { ...task, payment: paid }, issueId: undefined, events: [] };
}

/** The service's reference is unknown; the provider's reference may be known. */
async function decideUnknown(tx: Transaction, source: AssertionSource, money: AssertedPayment): Promise<Decision> {
  const { configId } = source;
  const { providerReference } = money;
  const payment = await findPaymentByProviderReference(tx, { configId, providerReference });
  return misfit(tx, kindOfUnknown(payment), { source, money, payment });
}

const kindOfUnknown = (payment: PaymentRow | undefined): IssueKind =>
  payment === undefined ? "unmatched_money" : "reference_mismatch";

/** The first difference. References and accounts come before currencies and amounts. */
function mismatchOf(payment: PaymentRow, money: AssertedPayment): IssueKind | undefined {
  const { provider_reference: registered } = payment;
  if (registered !== "" && registered !== money.providerReference) return "reference_mismatch";
  if (payment.account !== money.account) return "account_mismatch";
  if (payment.currency !== money.currency) return "currency_mismatch";
  if (payment.amount_minor !== money.amountMinor) return differenceOfAmounts(payment.amount_minor, money.amountMinor);
  return undefined;
}

function misfit(tx: Transaction, kind: IssueKind, about: Misfit): Decision {
  return { outcome: kind, intentId: about.payment?.intent_id ?? null, write: () => raiseIssue(tx, kind, about) };
}

function addAsEvidence(tx: Transaction, resolved: Resolution, about: Misfit): Decision {
  const { payment } = about;
  return {
    outcome: resolved.status,
    intentId: payment?.intent_id ?? null,
    write: () => addEvidence(tx, resolved, about),
  };
}
