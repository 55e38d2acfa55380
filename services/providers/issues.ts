/**
 * The rules of issues that are about money of a provider: two decisions about the same money, a person's and the payment's,
 * must never be open at once. Also closes an issue that the payment itself has settled.
 *
 * The life cycle in services/issues calls them through `moneyRules`, and so does attributions.ts; issue-recording.ts raises
 * the issues.
 */
import { comparableReference } from "../bus/messages/intents.ts";
import type { IssueKind } from "../bus/messages/issues.ts";
import type { Database, Transaction } from "../db/pool.ts";
import { SYSTEM } from "../db/provider-audit-log.ts";
import type { MoneyRules } from "../issues/closing.ts";
import { issueConflict, isUnresolved } from "../issues/life-cycle.ts";
import { announceIssues, recordSteps } from "../issues/recording.ts";
import type { IssueRow } from "../issues/sql/issues.ts";
import type { ProvidersDeps } from "./deps.ts";
import { notifyOfIssue } from "./issue-recording.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { findConfigById } from "./sql/configs.ts";
import * as sql from "./sql/issues.ts";
import { lockMoney, lockPaidPayments, lockPayment, lockSettledMoney } from "./sql/payments.ts";
import { armTask, hasOpenTask } from "./sql/tasks.ts";
import type { KnownTask } from "./task-runner.ts";

/** What the closing of an issue of provider money must not break (services/issues/closing.ts). */
export function moneyRules(deps: Pick<ProvidersDeps, "adapters" | "bus" | "tasks">): MoneyRules {
  const start = (task: KnownTask | undefined) => () => {
    if (task !== undefined) deps.tasks.start(task);
  };
  return {
    lock: lockMoneyOf,
    async beforeClosing(tx, issue) {
      await requireClosable(tx, issue, deps.bus.clock.nowMs());
      return start(await resumeEnd(tx, deps, issue));
    },
    async afterUndoing(tx, closed) {
      return start(await notifyAgain(tx, closed));
    },
  };
}

/**
 * The closing may have cleared the intent at its station, so the service notifies the station again that money may have
 * moved. A paid intent needs no notice.
 */
async function notifyAgain(tx: Transaction, closed: IssueRow): Promise<KnownTask | undefined> {
  const { intent_id: intentId, kind, issue_id: issueId, resolved_at: resolvedAt } = closed;
  if (intentId === null) return undefined;
  const payment = await lockPayment(tx, intentId);
  if (payment === undefined || payment.paid_reference !== null) return undefined;
  const since = `undone${resolvedAt?.getTime()}`;
  return { ...(await notifyOfIssue(tx, { intentId, kind, issueId, since })), payment };
}

/** Closes issues whose money has settled its order since. The audit log names the system. */
export async function closeSettledIssues(database: Database): Promise<void> {
  await database.begin(async (tx) => {
    const closed = await sql.closeSettledIssues(tx, PROVIDER_LIMITS.settledIssuesPerTurn);
    if (closed.length === 0) return;
    const steps = closed.map((issue) => ({
      issue,
      actor: SYSTEM,
      action: "closed" as const,
      data: { kind: issue.kind, reason: issue.reason, transaction_id: issue.transaction_id },
    }));
    await recordSteps(tx, steps);
    await announceIssues(tx, "issues_closed", closed);
  });
}

/** The kinds with which a station has finally refused to settle its intent with the money. */
const FINAL: ReadonlySet<IssueKind> = new Set(["late_money", "duplicate_money"]);

/** Locks the issue's money until the transaction ends. Comes before every row lock of the transaction. */
export async function lockMoneyOf(
  tx: Transaction,
  issue: Pick<IssueRow, "organization_id" | "provider_reference">,
): Promise<void> {
  const { organization_id: organizationId } = issue;
  const providerReference = comparableReference(issue.provider_reference);
  if (providerReference !== "") await lockMoney(tx, { organizationId, providerReference });
}

/**
 * Requires that no payment has the issue's money, or takes it before the transaction ends. The issue's kind does not
 * matter: a provider may have asserted the same money correctly before or since. The caller has locked the money.
 * Refuses with `conflict`.
 */
async function requireFreeMoney(tx: Transaction, issue: IssueRow, nowMs: number): Promise<void> {
  const paid = await sql.findOrderPaidWith(tx, issue.money_names);
  if (paid !== undefined) throw moneyHasPaid(paid);
  await requireUnclaimed(tx, issue, nowMs);
}

/**
 * Refuses with `conflict` to close an issue as paid back while its money may still pay. A difference in money that has
 * paid can be closed. An issue that its payment has settled closes without a person.
 */
async function requireClosable(tx: Transaction, issue: IssueRow, nowMs: number): Promise<void> {
  await lockSettledMoney(tx, issue.subject_key);
  const others = await sql.findOtherIssues(tx, issue);
  const attributing = others.find((other) => isUnresolved(other) && other.is_attributed);
  if (attributing !== undefined) {
    const detail = `This money is just being attributed by issue ${attributing.issue_id}; try again in a moment.`;
    throw issueConflict("attribution_under_way", detail);
  }
  const paid = await sql.findOrderPaidWith(tx, issue.money_names);
  if (paid === undefined) return await requireUnclaimed(tx, issue, nowMs);
  if (issue.kind === "settlement_refused" && paid.intentId === issue.intent_id) throw moneyHasPaid(paid);
}

