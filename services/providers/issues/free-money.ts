/** Two ways must never be open to the same money: an operator's decision, and the payment that it was asserted for. */
import { comparableReference } from "../../bus/messages/intents.ts";
import type { Transaction } from "../../db/pool.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { findOtherIssues, type IssueKind, type IssueRow } from "../sql/issues.ts";
import { findOrderPaidWith } from "../sql/orders.ts";
import { lockMoney, lockPaidPayments, lockSettledMoney } from "../sql/payments.ts";
import { hasOpenTask } from "../sql/tasks.ts";
import { issueConflict } from "./issue-conflict.ts";

/** With these the station has said for good that the money does not settle its intent. */
const FINAL: ReadonlySet<IssueKind> = new Set(["late_money", "duplicate_money"]);

/** Holds the issue's money until the transaction ends. Comes before every row that the transaction holds. */
export async function holdMoneyOf(
  sql: Transaction,
  issue: Pick<IssueRow, "organization_id" | "provider_reference">,
): Promise<void> {
  const { organization_id: organizationId } = issue;
  const providerReference = comparableReference(issue.provider_reference);
  if (providerReference !== "") await lockMoney(sql, { organizationId, providerReference });
}

/**
 * The issue's money is nobody's but the operator's, and stays so until the transaction ends. Whatever the issue says of it:
 * a provider may have named the same money rightly before or since. The caller holds the money. Refuses with `conflict`.
 */
async function requireFreeMoney(sql: Transaction, issue: IssueRow, nowMs: number): Promise<void> {
  const paid = await findOrderPaidWith(sql, issue.money_names);
  if (paid !== undefined) throw moneyHasPaid(paid);
  await requireUnclaimed(sql, issue, nowMs);
}

/**
 * "Paid back" must not be said of money that may pay yet. What differs of a money that has paid can be dealt with outside;
 * an issue that the payment itself has settled is closed by itself. Refuses with `conflict`.
 */
export async function requireClosable(sql: Transaction, issue: IssueRow, nowMs: number): Promise<void> {
  await lockSettledMoney(sql, issue.money_key);
  const others = await findOtherIssues(sql, issue);
  const attributing = others.find(({ status, is_attributed: isAttributed }) => status === "open" && isAttributed);
  if (attributing !== undefined) {
    const detail = `This money is just being attributed by issue ${attributing.issue_id}; try again in a moment.`;
    throw issueConflict("attribution_under_way", detail);
  }
  const paid = await findOrderPaidWith(sql, issue.money_names);
  if (paid === undefined) return await requireUnclaimed(sql, issue, nowMs);
  if (issue.kind === "settlement_refused" && paid.intentId === issue.intent_id) throw moneyHasPaid(paid);
}

const moneyHasPaid = ({ orderId }: { readonly orderId: number }) =>
  issueConflict("money_has_paid", `This money has paid order ${orderId}.`);

/** No payment is about to take the money, whichever config of its account was told, and no cashier may settle it. */
async function requireUnclaimed(sql: Transaction, issue: IssueRow, nowMs: number): Promise<void> {
  const { config_id: configId, provider_reference: providerReference, money_names: names } = issue;
  for (const payment of await lockPaidPayments(sql, { configId, providerReference, names })) {
    const { intent_id: intentId, expires_at: expiresAt } = payment;
    if (await hasOpenTask(sql, { intentId, kind: "confirm" })) {
      throw issueConflict("money_may_settle", "The station is just being told of this money; look again in a moment.");
    }
    const isRefused = FINAL.has(issue.kind) && issue.intent_id === intentId;
    if (isRefused || nowMs >= expiresAt.getTime() + PROVIDER_LIMITS.intentEndsMs) continue;
    throw issueConflict("money_may_settle", "The cashier may still settle this money until its collection has ended.");
  }
}

/** What can pay an order: money that has a name, of which one thing only is said, and of which nobody has disposed. */
export async function requireAttributable(sql: Transaction, issue: IssueRow, nowMs: number): Promise<void> {
  requireKnownMoney(issue);
  await requireFreeMoney(sql, issue, nowMs);
  const others = await findOtherIssues(sql, issue);
  const attributed = others.find(({ is_attributed: isAttributed }) => isAttributed);
  if (attributed !== undefined)
    throw issueConflict("money_attributed", `This money pays an order already, by issue ${attributed.issue_id}.`);
  // One that its own payment has closed has paid, and was refused above.
  const closed = others.find(({ status }) => status === "closed");
  if (closed !== undefined)
    throw issueConflict("money_closed", `This money was dealt with and closed as issue ${closed.issue_id}.`);
  const isOfOneAmount = (other: Pick<IssueRow, "amount_minor" | "currency" | "said_differently">): boolean =>
    !other.said_differently && other.amount_minor === issue.amount_minor && other.currency === issue.currency;
  if (![issue, ...others].every(isOfOneAmount)) throw contradicted();
}

/**
 * Whatever the order is: how much the money is, one thing only, and a name by which it pays once. Refuses with `conflict`.
 */
export function requireKnownMoney(issue: IssueRow): asserts issue is IssueRow & KnownAmount {
  if (issue.amount_minor === null || issue.currency === null) {
    const detail = "How much this money is cannot be read from what the provider has said; see the evidence.";
    throw issueConflict("amount_unknown", detail);
  }
  if (issue.said_differently) throw contradicted();
  if (issue.provider_reference === "") {
    const detail =
      "The provider has given this money no reference of its own, so nothing would keep it from paying twice.";
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
    "The provider has said different amounts or accounts of this money; see the evidence.",
  );
