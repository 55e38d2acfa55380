/** Issues as people read them and work on them: lists, one issue with its history, assignment and comments. */
import { currencyExponent } from "../../machines/currencies.ts";
import { malformedReason } from "../bus/malformed-reasons.ts";
import { personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/issues.ts";
import type { Handler, ReplyOf, RequestOf } from "../bus/operation.ts";
import { readPage } from "../bus/page.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import { createOnce } from "../db/creations.ts";
import { isEndedWhileLocking, isLockTimeout } from "../db/lock-timeout.ts";
import type { Database, Transaction } from "../db/pool.ts";
import { ISSUE_LIMITS } from "./limits.ts";
import { announceIssues, priorOf, recordSteps } from "./recording.ts";
import * as comments from "./sql/comments.ts";
import * as sql from "./sql/issues.ts";

export interface IssuesDeps {
  readonly database: Database;
}

/**
 * The transaction of a person's decision. Refuses with `busy` when a run or another decision keeps a lock for too long: then
 * nothing was decided.
 */
export async function decide<T>(database: Database, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return (await database.begin(work).catch(refuseLocked)) as T;
}

function refuseLocked(error: unknown): never {
  if (isLockTimeout(error) || isEndedWhileLocking(error))
    throw new RefusedError({ code: "busy", retryAfterMs: ISSUE_LIMITS.lockedRetryMs });
  throw error;
}

/** Newest first. Refuses with `permission_denied`. */
export const listIssues: Handler<IssuesDeps, typeof bus.listIssues> = async (deps, request) => {
  const { caller, beforeId, limit, ...filter } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const { page, hasMore } = await readPage<bus.Issue>(limit, async (last, count) => {
    const wanted = { organizationId, filter, beforeId: last?.issueId ?? beforeId, limit: count };
    return (await sql.listIssues(deps.database, wanted)).map(toIssue);
  });
  return { issues: page, hasMore };
};

/** What an issue has, whichever service raised it. Refuses with `permission_denied`, `not_found`. */
export async function getIssue(
  { database }: IssuesDeps,
  { caller, issueId }: RequestOf<typeof bus.getIssue>,
): Promise<Omit<ReplyOf<typeof bus.getIssue>, "aloneUpToMinor">> {
  requirePermission(caller, "reconciliation.manage");
  const key = { organizationId: caller.organizationId, issueId };
  const issue = existing(await sql.getIssue(database, key));
  const orderIds = [issue.order_id, issue.proposal?.orderId].filter((id) => typeof id === "number");
  const [written, steps, priorEvidence, orders] = await Promise.all([
    comments.listComments(database, key),
    comments.listSteps(database, { ...key, limit: ISSUE_LIMITS.steps }),
    comments.findPriorEvidence(database, issueId),
    sql.findOrders(database, { organizationId: caller.organizationId, orderIds }),
  ]);
  return {
    issue: toIssue(issue),
    comments: written.map(toComment),
    steps: steps.map(({ event_id: eventId, at, actor, action, data }) => ({
      eventId,
      atMs: at.getTime(),
      actor,
      action,
      data,
    })),
    priorEvidence,
    orders: orders.map(({ order_id: orderId, display_number: orderDisplayNumber, station_id: stationId }) => ({
      orderId,
      orderDisplayNumber,
      stationId,
    })),
  };
}

/** Refuses with `permission_denied`, `not_found` (the issue, the person) or `conflict` for one that is decided. */
export const assignIssue: Handler<IssuesDeps, typeof bus.assignIssue> = async ({ database }, request) => {
  const { caller, issueId, assigneeId } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const issue = await decide(database, async (tx) => {
    if (assigneeId !== null && !(await sql.mayDecideIssues(tx, { organizationId, userId: assigneeId }))) {
      const detail = "There is no such person who may decide issues; name an active reconciliation operator.";
      throw new RefusedError({ code: "not_found", detail });
    }
    const before = existing(await sql.lockIssue(tx, { organizationId, issueId }));
    requireUnresolved(before);
    if (before.assignee_id === assigneeId) return before;
    const after = await sql.assignIssue(tx, issueId, assigneeId);
    const action = assigneeId === null ? "unassigned" : "assigned";
    const data = { kind: before.kind, assignee_id: assigneeId, prior: priorOf(before) };
    await recordSteps(tx, [{ issue: before, actor: personActor(caller), action, data }]);
    await announceIssues(tx, "issues_changed", [before]);
    return after;
  });
  return { issue: toIssue(issue) };
};

/** Also of a decided issue. Refuses with `permission_denied`, `not_found`, `invalid_request` or `conflict`. */
export const commentIssue: Handler<IssuesDeps, typeof bus.commentIssue> = async ({ database }, request) => {
  const { caller, issueId, text, creation } = request;
  const { organizationId, userId: authorId, name: authorName } = requirePermission(caller, "reconciliation.manage");
  const create = async (tx: Transaction): Promise<comments.CommentRow> => {
    const issue = existing(await sql.lockIssue(tx, { organizationId, issueId }));
    if ((await comments.countComments(tx, issueId)) >= ISSUE_LIMITS.comments) {
      const detail = `An issue has ${ISSUE_LIMITS.comments} comments at most.`;
      throw issueConflict("too_many_comments", detail);
    }
    const row = await comments.commentIssue(tx, { organizationId, issueId, authorId, authorName, text });
    const data = { kind: issue.kind, comment_id: row.comment_id };
    await recordSteps(tx, [{ issue, actor: personActor(caller), action: "commented", data }]);
    return row;
  };
  const again = async (tx: Transaction, commentId: number) =>
    (await comments.listComments(tx, { organizationId, issueId })).find((row) => row.comment_id === commentId);
  const once = createOnce(database, creation, { create, again, idOf: (row) => row.comment_id });
  const comment = await once.catch(refuseLocked);
  return { comment: toComment(comment) };
};

/** Why an issue cannot be resolved so: a reason for a program and a sentence for a person. */
export function issueConflict(reason: (typeof bus.ISSUE_CONFLICTS)[number], detail: string): RefusedError {
  return new RefusedError({ code: "conflict", reason, detail });
}

export function isUnresolved({ status }: Pick<sql.IssueRow, "status">): boolean {
  return status === "open" || status === "assigned";
}

/** Refuses with `conflict` unless the issue waits for a decision. */
export function requireUnresolved({ status }: Pick<sql.IssueRow, "status">): void {
  if (status === "open" || status === "assigned") return;
  throw issueConflict(`issue_${status}`, `This issue is ${status}.`);
}

/** Refuses with `conflict` while an attribution is at the payment seam. */
export function requireUnattributed({ attribution }: Pick<sql.IssueRow, "attribution">): void {
  if (attribution !== null)
    throw issueConflict("attribution_under_way", "This issue is just being attributed; try again in a moment.");
}

function toComment(row: comments.CommentRow): bus.IssueComment {
  const { comment_id: commentId, author_id: authorId, author_name: authorName, text, created_at: createdAt } = row;
  return { commentId, authorId, authorName, text, createdAtMs: createdAt.getTime() };
}

export function toIssue(row: sql.IssueRow): bus.Issue {
  return {
    issueId: row.issue_id,
    kind: row.kind,
    status: row.status,
    source: row.source,
    accountKey: row.account_key,
    configId: row.config_id,
    stationId: row.station_id,
    intentId: row.intent_id,
    orderId: row.order_id,
    ...amountOf(row),
    providerReference: row.provider_reference,
    evidence: evidenceOf(row),
    evidenceHash: row.evidence_hash,
    assigneeId: row.assignee_id,
    supersedesId: row.supersedes_id,
    supersededBy: row.superseded_by,
    openedAtMs: row.opened_at.getTime(),
    lastSeenAtMs: row.last_seen_at.getTime(),
    resolvedAtMs: row.resolved_at?.getTime() ?? null,
    resolvedBy: row.resolved_by,
    reason: row.reason,
    transactionId: row.transaction_id,
    proposal: row.proposal,
  };
}

function evidenceOf({ kind, evidence }: sql.IssueRow): bus.IssueEvidence {
  const { statement } = evidence;
  if (kind !== "malformed_line" || statement === undefined) return evidence;
  return { ...evidence, statement: { ...statement, malformed: malformedReason(statement.facts["reason"] ?? "") } };
}

/** Without a known currency an amount cannot be formatted; the provider's text is in the evidence. */
function amountOf({ amount_minor: amountMinor, currency }: sql.IssueRow): Pick<bus.Issue, "amountMinor" | "currency"> {
  if (currency === null || !/^[A-Z]{3}$/.test(currency)) return { amountMinor: null, currency: null };
  return { amountMinor: currencyExponent(currency) === undefined ? null : amountMinor, currency };
}