const moneyHasPaid = ({ orderId }: { readonly orderId: number }) =>
  issueConflict("money_has_paid", `This money has paid order ${orderId}.`);

/**
 * Requires that no payment of any config of the account is about to take the money, and that no cashier may settle it.
 */
async function requireUnclaimed(tx: Transaction, issue: IssueRow, nowMs: number): Promise<void> {
  const { config_id: configId, provider_reference: providerReference, money_names: names } = issue;
  for (const payment of await lockPaidPayments(tx, { configId: configId ?? 0, providerReference, names })) {
    const { intent_id: intentId, expires_at: expiresAt } = payment;
    if (await hasOpenTask(tx, { intentId, kind: "confirm" })) {
      throw issueConflict(
        "money_may_settle",
        "The station is just being notified of this money; try again in a moment.",
      );
    }
    const isRefused = FINAL.has(issue.kind) && issue.intent_id === intentId;
    if (isRefused || nowMs >= expiresAt.getTime() + PROVIDER_LIMITS.intentEndsMs) continue;
    throw issueConflict("money_may_settle", "The cashier may still settle this money until its collection has ended.");
  }
}

/**
 * Requires money that can pay: it has a provider reference and one amount, has not paid, and no other issue has closed
 * it.
 */
export async function requireAttributable(tx: Transaction, issue: IssueRow, nowMs: number): Promise<void> {
  requireKnownMoney(issue);
  await requireFreeMoney(tx, issue, nowMs);
  const others = await sql.findOtherIssues(tx, issue);
  const attributed = others.find(({ is_attributed: isAttributed }) => isAttributed);
  if (attributed !== undefined)
    throw issueConflict("money_attributed", `This money pays an order already, by issue ${attributed.issue_id}.`);
  // Money of an issue that its payment has closed has paid, and was refused above.
  const closed = others.find(({ status }) => status === "closed");
  if (closed !== undefined)
    throw issueConflict("money_closed", `This money was dealt with and closed as issue ${closed.issue_id}.`);
  const isOfOneAmount = (other: Pick<IssueRow, "amount_minor" | "currency" | "said_differently">): boolean =>
    !other.said_differently && other.amount_minor === issue.amount_minor && other.currency === issue.currency;
  if (![issue, ...others].every(isOfOneAmount)) throw contradicted();
}

/** Requires an amount that is known and not contradicted, and a reference that keeps the money from paying twice. */
export function requireKnownMoney(issue: IssueRow): asserts issue is IssueRow & KnownAmount {
  if (issue.amount_minor === null || issue.currency === null) {
    const detail = "How much this money is cannot be read from what the provider has sent; see the evidence.";
    throw issueConflict("amount_unknown", detail);
  }
  if (issue.said_differently) throw contradicted();
  if (issue.provider_reference === "") {
    const detail = "The provider has given this money no reference, so it could pay twice.";
    throw issueConflict("money_unnamed", detail);
  }
}

interface KnownAmount {
  readonly amount_minor: string;
  readonly currency: string;
}

const contradicted = () =>
  issueConflict(
    "amount_contradicted",
    "The provider has reported different amounts or accounts for this money; see the evidence.",
  );

/**
 * Returns the task that notifies the intent's station when an issue is resolved. If the provider has reported an end
 * while the issue was open, the task passes it on, unless it finds another open issue. If the intent has ended and the
 * provider has reported no end, the task asks the provider, if that has an API. The caller starts the task after its
 * commit.
 *
 * Locks the payment, so that an end that is reported at this moment is visible here or finds the issue resolved. Comes
 * before the audit log is written, because it locks rows.
 */
export async function resumeEnd(
  tx: Transaction,
  { adapters }: Pick<ProvidersDeps, "adapters">,
  { intent_id: intentId }: Pick<IssueRow, "intent_id">,
): Promise<KnownTask | undefined> {
  if (intentId === null) return undefined;
  const payment = await lockPayment(tx, intentId);
  // Confirmed money has moved; only an end makes it certain that none has.
  if (payment === undefined || payment.paid_reference !== null) return undefined;
  const claim = { intentId, detail: {}, dueInMs: PROVIDER_LIMITS.taskClaimMs };
  if (payment.ended_at !== null) return { ...(await armTask(tx, { ...claim, kind: "clear" })), payment };
  const config = await findConfigById(tx, payment.config_id);
  if (payment.withdrawn_at === null || config === undefined || !adapters[config.kind].answersQuestions)
    return undefined;
  if (await hasOpenTask(tx, { intentId, kind: "withdraw" })) return undefined;
  return { ...(await armTask(tx, { ...claim, kind: "withdraw" })), payment };
}
