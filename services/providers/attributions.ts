/**
 * Attributions: an operator names the order that an issue's money pays. An attribution goes through the payment seam
 * with a separate intent id. The service stores this id before the call: after a crash it repeats the same request, and
 * the seam settles an intent once. Above the organization's limit another person proposes the attribution first
 * (proposals.ts).
 *
 * Calls issues.ts and sql; called by service.ts and proposals.ts.
 */

import { randomUUID } from "node:crypto";
import type { SettlementRefusal } from "../../machines/station/reply.ts";
import type { OrderSnapshot } from "../../machines/station/state.ts";
import { type Caller, personActor, requirePermission } from "../bus/messages/caller.ts";
import { prepareIntent, settleIntent } from "../bus/messages/intents.ts";
import type * as bus from "../bus/messages/issues.ts";
import { call, type Handler, type RequestOf } from "../bus/operation.ts";
import { existing, RefusedError, UnavailableError } from "../bus/refusals.ts";
import { askStation } from "../bus/station-client.ts";
import { insertOutbox, stationKey } from "../db/outbox.ts";
import type { Transaction } from "../db/pool.ts";
import { decide, issueConflict, requireUnattributed, requireUnresolved, toIssue } from "../issues/life-cycle.ts";
import { announceIssues, priorOf, recordSteps } from "../issues/recording.ts";
import { type IssueKey, type IssueRow, lockIssue, resolveIssue } from "../issues/sql/issues.ts";
import { isConfirmedAsPayment, lockDecisions } from "../issues/sql/lines-of-money.ts";
import { forRequest } from "../runtime/log.ts";
import { requireAlone } from "./attribution-limits.ts";
import type { ProvidersDeps } from "./deps.ts";
import { lockMoneyOf, requireAttributable, requireKnownMoney, resumeEnd } from "./issues.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { findConfigById } from "./sql/configs.ts";
import * as sql from "./sql/issues.ts";
import { decideProposal } from "./sql/proposals.ts";
import type { KnownTask } from "./task-runner.ts";

type Request = RequestOf<typeof bus.attributeIssue>;

/**
 * Refuses with `permission_denied`, `not_found` (the issue, the order), `invalid_request`, `conflict` with a reason of
 * `ISSUE_CONFLICTS`, or with a refusal of the seam.
 */
export const attributeIssue: Handler<ProvidersDeps, typeof bus.attributeIssue> = async (deps, request) => {
  const { caller, issueId, orderId, reason } = request;
  requirePermission(caller, "reconciliation.manage");
  const key = { organizationId: caller.organizationId, issueId };
  const before = await readFinished(deps, key);
  if (isRepetition(before, request)) return { issue: toIssue(before) };
  requireUnresolved(before);
  const order = await requireFittingOrder(deps, before, orderId);
  await requireNoCollection(deps, before, order);
  const attribution = { ...requestOf(before, order), reason, by: byOf(caller) };
  return { issue: await settle(deps, before, attribution, requireAlone) };
};

/** Returns the issue. Finishes an earlier attempt first, because that may have paid. */
export async function readFinished(deps: ProvidersDeps, key: IssueKey): Promise<IssueRow> {
  const seen = await decide(deps.database, async (tx) => existing(await lockIssue(tx, key)));
  return seen.attribution === null ? seen : (await finishAttribution(deps, key)).issue;
}

/** Locks and returns the issue. Refuses with `conflict` when a person has decided it, or when its money may not pay. */
export async function lockAttributable(deps: ProvidersDeps, tx: Transaction, before: IssueRow): Promise<IssueRow> {
  const { organization_id: organizationId, issue_id: issueId } = before;
  await lockDecisions(tx, organizationId);
  await lockMoneyOf(tx, before);
  const issue = existing(await lockIssue(tx, { organizationId, issueId }));
  requireUnresolved(issue);
  requireUnattributed(issue);
  if (await sql.isBeingWithdrawn(tx, issueId)) {
    const detail = "The file of this line is being withdrawn; check the issue again in a moment.";
    throw issueConflict("import_withdrawing", detail);
  }
  if (await isConfirmedAsPayment(tx, issueId)) {
    const detail = "The line with this money is confirmed as another payment: reject that match first.";
    throw issueConflict("line_confirmed", detail);
  }
  await requireAttributable(tx, issue, deps.bus.clock.nowMs());
  return issue;
}

/**
 * Stores the attribution, if `requireMayStart` does not refuse it, and carries it out. Refuses with `conflict` or with a refusal of
 * the seam.
 */
