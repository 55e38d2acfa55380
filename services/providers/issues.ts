/**
 * Issues: money that does not fit. Lists them and closes them with a reason; the payment itself may close one too. Also the
 * rules that attributions.ts shares: two decisions about the same money, a person's and the payment's, must never be open
 * at once.
 *
 * Called by attributions.ts; calls sql only and starts tasks through the task runner. issue-recording.ts raises the issues.
 */
import { amountFitsWire } from "../../machines/currency.ts";
import { requirePermission } from "../bus/messages/caller.ts";
import { comparableReference } from "../bus/messages/intents.ts";
import type * as bus from "../bus/messages/issues.ts";
import type { ReplyOf, RequestOf } from "../bus/operation.ts";
import { readPage } from "../bus/page.ts";
import { RefusedError } from "../bus/refusals.ts";
import type { Database, Transaction } from "../db/pool.ts";
import type { ProvidersDeps } from "./deps.ts";
import { checkReason, personActor, SYSTEM } from "./events.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { findConfigById } from "./sql/configs.ts";
import { recordEvents } from "./sql/events.ts";
import * as sql from "./sql/issues.ts";
import { lockMoney, lockPaidPayments, lockPayment, lockSettledMoney } from "./sql/payments.ts";
import { armTask, hasOpenTask } from "./sql/tasks.ts";
import type { KnownTask } from "./task-runner.ts";

/** Newest first. Refuses with `permission_denied`. */
export async function listIssues(
  deps: ProvidersDeps,
  { caller, status, beforeId, limit }: RequestOf<typeof bus.listIssues>,
): Promise<ReplyOf<typeof bus.listIssues>> {
  requirePermission(caller, "reconciliation.manage");
  const { organizationId } = caller;
  const { page, hasMore } = await readPage<bus.Issue>(limit, async (last, count) => {
    const wanted = { organizationId, status, beforeId: last?.issueId ?? beforeId, limit: count };
    return (await sql.listIssues(deps.database, wanted)).map(toIssue);
  });
  return { issues: page, hasMore };
}

/** Refuses with `permission_denied`, `not_found`, `invalid_request` or `conflict` with a reason of `ISSUE_CONFLICTS`. */
export async function closeIssue(
  deps: ProvidersDeps,
  { caller, issueId, reason }: RequestOf<typeof bus.closeIssue>,
): Promise<ReplyOf<typeof bus.closeIssue>> {
  requirePermission(caller, "reconciliation.manage");
  checkReason(reason);
  const { organizationId, userId } = caller;
  const seen = await sql.findIssue(deps.database, { organizationId, issueId });
  if (seen === undefined) throw new RefusedError({ code: "not_found" });
  const closed = await deps.database.begin(async (tx) => {
    await lockMoneyOf(tx, seen);
    const issue = await sql.lockIssue(tx, { organizationId, issueId });
    if (issue === undefined) throw new RefusedError({ code: "not_found" });
    if (isRepetition(issue, { caller, reason })) return { issue, task: undefined };
    requireOpen(issue);
    requireUnattributed(issue);
    await requireClosable(tx, issue, deps.bus.clock.nowMs());
    const task = await resumeEnd(tx, deps, issue);
    const subject = { kind: "provider_issue", id: issueId } as const;
    const data = { kind: issue.kind, reason };
    const actor = personActor(caller);
    await recordEvents(tx, [{ organizationId, actor, action: "provider_issue_closed", subject, data }]);
    const resolution = { status: "closed", by: userId, reason, orderId: null, transactionId: null } as const;
    return { issue: await sql.resolveIssue(tx, issueId, resolution), task };
  });
  if (closed.task !== undefined) deps.tasks.start(closed.task);
  return { issue: toIssue(closed.issue) };
}

/** The same person repeats the request, because an answer was lost. */
function isRepetition(
  { status, resolved_by: by, reason: given }: sql.IssueRow,
  { caller, reason }: Pick<RequestOf<typeof bus.closeIssue>, "caller" | "reason">,
): boolean {
  return status === "closed" && by === caller.userId && given === reason;
}

/** Closes issues whose money has settled its order since. The audit log names the system. */
export async function closeSettledIssues(database: Database): Promise<void> {
  await database.begin(async (tx) => {
    const closed = await sql.closeSettledIssues(tx, PROVIDER_LIMITS.settledIssuesPerTurn);
    if (closed.length === 0) return;
    const events = closed.map(({ issue_id: id, organization_id: organizationId, kind, reason, transaction_id }) => ({
      organizationId,
      actor: SYSTEM,
      action: "provider_issue_closed",
      subject: { kind: "provider_issue" as const, id },
      data: { kind, reason, transaction_id },
    }));
    await recordEvents(tx, events);
  });
}

/** With these the station has refused for good to settle its intent with the money. */
const FINAL: ReadonlySet<sql.IssueKind> = new Set(["late_money", "duplicate_money"]);

