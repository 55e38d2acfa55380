/**
 * An operator says which order the money pays after all. It goes through the payment seam like every other money, with
 * an intent id of its own, which is written down before the seam is asked: whatever crashes, the very same question is
 * asked again, and the seam settles an intent once.
 */

import { requirePermission } from "../../bus/access.ts";
import type { Caller } from "../../bus/messages/caller.ts";
import type { attributeIssue } from "../../bus/messages/providers.ts";
import { prepareIntent } from "../../bus/messages/settlement.ts";
import { call, type ReplyOf, type RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { Transaction } from "../../db/pool.ts";
import type { ProvidersDeps } from "../deps.ts";
import { type Attribution, type IssueRow, lockIssue, startAttribution } from "../sql/issues.ts";
import { findOrderStation, hasPaidItsIntent } from "../sql/orders.ts";
import { lockPayment } from "../sql/payments.ts";
import { finishAttribution } from "./finish-attribution.ts";
import { issueOnWire } from "./issue-wire.ts";
import { checkReason } from "./reason.ts";

type Request = RequestOf<typeof attributeIssue>;

/** After its deadline an intent ends within a moment; from then on nothing but this can settle its money. */
const INTENT_ENDS_MS = 30_000;

/**
 * Refuses with `permission_denied`, `not_found` (the issue, the order), `invalid_request`, `conflict` (resolved already,
 * the amounts differ, the money can still settle by itself or has paid elsewhere), or with the seam's own refusal.
 */
export async function attribute(deps: ProvidersDeps, request: Request): Promise<ReplyOf<typeof attributeIssue>> {
  const { caller, issueId, orderId, reason } = request;
  requirePermission(caller, "reconciliation.manage");
  checkReason(reason);
  const key = { organizationId: caller.organizationId, issueId };
  const seen = await deps.database.begin(async (sql) => requireIssue(await lockIssue(sql, key)));
  // An earlier attempt may have paid: it is brought to its end before anything else is tried.
  const before = seen.attribution === null ? seen : (await finishAttribution(deps, key)).issue;
  if (before.status === "attributed" && before.order_id === orderId) return { issue: issueOnWire(before) };
  requireOpen(before);
  const attribution = await plan(deps, request, before);
  await deps.database.begin(async (sql) => {
    const issue = requireIssue(await lockIssue(sql, key));
    requireOpen(issue);
    if (issue.attribution !== null) throw conflict("This issue is just being attributed; try again in a moment.");
    await requireFreeMoney(sql, issue);
    if (!(await startAttribution(sql, issueId, attribution))) {
      throw conflict("This money pays an order already, by another issue.");
    }
  });
  const { issue, refusal } = await finishAttribution(deps, key);
  if (refusal !== undefined) throw new RefusedError({ code: refusal });
  return { issue: issueOnWire(issue) };
}

/** What the seam will be asked: order truth at this moment, which must be what the money is. */
async function plan(deps: ProvidersDeps, request: Request, issue: IssueRow): Promise<Attribution> {
  const { caller, orderId, reason } = request;
  const stationId = await findOrderStation(deps.database, { organizationId: caller.organizationId, orderId });
  if (stationId === undefined) throw new RefusedError({ code: "not_found", detail: "There is no such order." });
  const { intentId, order } = await call(deps.bus.nc, prepareIntent, { stationId, orderId });
  if (order.status !== "open") throw conflict(`This order is ${order.status}.`);
  if (issue.amount_minor === null || issue.currency === null) {
    throw conflict("The provider has not said how much this money is; it cannot pay an order.");
  }
  if (order.amountMinor !== issue.amount_minor || order.currency !== issue.currency) {
    throw conflict("The money and the order differ in amount or currency.");
  }
  return {
    intentId,
    attestationId: `issue:${issue.issue_id}:${intentId}`,
    stationId,
    orderId,
    amountMinor: order.amountMinor,
    currency: order.currency,
    reference: issue.provider_reference,
    reason,
    by: byOf(caller),
  };
}

/** Two ways must never be open to the same money: this one, and its own intent. */
async function requireFreeMoney(sql: Transaction, issue: IssueRow): Promise<void> {
  if (issue.intent_id === null) return;
  const { intent_id: intentId, provider_reference: providerReference } = issue;
  // Held against a confirmation of the same money that is just coming in.
  const payment = issue.kind === "unmatched_money" ? undefined : await lockPayment(sql, intentId);
  if (providerReference !== "" && (await hasPaidItsIntent(sql, { intentId, providerReference }))) {
    throw conflict("This money has paid its own order meanwhile.");
  }
  const canStillSettle =
    payment?.paid_reference === providerReference &&
    issue.kind === "settlement_refused" &&
    Date.now() < payment.expires_at.getTime() + INTENT_ENDS_MS;
  if (canStillSettle) throw conflict("The cashier may still settle this money until its collection has ended.");
}

function requireIssue(issue: IssueRow | undefined): IssueRow {
  if (issue === undefined) throw new RefusedError({ code: "not_found" });
  return issue;
}

function requireOpen(issue: IssueRow): void {
  if (issue.status !== "open") throw conflict(`This issue is ${issue.status}.`);
}

function conflict(detail: string): RefusedError {
  return new RefusedError({ code: "conflict", detail });
}

function byOf({ userId, name, role }: Caller): Attribution["by"] {
  return { userId, name, role };
}