export async function settle(
  deps: ProvidersDeps,
  before: IssueRow,
  attribution: sql.Attribution,
  requireMayStart: (tx: Transaction, issue: IssueRow) => Promise<void>,
): Promise<bus.Issue> {
  const { organization_id: organizationId, issue_id: issueId } = before;
  await decide(deps.database, async (tx) => {
    const issue = await lockAttributable(deps, tx, before);
    await requireMayStart(tx, issue);
    if (!(await sql.startAttribution(tx, issueId, attribution))) {
      throw issueConflict("money_attributed", "This money pays an order already, by another issue.");
    }
  });
  const { issue, refusal } = await finishAttribution(deps, { organizationId, issueId });
  if (refusal === "money_already_used") throw await takenMeanwhile(deps, issue);
  if (refusal === "reference_already_used") {
    const detail = "The reference of this money has settled another order of the filial: it was typed from a slip.";
    throw issueConflict("money_has_paid", detail);
  }
  if (refusal !== undefined) throw new RefusedError({ code: refusal });
  return toIssue(issue);
}

/** Why the seam has refused: the money has paid, or a person has closed another issue of it meanwhile. */
async function takenMeanwhile({ database }: Pick<ProvidersDeps, "database">, issue: IssueRow): Promise<RefusedError> {
  const names = await sql.findNamesAtSeam(database, issue);
  const paid = await sql.findOrderPaidWith(database, names);
  const others = await sql.findOtherIssues(database, { ...issue, money_names: names });
  const closed = others.find(({ status }) => status === "closed");
  if (paid === undefined && closed !== undefined)
    return issueConflict("money_closed", `This money was dealt with and closed as issue ${closed.issue_id}.`);
  return issueConflict("money_has_paid", "This money has paid another order meanwhile.");
}

/** Order truth at this moment, with an intent id for it. */
interface FittingOrder {
  readonly intentId: number;
  readonly stationId: number;
  readonly order: OrderSnapshot;
  readonly route: MoneyAccount["route"];
}

/** An open order that the money could pay. Refuses with `not_found`, `conflict`. */
export async function requireFittingOrder(
  deps: ProvidersDeps,
  issue: IssueRow,
  orderId: number,
): Promise<FittingOrder> {
  const account = await requireAccount(deps, issue);
  requireKnownMoney(issue);
  const place = await sql.findOrderPlace(deps.database, { organizationId: issue.organization_id, orderId });
  if (place === undefined) throw new RefusedError({ code: "not_found", detail: "There is no such order." });
  requireSamePlace(account, place);
  const { stationId } = place;
  const { intentId, order } = await call(deps.bus.nc, prepareIntent, { stationId, orderId });
  if (order.status !== "open") throw issueConflict("order_not_open", `This order is ${order.status}.`);
  requireAmount(issue, order);
  return { intentId, stationId, order, route: account.route };
}

/** The request to the seam, with the order that `requireFittingOrder` has compared with the money. */
export function requestOf(
  issue: IssueRow,
  { intentId, stationId, order, route }: FittingOrder,
): Omit<sql.Attribution, "reason" | "by"> {
  const { orderId, amountMinor, currency } = order;
  const attestationId = `issue:${issue.issue_id}:${intentId}`;
  const { provider_reference: reference } = issue;
  return { intentId, attestationId, stationId, orderId, amountMinor, currency, reference, route };
}

/** The account that has the money, and the route of a transaction that the money pays. */
interface MoneyAccount {
  readonly mode: sql.OrderPlace["mode"];
  /** Null: the account is of all filials. */
  readonly filialId: number | null;
  readonly route: NonNullable<sql.Attribution["route"]>;
}

/**
 * The account of a provider config or of statements. Refuses with `conflict` an issue whose money is in no such
 * account.
 */
export async function requireAccount({ database }: ProvidersDeps, issue: IssueRow): Promise<MoneyAccount> {
  if (issue.money_names.length === 0) throw notAttributable();
  if (issue.config_id === null) {
    const account = await sql.findStatementAccount(database, issue.issue_id);
    if (account === undefined) throw notAttributable();
    return account;
  }
  const config = await findConfigById(database, issue.config_id);
  if (config === undefined) throw notAttributable();
  return { mode: config.mode, filialId: config.filial_id, route: "dynamic_qr" };
}

const notAttributable = (): RefusedError =>
  issueConflict(
    "not_attributable",
    "This issue can pay no order: it is not about money, or its line has no reference of the provider.",
  );

/**
 * Test money pays test orders only, real money real ones. Money in the account of one filial pays that filial's orders
 * only.
 */
