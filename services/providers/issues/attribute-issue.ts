/**
 * An operator says which order the money pays after all. It goes through the payment seam like every other money, with
 * an intent id of its own, which is written down before the seam is asked: whatever crashes, the very same question is
 * asked again, and the seam settles an intent once.
 */
import { randomUUID } from "node:crypto";
import type { OrderSnapshot } from "../../../machines/station/state.ts";
import { requirePermission } from "../../bus/access.ts";
import type { Caller } from "../../bus/messages/caller.ts";
import { prepareIntent } from "../../bus/messages/intents.ts";
import type { attributeIssue } from "../../bus/messages/issues.ts";
import { call, type ReplyOf, type RequestOf } from "../../bus/operation.ts";
import { RefusedError } from "../../bus/refusals.ts";
import { askStation } from "../../bus/station-client.ts";
import type { ProvidersDeps } from "../deps.ts";
import { findConfigById } from "../sql/configs.ts";
import {
  type Attribution,
  findNamesAtSeam,
  findOtherIssues,
  type IssueRow,
  lockIssue,
  startAttribution,
} from "../sql/issues.ts";
import { findOrderPaidWith, findOrderPlace, type OrderPlace } from "../sql/orders.ts";
import { finishAttribution } from "./finish-attribution.ts";
import { holdMoneyOf, requireAttributable, requireKnownMoney } from "./free-money.ts";
import { issueConflict, requireOpen, requireUnattributed } from "./issue-conflict.ts";
import { issueOnWire } from "./issue-wire.ts";
import { checkReason } from "./reason.ts";

type Request = RequestOf<typeof attributeIssue>;

/**
 * Refuses with `permission_denied`, `not_found` (the issue, the order), `invalid_request`, `conflict` with a reason of
 * `ISSUE_CONFLICTS`, or with the seam's own refusal.
 */
export async function attribute(deps: ProvidersDeps, request: Request): Promise<ReplyOf<typeof attributeIssue>> {
  const { caller, issueId, reason } = request;
  requirePermission(caller, "reconciliation.manage");
  checkReason(reason);
  const key = { organizationId: caller.organizationId, issueId };
  const seen = await deps.database.begin(async (sql) => requireIssue(await lockIssue(sql, key)));
  // An earlier attempt may have paid: it is brought to its end before anything else is tried.
  const before = seen.attribution === null ? seen : (await finishAttribution(deps, key)).issue;
  if (isRepetition(before, request)) return { issue: issueOnWire(before) };
  requireOpen(before);
  requireKnownMoney(before);
  const attribution = await plan(deps, request, before);
  await deps.database.begin(async (sql) => {
    await holdMoneyOf(sql, before);
    const issue = requireIssue(await lockIssue(sql, key));
    requireOpen(issue);
    requireUnattributed(issue);
    await requireAttributable(sql, issue, deps.bus.clock.nowMs());
    if (!(await startAttribution(sql, issueId, attribution))) {
      throw issueConflict("money_attributed", "This money pays an order already, by another issue.");
    }
  });
  const { issue, refusal } = await finishAttribution(deps, key);
  if (refusal === "money_already_used") throw await takenMeanwhile(deps, issue);
  if (refusal !== undefined) throw new RefusedError({ code: refusal });
  return { issue: issueOnWire(issue) };
}

/** What the seam found: the money has paid, or it was closed by another issue while this one was being attributed. */
async function takenMeanwhile({ database }: Pick<ProvidersDeps, "database">, issue: IssueRow): Promise<RefusedError> {
  const names = await findNamesAtSeam(database, issue);
  const paid = await findOrderPaidWith(database, names);
  const others = await findOtherIssues(database, { ...issue, money_names: names });
  const closed = others.find(({ status }) => status === "closed");
  if (paid === undefined && closed !== undefined)
    return issueConflict("money_closed", `This money was dealt with and closed as issue ${closed.issue_id}.`);
  return issueConflict("money_has_paid", "This money has paid another order meanwhile.");
}

/** What the seam will be asked: order truth at this moment, which must be what the money is. */
async function plan(deps: ProvidersDeps, request: Request, issue: IssueRow): Promise<Attribution> {
  const { caller, orderId, reason } = request;
  const { organizationId } = caller;
  const place = await findOrderPlace(deps.database, { organizationId, orderId });
  if (place === undefined) throw new RefusedError({ code: "not_found", detail: "There is no such order." });
  await requireSameAccount(deps, issue, place);
  const { stationId } = place;
  const { intentId, order } = await call(deps.bus.nc, prepareIntent, { stationId, orderId });
  if (order.status !== "open") throw issueConflict("order_not_open", `This order is ${order.status}.`);
  requireAmount(issue, order);
  await requireNoCollection(deps, issue, { stationId, orderId });
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

/** The money lies at the account of one filial, and is play money or real money; the order is paid there or nowhere. */
async function requireSameAccount(deps: ProvidersDeps, issue: IssueRow, place: OrderPlace): Promise<void> {
  const config = await findConfigById(deps.database, issue.config_id);
  if (config?.mode !== place.mode) {
    const [money, order] = config?.mode === "test" ? ["of a test provider", "real"] : ["real", "of a sandbox station"];
    throw issueConflict("other_mode", `The money is ${money} and the order is ${order}.`);
  }
  if (config.filial_id !== place.filialId)
    throw issueConflict("other_filial", "The money went to the account of another filial.");
}

function requireAmount(issue: IssueRow, order: Pick<OrderSnapshot, "amountMinor" | "currency">): void {
  if (order.amountMinor !== issue.amount_minor || order.currency !== issue.currency) {
    throw issueConflict("amount_differs", "The money and the order differ in amount or currency.");
  }
}

/** Nobody may be asked to pay an order that is just being paid otherwise. */
async function requireNoCollection(
  deps: ProvidersDeps,
  issue: IssueRow,
  { stationId, orderId }: { readonly stationId: number; readonly orderId: number },
): Promise<void> {
  const { reply } = await askStation(deps.bus.nc, stationId, {
    commandId: `provider:inquire:${randomUUID()}`,
    actor: { kind: "provider", id: issue.config_id },
    command: { type: "order_inquire", orderId },
  });
  if (reply.ok || reply.code !== "collection_active") return;
  const detail = "The order is just being collected at its station; finish or cancel that collection first.";
  throw issueConflict("order_being_collected", detail);
}

function requireIssue(issue: IssueRow | undefined): IssueRow {
  if (issue === undefined) throw new RefusedError({ code: "not_found" });
  return issue;
}

/** The same person asks for the same again: an answer was lost, and it is the same. */
function isRepetition(issue: IssueRow, { caller, orderId, reason }: Request): boolean {
  const { status, resolved_by: by, order_id: attributedTo, reason: given } = issue;
  return status === "attributed" && by === caller.userId && attributedTo === orderId && given === reason;
}

function byOf({ userId, name, role }: Caller): Attribution["by"] {
  return { userId, name, role };
}
