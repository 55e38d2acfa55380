/**
 * Raises issues. A payment that does not fit becomes one issue for each kind of difference, however often it is asserted.
 * The station of the intent that it names is notified, so that its cashier does not assume that no money has moved.
 *
 * Called by asserted-payments.ts and tasks.ts; calls sql only. The caller starts the returned task after its commit.
 */
import { createHash } from "node:crypto";
import { moneyName } from "../bus/messages/intents.ts";
import type { ISSUE_EVENT_TYPES, IssueEvidence, IssueKind } from "../bus/messages/issues.ts";
import type { Queryable, Transaction } from "../db/pool.ts";
import { announceIssues } from "../issues/recording.ts";
import { raiseAfterClosing } from "../issues/sql/after-closing.ts";
import type { AssertedPayment } from "./adapters/adapter.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import {
  addFurtherEvidence,
  type FurtherEvidence,
  findIssueOfMoney,
  insertIssue,
  type Resolution,
} from "./sql/issues.ts";
import { clearEnd, type PaymentRow } from "./sql/payments.ts";
import { armNotice, type Task } from "./sql/tasks.ts";
import type { KnownTask } from "./task-runner.ts";

export interface AssertionSource {
  readonly configId: number;
  readonly organizationId: number;
  /** Identifies the money where the provider gives it no reference. */
  readonly eventKey: string;
  /** A callback's event type, or how the service has polled the provider. */
  readonly learnedFrom: string;
}

export interface Misfit {
  readonly source: AssertionSource;
  readonly money: AssertedPayment;
  readonly payment: PaymentRow | undefined;
  /** The closed issue of this money whose evidence the assertion changes. */
  readonly supersedesId?: number;
}

/** Money with one difficulty is one issue, so that the issue shows all amounts that were asserted for the money. */
const AMOUNT_KINDS: readonly IssueKind[] = ["amount_over", "amount_under", "amount_unknown"];

/** All kinds that share their difficulty with this kind. */
export function difficultyOf(kind: IssueKind): readonly IssueKind[] {
  return AMOUNT_KINDS.includes(kind) ? AMOUNT_KINDS : [kind];
}

export interface Written {
  /** The caller starts it after the commit; this process has claimed it already. */
  readonly task: KnownTask | undefined;
  /** The id of a new issue. */
  readonly issueId: number | undefined;
  /** What the service publishes about issues. */
  readonly events: readonly { readonly type: (typeof ISSUE_EVENT_TYPES)[number]; readonly issueId: number }[];
}

const NOTHING: Written = { task: undefined, issueId: undefined, events: [] };
export const writeNothing = async (): Promise<Written> => NOTHING;

export async function raiseIssue(tx: Transaction, kind: IssueKind, about: Misfit): Promise<Written> {
  const { source, money, payment } = about;
  const { said, ...asserted } = money;
  const { configId, learnedFrom } = source;
  const name = nameOf(source, money);
  const sought = { configId, kinds: difficultyOf(kind), moneyName: name };
  const known = await findIssueOfMoney(tx, sought);
  // The money has this issue already. What is new in the assertion is further evidence.
  if (known !== undefined && !(known.isClosed && about.supersedesId !== undefined))
    return await addEvidence(tx, known, about);
  const raised = await insertIssue(tx, {
    ...source,
    kind,
    supersedesId: about.supersedesId,
    moneyName: name,
    payment: payment === undefined ? undefined : placeOf(payment),
    amountMinor: money.amountMinor,
    currency: money.currency,
    providerReference: money.providerReference,
    assertedAccount: money.account,
    evidence: { learnedFrom, asserted, said, registered: registeredOf(payment) },
  });
  if (raised === undefined) {
    const meanwhile = await findIssueOfMoney(tx, sought);
    return meanwhile === undefined ? NOTHING : await addEvidence(tx, meanwhile, about);
  }
  const { issueId } = raised;
  const opened = { type: "issues_opened", issueId } as const;
  const { supersedesId } = about;
  const events = supersedesId === undefined ? [opened] : [opened, ...(await nameAfterClosing(tx, supersedesId, money))];
  if (payment === undefined) return { task: undefined, issueId, events };
  await clearEnd(tx, payment.intent_id);
  const task = await notifyOfIssue(tx, { intentId: payment.intent_id, kind, issueId });
  return { task: { ...task, payment }, issueId, events };
}

