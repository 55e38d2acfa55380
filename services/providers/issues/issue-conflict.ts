import type { ISSUE_CONFLICTS } from "../../bus/messages/issues.ts";
import { RefusedError } from "../../bus/refusals.ts";
import type { IssueRow } from "../sql/issues.ts";

/** Why an issue cannot be resolved so: one word for a program, one sentence for a person. */
export function issueConflict(reason: (typeof ISSUE_CONFLICTS)[number], detail: string): RefusedError {
  return new RefusedError({ code: "conflict", reason, detail });
}

/** Refuses with `conflict` unless the issue is open. */
export function requireOpen({ status }: Pick<IssueRow, "status">): void {
  if (status !== "open") throw issueConflict(`issue_${status}`, `This issue is ${status}.`);
}

/** Refuses with `conflict` while somebody's attribution is at the payment seam. */
export function requireUnattributed({ attribution }: Pick<IssueRow, "attribution">): void {
  if (attribution !== null)
    throw issueConflict("attribution_under_way", "This issue is just being attributed; try again in a moment.");
}
