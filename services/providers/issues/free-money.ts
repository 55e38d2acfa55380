/** Two ways must never be open to the same money: an operator's decision, and the payment that it was asserted for. */
import { comparableReference, moneyKey } from "../../bus/messages/money-key.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { Transaction } from "../../db/pool.ts";
import { PROVIDER_LIMITS } from "../limits.ts";
import { findOtherIssues, type IssueKind, type IssueRow } from "../sql/issues.ts";
import { findOrderPaidWith } from "../sql/orders.ts";
import { lockMoney, lockPaidPayment } from "../sql/payments.ts";
import { hasOpenTask } from "../sql/tasks.ts";

/** With these the station has said for good that the money does not settle its intent. */
const FINAL: ReadonlySet<IssueKind> = new Set(["late_money", "duplicate_money"]);

type Money = Pick<IssueRow, "organization_id" | "config_id" | "money_key" | "provider_reference" | "account_money_key">;

/** Holds the issue's money until the transaction ends. Comes before every row that the transaction holds. */
export async function holdMoneyOf(sql: Transaction, issue: Money): Promise<void> {
  const { organization_id: organizationId } = issue;
  const providerReference = comparableReference(issue.provider_reference);
  if (providerReference !== "") await lockMoney(sql, { organizationId, providerReference });
}

/**
 * The issue's money is nobody's but the operator's, and stays so until the transaction ends. Whatever the issue says of it:
 * a provider may have named the same money rightly before or since. The caller holds the money. Refuses with `conflict`.
 */
export async function requireFreeMoney(sql: Transaction, issue: IssueRow): Promise<void> {
  const paid = await findOrderPaidBy(sql, issue);
  if (paid !== undefined) throw conflict(`This money has paid order ${paid.orderId}.`);
  await requireUnclaimed(sql, issue);
}

/**
 * "Paid back" must not be said of money that may pay yet. What differs of a money that has paid can be dealt with outside;
 * an issue that the payment itself has settled is closed by itself. Refuses with `conflict`.
 */
export async function requireClosable(sql: Transaction, issue: IssueRow): Promise<void> {
  if (issue.kind === "settlement_refused") return await requireFreeMoney(sql, issue);
  if ((await findOrderPaidBy(sql, issue)) === undefined) await requireUnclaimed(sql, issue);
}

function findOrderPaidBy(sql: Transaction, issue: Money): ReturnType<typeof findOrderPaidWith> {
  const { config_id: configId, money_key: name, account_money_key: accountMoneyKey } = issue;
  return findOrderPaidWith(sql, { moneyKey: moneyKey({ configId, name }), accountMoneyKey });
}

/** No payment is about to take the money, and no cashier may settle it. */
async function requireUnclaimed(sql: Transaction, issue: IssueRow): Promise<void> {
  const { config_id: configId, provider_reference: providerReference } = issue;
  const payment = await lockPaidPayment(sql, { configId, providerReference });
  if (payment === undefined) return;
  const { intent_id: intentId, expires_at: expiresAt } = payment;
  if (await hasOpenTask(sql, { intentId, kind: "confirm" })) {
    throw conflict("The station is just being told of this money; look again in a moment.");
  }
  if (FINAL.has(issue.kind) || Date.now() >= expiresAt.getTime() + PROVIDER_LIMITS.intentEndsMs) return;
  throw conflict("The cashier may still settle this money until its collection has ended.");
}

/** What can pay an order: money that has a name, of which one thing only is said, and of which nobody has disposed. */
export async function requireAttributable(sql: Transaction, issue: IssueRow): Promise<void> {
  if (issue.provider_reference === "") {
    throw conflict(
      "The provider has given this money no reference of its own, so nothing would keep it from paying twice.",
    );
  }
  await requireFreeMoney(sql, issue);
  const others = await findOtherIssues(sql, issue);
  const attributed = others.find(({ is_attributed: isAttributed }) => isAttributed);
  if (attributed !== undefined) throw conflict(`This money pays an order already, by issue ${attributed.issue_id}.`);
  // One that its own payment has closed has paid, and was refused above.
  const closed = others.find(({ status }) => status === "closed");
  if (closed !== undefined) throw conflict(`This money was dealt with and closed as issue ${closed.issue_id}.`);
  const isOfOneAmount = (other: Pick<IssueRow, "amount_minor" | "currency" | "said_differently">): boolean =>
    !other.said_differently && other.amount_minor === issue.amount_minor && other.currency === issue.currency;
  if (![issue, ...others].every(isOfOneAmount)) {
    throw conflict("The provider has said different amounts of this money; see the evidence.");
  }
}

function conflict(detail: string): RefusedError {
  return new RefusedError({ code: "conflict", detail });
}