/**
 * Adds an assertion to the issue that its money has already. The station of the intent that the assertion names is
 * notified, also when the issue is closed, or names another intent or none.
 */
export async function addEvidence(
  tx: Transaction,
  issue: Pick<Resolution, "issueId" | "kind" | "intentId"> & Partial<Pick<Resolution, "status">>,
  { source, money, payment }: Misfit,
): Promise<Written> {
  const { issueId, kind, status } = issue;
  const evidence = evidenceOf(source, money);
  const { isNew, isBack } = await addFurtherEvidence(tx, issueId, evidence);
  const type = isBack ? ("issues_opened" as const) : ("issues_changed" as const);
  const events = isNew || isBack ? [{ type, issueId }, ...(await nameAfterClosing(tx, issueId, money))] : [];
  if (payment === undefined) return { ...NOTHING, events };
  const { intent_id: intentId } = payment;
  const isOfIntent = issue.intentId === intentId;
  // No notice: the money of this intent has paid an order, or the assertion is not new.
  if (isOfIntent && (status === "attributed" || !isNew)) return { ...NOTHING, events };
  await clearEnd(tx, intentId);
  const about = isOfIntent ? { since: createHash("sha256").update(evidence.said).digest("hex").slice(0, 16) } : {};
  const task = await notifyOfIssue(tx, { intentId, kind, issueId, ...about });
  return { task: { ...task, payment }, issueId: undefined, events };
}

/** Names an assertion about money whose issue belongs to a closed period. */
async function nameAfterClosing(
  tx: Transaction,
  issueId: number,
  { amountMinor, currency }: AssertedPayment,
): Promise<Written["events"]> {
  const raised = await raiseAfterClosing(tx, { issueId, amountMinor, currency });
  if (raised === undefined) return [];
  return [{ type: raised.outcome === "changed" ? "issues_changed" : "issues_opened", issueId: raised.issueId }];
}

/** Comes last in the transaction. */
export async function announceWritten(tx: Transaction, organizationId: number, { events }: Written): Promise<void> {
  for (const { type, issueId } of events)
    await announceIssues(tx, type, [{ organization_id: organizationId, issue_id: issueId }]);
}

/** The task that notifies the intent's station. */
export async function notifyOfIssue(
  tx: Queryable,
  issue: {
    readonly intentId: number;
    readonly kind: IssueKind;
    readonly issueId: number;
    /** Distinguishes a later notice of the issue, which the station would otherwise treat as a repetition. */
    readonly since?: string;
  },
): Promise<Task> {
  const { intentId, kind, issueId, since } = issue;
  const notice = { issue: kind, issueId, nth: since === undefined ? `${issueId}` : `${issueId}:${since}` };
  const { taskClaimMs: dueInMs, noticesWaiting: atMost } = PROVIDER_LIMITS;
  return await armNotice(tx, { intentId, notice, dueInMs, atMost });
}

/** The match key of the money: the provider's reference, or the event that reported the money. */
export function nameOf(
  source: Pick<AssertionSource, "eventKey">,
  money: Pick<AssertedPayment, "providerReference">,
): string {
  return moneyName(money.providerReference, source.eventKey);
}

/** A later assertion of a payment that has an issue already. */
function evidenceOf(
  { learnedFrom }: Pick<AssertionSource, "learnedFrom">,
  { said, amountMinor, currency, account }: AssertedPayment,
): FurtherEvidence {
  return { said: evidenceText(said), learnedFrom, amountMinor, currency, account };
}

/** The provider's text as further evidence stores it. */
export function evidenceText(said: string): string {
  return said.slice(0, PROVIDER_LIMITS.furtherEvidenceCharacters).toWellFormed();
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
