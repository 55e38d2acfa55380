/** Closes all issues of a filter, and undoes that: many requests, each of which handles some hundred issues. */
import { call } from "../../shared/call.ts";
import { errorText } from "../../shared/error-texts.ts";
import type { Failure } from "../../shared/failures.ts";
import { toast } from "../../shared/toasts.tsx";
import { words } from "../words.ts";
import { openDialog } from "./actions.ts";
import type { bulkFilter } from "./filter.ts";
import { choose, details, reload } from "./issue-list.ts";

/** The most requests of one bulk closing. Each request closes some hundred issues; a person hardly means more. */
const MAX_REQUESTS = 200;
/** Issues of one request that undoes closings: fewer than the API allows, so that a person sees the progress. */
const UNDONE_AT_ONCE = 200;
/** How long the toast offers to undo. Later each issue has to be reopened by itself, so this is longer than for one closing. */
const UNDO_SHOWN_MS = 30_000;

interface Seen {
  readonly filter: ReturnType<typeof bulkFilter>;
  readonly throughId: number;
}

/** What the requests of a bulk closing have done so far. */
export interface Outcome {
  readonly closedIds: readonly number[];
  readonly refused: number;
}

/** Closes the issues of the filter that the person has seen; newer issues stay open. */
export async function closeAll(
  reason: string,
  { filter, throughId }: Seen,
  onProgress: (step: Outcome) => void,
): Promise<Failure | null> {
  for (let request = 0; request < MAX_REQUESTS; request += 1) {
    const body = { filter, through_id: throughId, reason };
    const done = await call("POST /api/reconciliation/v1/issues/close/", { body });
    if (!done.ok) {
      await reload();
      return done;
    }
    const { closed_ids: closedIds, refused, has_more: hasMore } = done.reply;
    onProgress({ closedIds, refused: refused.length });
    if (!hasMore || closedIds.length === 0) break;
  }
  if (openDialog.peek() === "bulk") {
    choose(null);
    details.value = undefined;
  }
  await reload();
  return null;
}

/** Reports what a bulk closing has closed, and offers to undo that. */
export function reportClosed({ closedIds, refused }: Outcome): void {
  const text = words().done.bulk(closedIds.length, refused);
  if (closedIds.length === 0) toast(text);
  else offerUndo(text, closedIds);
}

function offerUndo(text: string, issueIds: readonly number[]): void {
  const action = { label: words().undo, run: () => void undoAll(issueIds) };
  toast(text, { shownMs: UNDO_SHOWN_MS, action });
}

/** Reopens the issues. It needs no idempotency key: an open issue stays as it is. */
async function undoAll(issueIds: readonly number[]): Promise<void> {
  let left = issueIds;
  let reopened = 0;
  let refused = 0;
  while (left.length > 0) {
    const body = { issue_ids: left.slice(0, UNDONE_AT_ONCE) };
    const done = await call("POST /api/reconciliation/v1/issues/undo/", { body });
    if (!done.ok) {
      offerUndo(`${errorText(done).sentence} ${words().done.bulkUndoFailed(reopened, issueIds.length)}`, left);
      break;
    }
    reopened += done.reply.reopened;
    refused += done.reply.refused.length;
    left = [...left.slice(UNDONE_AT_ONCE), ...done.reply.remaining_ids];
    toast(
      left.length > 0
        ? words().done.bulkUndoing(reopened, issueIds.length)
        : words().done.bulkUndone(reopened, refused),
    );
  }
  await reload();
}
