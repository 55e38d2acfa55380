/** An issue that a person has resolved leaves no doubt about its intent; the task sees whether another one does. */
import type { Transaction } from "../../db/pool.ts";
import type { IssueRow } from "../sql/issues.ts";
import { armTask } from "../sql/tasks.ts";

export async function clearDoubtOf(
  sql: Transaction,
  { intent_id: intentId, issue_id: issueId }: Pick<IssueRow, "intent_id" | "issue_id">,
): Promise<void> {
  if (intentId === null) return;
  await armTask(sql, { intentId, kind: "clear", detail: { issueId }, dueInMs: 0 });
}
