/**
 * Money that does not fit becomes an issue, once for each difficulty, however often it is told; and the station of the
 * intent that it names hears of it, so that nobody there believes that no money has moved.
 */
import { moneyName } from "../../bus/messages/money-key.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { AssertedMoney } from "../adapters/adapter.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { addWords, type FurtherWords, type IssueKind, insertIssue } from "../sql/issues.ts";
import type { PaymentRow } from "../sql/payments.ts";
import { armTask, type Task } from "../sql/tasks.ts";
import type { KnownTask } from "../tasks/task-runner.ts";

export interface MoneySource {
  readonly configId: number;
  readonly organizationId: number;
  /** Names the money where the provider gives it no reference of its own. */
  readonly eventKey: string;
  /** Where it was learned: a callback's event type, or how the provider was asked. */
  readonly learnedFrom: string;
}

export interface Misfit {
  readonly source: MoneySource;
  readonly money: AssertedMoney;
  readonly payment: PaymentRow | undefined;
}

export interface Written {
  /** To be run when the transaction has committed; it is already taken by this process. */
  readonly task: KnownTask | undefined;
  /** A new issue. */
  readonly issueId: number | undefined;
}

const NOTHING: Written = { task: undefined, issueId: undefined };
export const writeNothing = async (): Promise<Written> => NOTHING;

export async function raiseIssue(
  sql: Transaction,
  kind: IssueKind,
  { source, money, payment }: Misfit,
): Promise<Written> {
  const { said, ...asserted } = money;
  const { configId, learnedFrom } = source;
  const name = nameOf(source, money);
  const issueId = await insertIssue(sql, {
    ...source,
    kind,
    moneyName: name,
    payment: payment === undefined ? undefined : placeOf(payment),
    amountMinor: money.amountMinor,
    currency: money.currency,
    providerReference: money.providerReference,
    evidence: { learnedFrom, asserted, said, registered: registeredOf(payment) },
  });
  if (issueId === undefined) {
    // Known already. What the provider says differently now is evidence as well.
    await addWords(sql, { configId, kind, moneyName: name }, wordsOf(source, money));
    return NOTHING;
  }
  if (payment === undefined) return { task: undefined, issueId };
  const task = await tellOfIssue(sql, { intentId: payment.intent_id, kind, issueId });
  return { task: { ...task, payment }, issueId };
}

/** The task of telling the intent's station; the caller starts it when the transaction has committed. */
export async function tellOfIssue(
  sql: Queryable,
  issue: { readonly intentId: number; readonly kind: IssueKind; readonly issueId: number },
): Promise<Task> {
  const { intentId, kind, issueId } = issue;
  const detail = { issue: kind, issueId };
  const claim = { dueInMs: PROVIDER_LIMITS.taskClaimMs };
  return await armTask(sql, { intentId, kind: "differ", detail, ...claim });
}

/** One name for one money: the provider's own reference, or the event that told of it. */
export function nameOf(source: Pick<MoneySource, "eventKey">, money: Pick<AssertedMoney, "providerReference">): string {
  return moneyName(money.providerReference, source.eventKey);
}

/** What a provider says of a money that has an issue already. */
export function wordsOf(
  { learnedFrom }: Pick<MoneySource, "learnedFrom">,
  { said, amountMinor, currency }: AssertedMoney,
): FurtherWords {
  const words = said.slice(0, PROVIDER_LIMITS.furtherWordsCharacters).toWellFormed();
  return { said: words, learnedFrom, amountMinor, currency };
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
