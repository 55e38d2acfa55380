/**
 * Closing issues, one or by a filter; undoing.ts reopens them. `MoneyRules` decides which closings about money are allowed;
 * the rules for provider payments are in services/providers/issues.ts.
 */
import { BOUNDS } from "../bus/bounds.ts";
import { personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/issues.ts";
import type { Handler, RequestOf } from "../bus/operation.ts";
import { existing, RefusedError } from "../bus/refusals.ts";
import type { Transaction } from "../db/pool.ts";
import {
  decide,
  type IssuesDeps,
  issueConflict,
  requireUnattributed,
  requireUnresolved,
  toIssue,
} from "./life-cycle.ts";
import { ISSUE_LIMITS } from "./limits.ts";
import { announceIssues, priorOf, recordSteps } from "./recording.ts";
import * as sql from "./sql/issues.ts";

/** Work that starts after the commit. */
type AfterCommit = () => void;

/** The rules for issues about money (`money_names`); no other issue has rules. */
export interface MoneyRules {
  /** Takes the locks that come before every row lock of the transaction. */
  lock(tx: Transaction, issue: sql.IssueRow): Promise<void>;
  /** Refuses with `conflict` what must stay open, and writes what follows a closing. The issue is locked. */
  beforeClosing(tx: Transaction, issue: sql.IssueRow): Promise<AfterCommit>;
  /** Writes what follows when a closing is undone. The issue, as it was when it was closed, is locked. */
  afterUndoing(tx: Transaction, closed: sql.IssueRow): Promise<AfterCommit>;
}

export interface ClosingDeps extends IssuesDeps {
  readonly rules: MoneyRules;
  readonly nowMs: () => number;
}

export const nothing: AfterCommit = () => undefined;
export const hasMoney = (issue: sql.IssueRow): boolean => issue.money_names.length > 0;

/** Refuses with `permission_denied`, `not_found`, `invalid_request` or `conflict` with a reason of `ISSUE_CONFLICTS`. */
export const closeIssue: Handler<ClosingDeps, typeof bus.closeIssue> = async (deps, request) => {
  requirePermission(request.caller, "reconciliation.manage");
  return { issue: toIssue(await close(deps, request)) };
};

async function close(
  { database, rules }: ClosingDeps,
  { caller, issueId, reason, evidenceHash }: RequestOf<typeof bus.closeIssue>,
): Promise<sql.IssueRow> {
  const { organizationId, userId } = caller;
  const key = { organizationId, issueId };
  const seen = existing(await sql.getIssue(database, key));
  const { issue, follow } = await decide(database, async (tx) => {
    if (hasMoney(seen)) await rules.lock(tx, seen);
    const before = existing(await sql.lockIssue(tx, key));
    if (isRepetition(before, { userId, reason })) return { issue: before, follow: nothing };
    requireUnresolved(before);
    requireUnattributed(before);
    // A run may change the issue at this moment, but the person decides on the evidence that they saw.
    requireEvidence(before, evidenceHash ?? seen.evidence_hash);
    const then = hasMoney(before) ? await rules.beforeClosing(tx, before) : nothing;
    const resolution = { status: "closed", by: userId, reason, orderId: null, transactionId: null } as const;
    const closed = await sql.resolveIssue(tx, issueId, resolution);
    const data = { kind: before.kind, reason, prior: priorOf(before) };
    await recordSteps(tx, [{ issue: closed, actor: personActor(caller), action: "closed", data }]);
    await announceIssues(tx, "issues_closed", [closed]);
    return { issue: closed, follow: then };
  });
  follow();
  return issue;
}

function requireEvidence({ evidence_hash: hash }: sql.IssueRow, seen: string): void {
  if (hash === seen) return;
  const detail = "The evidence of this issue has changed since; check it again, then decide.";
  throw issueConflict("evidence_changed", detail);
}

/** Whether the same person repeats the request, because its answer was lost. */
function isRepetition(
  { status, resolved_by: by, reason: storedReason }: sql.IssueRow,
  { userId, reason }: { readonly userId: number; readonly reason: string },
): boolean {
  return status === "closed" && by === userId && storedReason === reason;
}

/**
 * Closes issues without money in one transaction, and the others one by one, because each needs its locks. Refuses with
 * `permission_denied`, `invalid_request`.
 */
export const closeIssues: Handler<ClosingDeps, typeof bus.closeIssues> = async (deps, request) => {
  const { caller, filter, throughId, reason } = request;
  const { organizationId } = requirePermission(caller, "reconciliation.manage");
  const limit = BOUNDS.issuesClosedAtOnce + 1;
  const found = await sql.listUnresolved(deps.database, { organizationId, filter, throughId, limit });
  const batch = found.slice(0, BOUNDS.issuesClosedAtOnce);
  const refused: Refused[] = [];
  const without = await closeWithoutMoney(deps, { caller, issues: batch.filter((issue) => !hasMoney(issue)), reason });
  const closedIds = [...without.closedIds];
  for (const issueId of without.changed) refused.push({ issueId, reason: "evidence_changed" });
  const ofMoney = batch.filter(hasMoney);
  const endsAtMs = performance.now() + ISSUE_LIMITS.closingMs;
  let handled = 0;
  for (const { issue_id: issueId, evidence_hash: evidenceHash } of ofMoney) {
    if (performance.now() > endsAtMs) break;
    handled += 1;
    try {
      await close(deps, { caller, issueId, reason, evidenceHash });
      closedIds.push(issueId);
    } catch (error) {
      refused.push(refusedOf(issueId, error));
    }
  }
  return { closedIds, refused, hasMore: found.length > batch.length || handled < ofMoney.length };
};

export interface Refused {
  readonly issueId: number;
  readonly reason: string;
}

/** Throws errors that are no refusals. */
export function refusedOf(issueId: number, error: unknown): Refused {
  if (!(error instanceof RefusedError)) throw error;
  return { issueId, reason: error.refusal.reason ?? error.refusal.code };
}

async function closeWithoutMoney(
  { database }: ClosingDeps,
  {
    caller,
    issues,
    reason,
  }: Pick<RequestOf<typeof bus.closeIssues>, "caller" | "reason"> & { readonly issues: readonly sql.IssueRow[] },
): Promise<{ readonly closedIds: readonly number[]; readonly changed: readonly number[] }> {
  if (issues.length === 0) return { closedIds: [], changed: [] };
  const { organizationId, userId } = caller;
  return await decide(database, async (tx) => {
    const { closed, changed } = await sql.closeIssuesWithoutMoney(tx, { issues, by: userId, reason });
    const steps = closed.map((issue) => ({
      issue: { ...issue, organization_id: organizationId },
      actor: personActor(caller),
      action: "closed" as const,
      data: { kind: issue.kind, reason, prior: priorOf(issue) },
    }));
    await recordSteps(tx, steps);
    const announced = steps.map(({ issue }) => issue);
    await announceIssues(tx, "issues_closed", announced);
    return { closedIds: closed.map((issue) => issue.issue_id), changed };
  });
}