function requireSamePlace({ mode, filialId }: MoneyAccount, place: sql.OrderPlace): void {
  if (mode !== place.mode) {
    const [money, order] = mode === "test" ? ["of a test account", "real"] : ["real", "of a sandbox station"];
    throw issueConflict("other_mode", `The money is ${money} and the order is ${order}.`);
  }
  if (filialId !== null && filialId !== place.filialId)
    throw issueConflict("other_filial", "The money went to the account of another filial.");
}

function requireAmount(issue: IssueRow, order: Pick<OrderSnapshot, "amountMinor" | "currency">): void {
  if (order.amountMinor !== issue.amount_minor || order.currency !== issue.currency) {
    throw issueConflict("amount_differs", "The money and the order differ in amount or currency.");
  }
}

/** The order must not be in a collection at its station. */
export async function requireNoCollection(
  deps: ProvidersDeps,
  issue: IssueRow,
  { stationId, order: { orderId } }: FittingOrder,
): Promise<void> {
  const { reply } = await askStation(deps.bus.nc, stationId, {
    commandId: `provider:inquire:${randomUUID()}`,
    actor: issue.config_id === null ? { kind: "settlement", id: 0 } : { kind: "provider", id: issue.config_id },
    command: { type: "order_inquire", orderId },
  });
  if (reply.ok || reply.code !== "collection_active") return;
  const detail = "The order is just being collected at its station; finish or cancel that collection first.";
  throw issueConflict("order_being_collected", detail);
}

/** The same person repeats the request, because an answer was lost. */
function isRepetition(issue: IssueRow, { caller, orderId, reason }: Request): boolean {
  const { status, resolved_by: by, order_id: attributedTo, reason: storedReason } = issue;
  return status === "attributed" && by === caller.userId && attributedTo === orderId && storedReason === reason;
}

export function byOf({ userId, name, role }: Caller): sql.Attribution["by"] {
  return { userId, name, role };
}

interface Finished {
  readonly issue: IssueRow;
  /** The seam's refusal; the issue is then open again. */
  readonly refusal: SettlementRefusal | undefined;
}

/**
 * Calls the payment seam with the stored attribution and stores the result. Idempotent. Throws `UnavailableError` when
 * the seam does not answer: the attribution stays stored, and the service repeats it.
 */
async function finishAttribution(deps: ProvidersDeps, key: IssueKey): Promise<Finished> {
  const atCall = await deps.database.begin((tx) => lockIssue(tx, key));
  if (atCall === undefined) throw new Error("An issue is missing.");
  const attribution = sql.attributionOf(atCall);
  if (attribution === null) return { issue: atCall, refusal: undefined };
  const { reason: _reason, by, proposal: _proposal, requestId: _id, route = "dynamic_qr", ...question } = attribution;
  const request = { ...question, route, attestedBy: by.userId, moneyKey: sql.moneyKeyOf(atCall) };
  const answer = await call(deps.bus.nc, settleIntent, request);
  const { stationId, orderId } = attribution;
  // Order truth after the seam's answer; the intent id that comes with it stays unused.
  const { order } = await call(deps.bus.nc, prepareIntent, { stationId, orderId });
  const { task, ...finished } = await deps.database.begin(async (tx): Promise<Finished & { task?: KnownTask }> => {
    await lockMoneyOf(tx, atCall);
    const issue = await lockIssue(tx, key);
    if (issue === undefined) throw new Error("An issue is missing.");
    // Another process has finished it.
    if (sql.attributionOf(issue)?.intentId !== attribution.intentId) return { issue, refusal: undefined };
    return answer.settled
      ? await resolveSettled(tx, deps, issue, { attribution, transactionId: answer.transactionId, order })
      : await reopenRefused(tx, issue, attribution, answer.code);
  });
  if (task !== undefined) deps.tasks.start(task);
  return finished;
}

/** Opens the issue again after the seam's refusal. */
async function reopenRefused(
  tx: Transaction,
  issue: IssueRow,
  attribution: sql.Attribution,
  refusal: SettlementRefusal,
): Promise<Finished> {
  const { issue_id: issueId } = issue;
  await sql.clearAttribution(tx, issueId);
  // The issue's line may be gone or explained. No run has changed the issue during the attribution.
  await sql.wantRunOfIssue(tx, issueId);
  await endRefused(tx, issue, attribution, refusal);
  return { issue: { ...issue, attribution: null, proposal: null }, refusal };
}

