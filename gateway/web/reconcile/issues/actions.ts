/** What a person does to issues. Each returns the failure, or null when it is done; the list follows. */
import { signal } from "@preact/signals";
import { call } from "../../shared/call.ts";
import type { Failure } from "../../shared/failures.ts";
import { toast } from "../../shared/toasts.tsx";
import { operatorName } from "../known.ts";
import { toastRefusal } from "../refusal.tsx";
import { words } from "../words.ts";
import type { bulkFilter } from "./filter.ts";
import { choose, details, type Issue, issues, loadDetails, loadIssues, reload } from "./issue-list.ts";

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
// The way back shows another view: a question about the one before must not decide about that.
addEventListener("popstate", () => {
  openDialog.value = null;
});
/** Long enough to see what was done; the closed issue keeps its button for a day. */
const UNDO_SHOWN_MS = 12_000;

/** For a button that has no place for its failure. */
export async function orSayWhy(asked: Promise<Failure | null>): Promise<void> {
  const failure = await asked;
  if (failure !== null) toastRefusal(failure);
}

/** What a conflict is about has changed since the page has read it: a person decides by what is there now. */
async function afterRefusal(failure: Failure): Promise<Failure> {
  if (failure.code === "conflict") await reload();
  return failure;
}

/** The chosen issue goes on to its neighbour, so that a person decides one after the other. */
function nextAfter(issueId: number): number | null {
  const shown = issues.peek() ?? [];
  const at = shown.findIndex(({ issue_id }) => issue_id === issueId);
  return (shown[at + 1] ?? shown[at - 1])?.issue_id ?? null;
}

async function goOn(issueId: number): Promise<void> {
  choose(nextAfter(issueId));
  await loadIssues();
}

/** Of what was closed already there is nothing to undo twice: the service knows. */
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

/** As the person has seen it: with other evidence it stays open. */
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
  await goOn(issueId);
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

/** Two people decide about an amount above the limit: one proposes then. */
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
  else await goOn(issueId);
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

export async function decideMatch(
  request: { readonly lineId: number; readonly paymentKey: string; readonly reason: string },
  isConfirmed: boolean,
): Promise<Failure | null> {
  const { lineId, paymentKey, reason } = request;
  const done = isConfirmed
    ? await call("POST /api/reconciliation/v1/matches/confirm/", {
        body: { line_ids: [lineId], payment_keys: [paymentKey], reason },
      })
    : await call("POST /api/reconciliation/v1/matches/reject/", {
        body: { line_id: lineId, payment_key: paymentKey, reason },
      });
  if (!done.ok) return await afterRefusal(done);
  toast(isConfirmed ? words().done.confirmed : words().done.rejected);
  await reload();
  return null;
}

/** Each request closes some hundred; more than this many requests is more than a person means. */
const MOST_ROUNDS = 200;

export interface Seen {
  readonly filter: ReturnType<typeof bulkFilter>;
  readonly throughId: number;
}

/** Closes what the filter names and the person has seen; newer issues stay open. */
export async function closeAll(
  reason: string,
  { filter, throughId }: Seen,
  onProgress: (closed: number) => void,
): Promise<Failure | null> {
  let closed = 0;
  let refused = 0;
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const body = { filter, through_id: throughId, reason };
    const done = await call("POST /api/reconciliation/v1/issues/close/", { body });
    if (!done.ok) {
      await reload();
      return done;
    }
    closed += done.reply.closed;
    refused = done.reply.refused.length;
    onProgress(closed);
    if (!done.reply.has_more || done.reply.closed === 0) break;
  }
  toast(words().done.bulk(closed, refused), { shownMs: UNDO_SHOWN_MS });
  choose(null);
  details.value = undefined;
  await loadIssues();
  return null;
}
