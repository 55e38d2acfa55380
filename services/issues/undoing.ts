/**
 * Reopening closed issues, one or many. Only the person who closed an issue can undo it, within a day, before its period is
 * closed and before a newer issue supersedes it.
 */
import { personActor, requirePermission } from "../bus/messages/caller.ts";
import type * as bus from "../bus/messages/issues.ts";
import type { Handler, RequestOf } from "../bus/operation.ts";
import { existing } from "../bus/refusals.ts";
import type { Transaction } from "../db/pool.ts";
import { type ClosingDeps, hasMoney, nothing, type Refused, refusedOf } from "./closing.ts";
import { decide, issueConflict, isUnresolved, requireUnresolved, toIssue } from "./life-cycle.ts";
import { ISSUE_LIMITS } from "./limits.ts";
import { announceIssues, priorOf, recordSteps } from "./recording.ts";
import * as sql from "./sql/issues.ts";

type Caller = RequestOf<typeof bus.undoIssueClosing>["caller"];

/**
 * The issue is open again, or assigned as before. Refuses with `permission_denied`, `not_found` or `conflict`: it was closed
 * by another person or too long ago, or a newer issue supersedes it.
 */
export const undoIssueClosing: Handler<ClosingDeps, typeof bus.undoIssueClosing> = async (deps, request) => {
  requirePermission(request.caller, "reconciliation.manage");
  return { issue: toIssue(await reopen(deps, request)) };
};

async function reopen(
  deps: ClosingDeps,
  { caller, issueId }: RequestOf<typeof bus.undoIssueClosing>,
): Promise<sql.IssueRow> {
  const { database, rules } = deps;
  const { organizationId } = caller;
  const key = { organizationId, issueId };
  const seen = existing(await sql.getIssue(database, key));
  const { issue, follow } = await decide(database, async (tx) => {
    if (hasMoney(seen)) await rules.lock(tx, seen);
    const before = existing(await sql.lockIssue(tx, key));
    // Nothing to undo: a repeated request, or another one before it.
    if (isUnresolved(before)) return { issue: before, follow: nothing };
    const inClosedPeriod = await sql.findInClosedPeriods(tx, [issueId]);
    requireUndoable(deps, before, { caller, inClosedPeriod });
    const [reopened] = await sql.reopenIssues(tx, [issueId]);
    const then = hasMoney(before) ? await rules.afterUndoing(tx, before) : nothing;
    await recordUndoing(tx, caller, [before]);
    return { issue: existing(reopened), follow: then };
  });
  follow();
  return issue;
}

/**
 * Reopens issues without money in one transaction, and the others one by one, because each has its own locks. Refuses with
 * `permission_denied`.
 */
export const undoIssueClosings: Handler<ClosingDeps, typeof bus.undoIssueClosings> = async (deps, request) => {
  const { caller, issueIds } = request;
  requirePermission(caller, "reconciliation.manage");
  const without = await reopenWithoutMoney(deps, { caller, issueIds });
  let { reopened } = without;
  const refused = [...without.refused];
  const remainingIds: number[] = [];
  const endsAtMs = performance.now() + ISSUE_LIMITS.closingMs;
  for (const issueId of new Set(issueIds)) {
    if (without.handled.has(issueId)) continue;
    if (performance.now() > endsAtMs) {
      remainingIds.push(issueId);
      continue;
    }
    try {
      await reopen(deps, { caller, issueId });
      reopened += 1;
    } catch (error) {
      refused.push(refusedOf(issueId, error));
    }
  }
  return { reopened, refused, remainingIds };
};

interface Reopened {
  readonly reopened: number;
  readonly refused: readonly Refused[];
  readonly handled: ReadonlySet<number>;
}

async function reopenWithoutMoney(
  deps: ClosingDeps,
  { caller, issueIds }: RequestOf<typeof bus.undoIssueClosings>,
): Promise<Reopened> {
  const { organizationId } = caller;
  return await decide(deps.database, async (tx) => {
    const locked = await sql.lockIssuesWithoutMoney(tx, { organizationId, issueIds });
    const handled = new Set(locked.map((issue) => issue.issue_id));
    const inClosedPeriod = await sql.findInClosedPeriods(tx, [...handled]);
    const refused: Refused[] = [];
    const undoable = locked.filter((issue) => {
      if (isUnresolved(issue)) return false;
      try {
        requireUndoable(deps, issue, { caller, inClosedPeriod });
        return true;
      } catch (error) {
        refused.push(refusedOf(issue.issue_id, error));
        return false;
      }
    });
    const reopenedIds = undoable.map((issue) => issue.issue_id);
    await sql.reopenIssues(tx, reopenedIds);
    await recordUndoing(tx, caller, undoable);
    return { reopened: locked.length - refused.length, refused, handled };
  });
}

/** The issues as they were when they were closed. */
async function recordUndoing(tx: Transaction, caller: Caller, closed: readonly sql.IssueRow[]): Promise<void> {
  const steps = closed.map((issue) => ({
    issue,
    actor: personActor(caller),
    action: "closing_undone" as const,
    data: { kind: issue.kind, prior: { ...priorOf(issue), reason: issue.reason } },
  }));
  await recordSteps(tx, steps);
  await announceIssues(tx, "issues_opened", closed);
}

interface Undoing {
  readonly caller: Caller;
  readonly inClosedPeriod: ReadonlySet<number>;
}

function requireUndoable({ nowMs }: ClosingDeps, issue: sql.IssueRow, { caller, inClosedPeriod }: Undoing): void {
  if (issue.status !== "closed") requireUnresolved(issue);
  if (issue.superseded_by !== null) {
    const detail = `Its evidence has changed since: issue ${issue.superseded_by} has taken its place.`;
    throw issueConflict("issue_superseded", detail);
  }
  if (issue.resolved_by !== caller.userId)
    throw issueConflict("closed_by_another", "Only the person who closed this issue can undo it.");
  if (nowMs() - (issue.resolved_at?.getTime() ?? 0) > ISSUE_LIMITS.undoMs) {
    const hours = ISSUE_LIMITS.undoMs / 3_600_000;
    throw issueConflict("undo_too_late", `A closing can be undone within ${hours} hours; this one is older.`);
  }
  if (inClosedPeriod.has(issue.issue_id)) {
    const detail = "The period of this issue is closed, which is never undone: comment on the issue instead.";
    throw issueConflict("period_closed", detail);
  }
}