/** Resolves the issue whose money has settled the order. Returns the task that has to go on, if there is one. */
async function resolveSettled(
  tx: Transaction,
  deps: ProvidersDeps,
  issue: IssueRow,
  settled: {
    readonly attribution: sql.Attribution;
    readonly transactionId: number;
    readonly order: OrderSnapshot;
  },
): Promise<Finished & { task?: KnownTask }> {
  const { attribution, transactionId, order } = settled;
  const { by, proposal, reason, orderId, stationId } = attribution;
  const { issue_id: issueId } = issue;
  if (proposal !== undefined)
    await decideProposal(tx, proposal.proposalId, { status: "confirmed", by: by.userId, reason: null });
  const resolution = { status: "attributed", by: by.userId, reason, orderId, transactionId } as const;
  const resolved = await resolveIssue(tx, issueId, resolution);
  const task = await resumeEnd(tx, deps, resolved);
  await sql.wantRunOfIssue(tx, issueId);
  await recordAttribution(tx, { before: issue, issue: resolved }, attribution);
  // Every transaction takes the keys of the outbox in this order.
  await announceIssues(tx, "issues_closed", [resolved]);
  await announceOrder(tx, stationId, order);
  return { issue: resolved, refusal: undefined, ...(task === undefined ? {} : { task }) };
}

/**
 * Ends a proposal that the seam has refused. It cannot be confirmed again, because the order or the money has changed.
 */
async function endRefused(
  tx: Transaction,
  issue: IssueRow,
  { proposal, orderId, by }: sql.Attribution,
  code: SettlementRefusal,
): Promise<void> {
  if (proposal === undefined) return;
  const { proposalId } = proposal;
  const reason = `The payment seam refused: ${code}.`;
  await decideProposal(tx, proposalId, { status: "ended", by: null, reason });
  const data = { kind: issue.kind, proposal_id: proposalId, order_id: orderId, reason };
  await recordSteps(tx, [{ issue, actor: personActor(by), action: "attribution_ended", data }]);
  await announceIssues(tx, "issues_changed", [issue]);
}

/** Notifies the station of the paid order, as of every change of an order. Comes last: it takes the outbox's lock. */
async function announceOrder(tx: Transaction, stationId: number, order: OrderSnapshot): Promise<void> {
  await insertOutbox(tx, {
    key: stationKey(stationId),
    kind: "station_command",
    stationId,
    actor: { kind: "settlement", id: 0 },
    command: { type: "order_put", order },
  });
}

/**
 * Finishes attributions that a crash has interrupted: the seam may have settled the money, and the issue must show it.
 * Returns the work of one turn. Each turn takes the next few attributions, so that one that always fails does not delay
 * the others. A turn throws `AggregateError` when an attribution has failed, and ends early when a service does not
 * answer.
 */
export function finishInterruptedAttributions(deps: ProvidersDeps): () => Promise<void> {
  const { attributionInterruptedMs: olderThanMs, attributionsPerTurn: limit } = PROVIDER_LIMITS;
  let afterId = 0;
  return async () => {
    const interrupted = await sql.listInterruptedAttributions(deps.database, { olderThanMs, afterId, limit });
    const failed = new Map<number, unknown>();
    for (const { requestId, ...key } of interrupted) {
      const { issueId } = key;
      afterId = issueId;
      try {
        await forRequest(requestId, () => finishInterrupted(deps, key));
      } catch (error) {
        failed.set(issueId, error);
        if (error instanceof UnavailableError) break;
      }
    }
    // After the last attribution the next turn starts at the beginning.
    if (interrupted.length < limit && afterId === (interrupted.at(-1)?.issueId ?? afterId)) afterId = 0;
    if (failed.size === 0) return;
    throw new AggregateError(
      failed.values(),
      `The attributions of issues ${[...failed.keys()].join()} cannot be finished.`,
    );
  };
}

async function finishInterrupted(deps: ProvidersDeps, key: IssueKey): Promise<void> {
  const { issue, refusal } = await finishAttribution(deps, key);
  const facts = { issueId: key.issueId, status: issue.status, notAttributed: refusal };
  deps.log.info(facts, "an interrupted attribution is finished");
}

/** Writes the audit log in the name of the person who requested the attribution, once the seam has settled it. */
async function recordAttribution(
  tx: Transaction,
  { before, issue }: { readonly before: IssueRow; readonly issue: IssueRow },
  { by, reason, orderId, intentId, proposal }: sql.Attribution,
): Promise<void> {
  const { kind, transaction_id } = issue;
  const data = {
    kind,
    reason,
    order_id: orderId,
    intent_id: intentId,
    transaction_id,
    prior: priorOf(before),
    ...(proposal === undefined
      ? {}
      : { proposal_id: proposal.proposalId, proposed_by: { id: proposal.by, name: proposal.byName } }),
  };
  await recordSteps(tx, [{ issue, actor: personActor(by), action: "attributed", data }]);
}