/** Locks the issue's money until the transaction ends. Comes before every row lock of the transaction. */
export async function lockMoneyOf(
  tx: Transaction,
  issue: Pick<sql.IssueRow, "organization_id" | "provider_reference">,
): Promise<void> {
  const { organization_id: organizationId } = issue;
  const providerReference = comparableReference(issue.provider_reference);
  if (providerReference !== "") await lockMoney(tx, { organizationId, providerReference });
}

/**
 * No payment has or takes the issue's money until the transaction ends, whatever the issue's kind: a provider may have
 * asserted the same money correctly before or since. The caller has locked the money. Refuses with `conflict`.
 */
async function requireFreeMoney(tx: Transaction, issue: sql.IssueRow, nowMs: number): Promise<void> {
  const paid = await sql.findOrderPaidWith(tx, issue.money_names);
  if (paid !== undefined) throw moneyHasPaid(paid);
  await requireUnclaimed(tx, issue, nowMs);
}

/**
 * Money that may still pay cannot be closed as paid back. A difference in money that has paid can be closed. An issue that
 * its payment has settled closes without a person. Refuses with `conflict`.
 */
async function requireClosable(tx: Transaction, issue: sql.IssueRow, nowMs: number): Promise<void> {
  await lockSettledMoney(tx, issue.money_key);
  const others = await sql.findOtherIssues(tx, issue);
  const attributing = others.find(({ status, is_attributed: isAttributed }) => status === "open" && isAttributed);
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

/** No payment is about to take the money, by whichever config of its account, and no cashier may settle it. */
async function requireUnclaimed(tx: Transaction, issue: sql.IssueRow, nowMs: number): Promise<void> {
  const { config_id: configId, provider_reference: providerReference, money_names: names } = issue;
  for (const payment of await lockPaidPayments(tx, { configId, providerReference, names })) {
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

/** What can pay an order: money with a provider reference and one amount, that has not paid and was not closed. */
export async function requireAttributable(tx: Transaction, issue: sql.IssueRow, nowMs: number): Promise<void> {
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
  const isOfOneAmount = (other: Pick<sql.IssueRow, "amount_minor" | "currency" | "said_differently">): boolean =>
    !other.said_differently && other.amount_minor === issue.amount_minor && other.currency === issue.currency;
  if (![issue, ...others].every(isOfOneAmount)) throw contradicted();
}

/** For every order: the amount is known and not contradicted, and a reference keeps it from paying twice. Refuses with `conflict`. */
export function requireKnownMoney(issue: sql.IssueRow): asserts issue is sql.IssueRow & KnownAmount {
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
 * What the intent's station learns when an issue is resolved. An end that the provider reported while the issue was open is
 * passed on now, unless the task finds another open issue. The payment is locked, so that an end that is reported at this
 * moment is visible here, or finds the issue resolved. Where the intent has ended and the provider has not reported an end,
 * the task asks the provider, if it has an API. The caller starts the returned task after its commit. Comes before the audit
 * log is written, because it locks rows.
 */
export async function resumeEnd(
  tx: Transaction,
  { adapters }: Pick<ProvidersDeps, "adapters">,
  { intent_id: intentId }: Pick<sql.IssueRow, "intent_id">,
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

/** Why an issue cannot be resolved so: a reason for a program and a sentence for a person. */
export function issueConflict(reason: (typeof bus.ISSUE_CONFLICTS)[number], detail: string): RefusedError {
  return new RefusedError({ code: "conflict", reason, detail });
}

/** Refuses with `conflict` unless the issue is open. */
export function requireOpen({ status }: Pick<sql.IssueRow, "status">): void {
  if (status !== "open") throw issueConflict(`issue_${status}`, `This issue is ${status}.`);
}

/** Refuses with `conflict` while an attribution is at the payment seam. */
export function requireUnattributed({ attribution }: Pick<sql.IssueRow, "attribution">): void {
  if (attribution !== null)
    throw issueConflict("attribution_under_way", "This issue is just being attributed; try again in a moment.");
}

export function toIssue(row: sql.IssueRow): bus.Issue {
  return {
    issueId: row.issue_id,
    kind: row.kind,
    status: row.status,
    configId: row.config_id,
    stationId: row.station_id,
    intentId: row.intent_id,
    orderId: row.order_id,
    ...amountOf(row),
    providerReference: row.provider_reference,
    evidence: row.evidence,
    openedAtMs: row.opened_at.getTime(),
    resolvedAtMs: row.resolved_at?.getTime() ?? null,
    resolvedBy: row.resolved_by,
    reason: row.reason,
    transactionId: row.transaction_id,
  };
}

/** An amount is shown whole or not at all; the provider's text is in the evidence. */
function amountOf({ amount_minor: amountMinor, currency }: sql.IssueRow): Pick<bus.Issue, "amountMinor" | "currency"> {
  if (currency === null || !/^[A-Z]{3}$/.test(currency)) return { amountMinor: null, currency: null };
  const fits = amountMinor !== null && amountFitsWire(BigInt(amountMinor), currency);
  return { amountMinor: fits ? amountMinor : null, currency };
}
