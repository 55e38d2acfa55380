/**
 * Money that does not fit becomes an issue, once for each difficulty, however often it is told; and the station of the
 * intent that it names hears of it, so that nobody there believes that no money has moved.
 */
import { createHash } from "node:crypto";
import { moneyName } from "../../bus/messages/intents.ts";
import type { IssueEvidence } from "../../bus/messages/issues.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";
import type { AssertedMoney } from "../adapters/adapter.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import {
  addWordsTo,
  type FurtherWords,
  findIssueOfMoney,
  type IssueKind,
  insertIssue,
  type Resolution,
} from "../sql/issues.ts";
import { forgetEnd, type PaymentRow } from "../sql/payments.ts";
import { armTelling, type Task } from "../sql/tasks.ts";
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

export async function raiseIssue(sql: Transaction, kind: IssueKind, about: Misfit): Promise<Written> {
  const { source, money, payment } = about;
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
    saidAccount: money.account,
    evidence: { learnedFrom, asserted, said, registered: registeredOf(payment) },
  });
  if (issueId === undefined) {
    // Known already. What the provider says differently now is evidence as well.
    const known = await findIssueOfMoney(sql, { configId, kind, moneyName: name });
    return known === undefined ? NOTHING : await keepWords(sql, known, about);
  }
  if (payment === undefined) return { task: undefined, issueId };
  await forgetEnd(sql, payment.intent_id);
  const task = await tellOfIssue(sql, { intentId: payment.intent_id, kind, issueId });
  return { task: { ...task, payment }, issueId };
}

/**
 * Keeps what is said now of a money that has an issue already. The station of the intent that it names now hears of it,
 * also when the issue is closed, or names another intent or none.
 */
export async function keepWords(
  sql: Transaction,
  issue: Pick<Resolution, "issueId" | "kind" | "intentId"> & Partial<Pick<Resolution, "status">>,
  { source, money, payment }: Misfit,
): Promise<Written> {
  const { issueId, kind, status } = issue;
  const words = wordsOf(source, money);
  const isNew = await addWordsTo(sql, issueId, words);
  if (payment === undefined) return NOTHING;
  const { intent_id: intentId } = payment;
  const isOfIntent = issue.intentId === intentId;
  // The money of this intent has paid an order, and the same is said again.
  if (isOfIntent && (status === "attributed" || !isNew)) return NOTHING;
  await forgetEnd(sql, intentId);
  const about = isOfIntent ? { since: createHash("sha256").update(words.said).digest("hex").slice(0, 16) } : {};
  const task = await tellOfIssue(sql, { intentId, kind, issueId, ...about });
  return { task: { ...task, payment }, issueId: undefined };
}

/** The task of telling the intent's station; the caller starts it when the transaction has committed. */
export async function tellOfIssue(
  sql: Queryable,
  issue: {
    readonly intentId: number;
    readonly kind: IssueKind;
    readonly issueId: number;
    /** Names a later telling of the same issue, which would be taken for a repetition otherwise. */
    readonly since?: string;
  },
): Promise<Task> {
  const { intentId, kind, issueId, since } = issue;
  const telling = { issue: kind, issueId, nth: since === undefined ? `${issueId}` : `${issueId}:${since}` };
  const { taskClaimMs: dueInMs, tellingsWaiting: atMost } = PROVIDER_LIMITS;
  return await armTelling(sql, { intentId, telling, dueInMs, atMost });
}

/** One name for one money: the provider's own reference, or the event that told of it. */
export function nameOf(source: Pick<MoneySource, "eventKey">, money: Pick<AssertedMoney, "providerReference">): string {
  return moneyName(money.providerReference, source.eventKey);
}

/** What a provider says of a money that has an issue already. */
export function wordsOf(
  { learnedFrom }: Pick<MoneySource, "learnedFrom">,
  { said, amountMinor, currency, account }: AssertedMoney,
): FurtherWords {
  const words = said.slice(0, PROVIDER_LIMITS.furtherWordsCharacters).toWellFormed();
  return { said: words, learnedFrom, amountMinor, currency, account };
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
export function registeredOf(payment: PaymentRow | undefined): NonNullable<IssueEvidence["registered"]> | null {
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
