/** A person's decisions about issues. Each function returns the failure or null, and then reloads the list. */
import { signal } from "@preact/signals";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { toast } from "../../shared/toasts.tsx";
import { operatorName } from "../known.ts";
import { toastRefusal } from "../refusal.tsx";
import { words } from "../words.ts";
import { choose, chosenId, type Issue, issues, loadDetails, loadIssues, reload } from "./issue-list.ts";

export type Dialog =
  | "close"
  | "attribute"
  | "assign"
  | "comment"
  | "bulk"
  | "confirm_proposal"
  | "reject_proposal"
  | "help";
export const openDialog = signal<Dialog | null>(null);
// The back button shows another view. An open question about the previous view must not decide about the new one.
addEventListener("popstate", () => {
  openDialog.value = null;
});
/** How long the toast offers to undo. The closed issue itself offers it for a day. */
const UNDO_SHOWN_MS = 12_000;

/** Shows a failure as a toast, for a button that has no other place for it. */
export async function orSayWhy(asked: Promise<Failure | null>): Promise<void> {
  const failure = await asked;
  if (failure !== null) toastRefusal(failure);
}

/** After a conflict the issue has changed since the page read it. Reloads it, so that a person decides about the newest state. */
async function afterRefusal(failure: Failure): Promise<Failure> {
  if (failure.code === "conflict") await reload();
  return failure;
}

/** The issue that the page chooses after a decision: the next one of the list, or the previous one at its end. */
function nextAfter(issueId: number): number | null {
  const shown = issues.peek() ?? [];
  const at = shown.findIndex(({ issue_id }) => issue_id === issueId);
  return (shown[at + 1] ?? shown[at - 1])?.issue_id ?? null;
}

async function showNext(issueId: number): Promise<void> {
  // The person may have chosen another issue before the answer arrived.
  if (chosenId() === issueId) {
    // First, because the dialog of the next issue would be open otherwise.
    openDialog.value = null;
    choose(nextAfter(issueId));
  }
  await loadIssues();
}

/** Reopens a closed issue. It needs no idempotency key: an open issue stays as it is. */
async function undo(issueId: number): Promise<Failure | null> {
  const done = await call("POST /api/reconciliation/v1/issues/{issue_id}/undo/", { path: { issue_id: issueId } });
  if (!done.ok) return await afterRefusal(done);
  choose(issueId);
  await reload();
  return null;
}

export async function undoClosing(issueId: number): Promise<Failure | null> {
  const failure = await undo(issueId);
  if (failure === null) toast(words().done.undone);
  else toastRefusal(failure);
  return failure;
}

/** Closes the issue that the person has seen. The service refuses when the evidence has changed since then. */
export async function closeIssue(seen: Issue, reason: string): Promise<Failure | null> {
  const { issue_id: issueId, evidence_hash } = seen;
  const path = { issue_id: issueId };
  const body = { reason, evidence_hash };
  const done = await call("POST /api/reconciliation/v1/issues/{issue_id}/close/", { path, body });
  if (!done.ok) return await afterRefusal(done);
  toast(words().done.closed, {
    shownMs: UNDO_SHOWN_MS,
    action: { label: words().undo, run: () => void undoClosing(issueId) },
  });
  await showNext(issueId);
  return null;
}

export async function assign(issue: Issue, assigneeId: number | null, isUndo = false): Promise<Failure | null> {
  const path = { issue_id: issue.issue_id };
  const body = { assignee_id: assigneeId };
  const done = await call("POST /api/reconciliation/v1/issues/{issue_id}/assign/", { path, body });
  if (!done.ok) return await afterRefusal(done);
  const text = assigneeId === null ? words().done.unassigned : words().done.assigned(operatorName(assigneeId));
  const back = { label: words().undo, run: () => void orSayWhy(assign(issue, issue.assignee_id, true)) };
  toast(text, isUndo ? {} : { shownMs: UNDO_SHOWN_MS, action: back });
  await reload();
  return null;
}

export async function comment(issueId: number, text: string, key: string): Promise<Failure | null> {
  const path = { issue_id: issueId };
  const done = await call("POST /api/reconciliation/v1/issues/{issue_id}/comments/", { path, body: { text }, key });
  if (!done.ok) return await afterRefusal(done);
  await loadDetails();
  return null;
}

/** Attributes the money to an order. Above the limit two people decide: then this only proposes it. */
export async function attribute(request: {
  readonly issueId: number;
  readonly orderId: number;
  readonly reason: string;
  readonly isProposal: boolean;
}): Promise<Failure | null> {
  const { issueId, orderId, reason, isProposal } = request;
  const sent = { path: { issue_id: issueId }, body: { order_id: orderId, reason } };
  const done = isProposal
    ? await call("POST /api/reconciliation/v1/issues/{issue_id}/proposal/", sent)
    : await call("POST /api/reconciliation/v1/issues/{issue_id}/attribute/", sent);
  if (!done.ok) return await afterRefusal(done);
  toast(isProposal ? words().done.proposed : words().done.attributed);
  if (isProposal) await reload();
  else await showNext(issueId);
  return null;
}

export async function decideProposal(
  issue: Issue,
  decision: "confirm" | "withdraw" | "reject",
  reason = "",
): Promise<Failure | null> {
  const proposal_id = issue.proposal?.proposal_id ?? 0;
  const path = { issue_id: issue.issue_id };
  const done =
    decision === "confirm"
      ? await call("POST /api/reconciliation/v1/issues/{issue_id}/proposal/confirm/", { path, body: { proposal_id } })
      : decision === "withdraw"
        ? await call("POST /api/reconciliation/v1/issues/{issue_id}/proposal/withdraw/", {
            path,
            body: { proposal_id },
          })
        : await call("POST /api/reconciliation/v1/issues/{issue_id}/proposal/reject/", {
            path,
            body: { proposal_id, reason },
          });
  if (!done.ok) return await afterRefusal(done);
  toast(words().done.proposal[decision]);
  await reload();
  return null;
}

/** Confirms all the payments together, or rejects the only one. */
export async function decideMatch(
  request: { readonly lineId: number; readonly paymentKeys: readonly string[]; readonly reason: string },
  isConfirmed: boolean,
): Promise<Failure | null> {
  const { lineId, paymentKeys, reason } = request;
  const done = isConfirmed
    ? await call("POST /api/reconciliation/v1/matches/confirm/", {
        body: { line_ids: [lineId], payment_keys: [...paymentKeys], reason },
      })
    : await call("POST /api/reconciliation/v1/matches/reject/", {
        body: { line_id: lineId, payment_key: paymentKeys[0] ?? "", reason },
      });
  if (!done.ok) return await afterRefusal(done);
  toast(isConfirmed ? words().done.confirmed : words().done.rejected);
  await reload();
  return null;
}
